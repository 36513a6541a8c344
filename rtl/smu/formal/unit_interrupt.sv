// SPDX-License-Identifier: Apache-2.0
// The interrupt output follows the causes. The unit forgets no error, and no command that ran out of time (REQ: SMU-17).
`include "claim.svh"

module unit_interrupt
  import trapless_smu_pkg::*, trapless_spec_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  localparam logic [2:0] RegExec = 3'd5;

  // Software writes 1 to INT_CAUSE.TIMEOUT: the whole register, or the half that has the bit.
  logic noticed;
  assign noticed = `SMU.u_registers.u_csr.state_q == RegExec && `SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.halves_q
      && `SMU.u_registers.u_csr.word_q == 9'(REG_INT_CAUSE >> 3) && `SMU.u_registers.u_csr.data_q[REG_INT_CAUSE_TIMEOUT_BIT]
      && `SMU.u_registers.u_csr.biten_q[REG_INT_CAUSE_TIMEOUT_BIT];

  // STATUS.ERROR is cleared by a write of CTRL that leaves ENABLE at 0, while the unit is idle.
  logic cleared, told_q, error_q, cleared_q;
  assign cleared = `SMU.u_registers.u_csr.state_q == RegExec && `SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.halves_q
      && `SMU.u_registers.u_csr.word_q == 9'(REG_CTRL >> 3) && `SMU.u_registers.u_csr.idle_i
      && !(`SMU.u_registers.u_csr.biten_q[REG_CTRL_ENABLE_BIT] ? `SMU.u_registers.u_csr.data_q[REG_CTRL_ENABLE_BIT]
           : `SMU.u_registers.u_csr.enable_q);

  logic [3:0] causes, enabled;
  logic [31:0] left;
  logic missed_q, high_q;

  assign left = `SMU.free_tail - `SMU.free_head;

  always_comb begin
    causes = '0;
    causes[REG_INT_CAUSE_ERROR_BIT] = `SMU.u_registers.u_csr.error_q;
    causes[REG_INT_CAUSE_FRAMES_LOW_BIT] = `SMU.enable
        && left < `SMU.u_registers.u_csr.free_low_q;
    causes[REG_INT_CAUSE_RETURNED_BIT] = `SMU.ret_tail != `SMU.ret_head;
    causes[REG_INT_CAUSE_TIMEOUT_BIT] = missed_q;
    enabled = `SMU.u_registers.u_csr.int_enable_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {told_q, error_q, cleared_q} <= '0;
      missed_q <= 1'b0;
      high_q <= 1'b0;
    end else begin
      told_q <= `SMU.u_registers.u_csr.error_i;
      error_q <= `SMU.u_registers.u_csr.error_q;
      cleared_q <= cleared;
      // The miss is answered failed(timeout), because no completion came in the same cycle.
      if (`SMU.timeout_valid && !(`SMU.completion_matched && `SMU.completion_slot == `SMU.timeout_slot)) missed_q <= 1'b1;
      else if (noticed) missed_q <= 1'b0;
      high_q <= (causes & enabled) != '0;
    end
  end

  `CLAIM_WHEN(error_is_noted, told_q, `SMU.u_registers.u_csr.error_q)
  `CLAIM(error_stays, error_q && cleared_q, !error_q || cleared_q || `SMU.u_registers.u_csr.error_q)
  `CLAIM(timeout_is_noted, missed_q, `SMU.u_registers.u_csr.timed_out_q == missed_q)
  `CLAIM(interrupt_follows_causes, high_q, `SMU.irq_o == high_q)

endmodule

bind trapless_smu unit_interrupt u_interrupt (.*);
