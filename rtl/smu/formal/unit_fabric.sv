// SPDX-License-Identifier: Apache-2.0
// The unit is enabled only if there is a return ring, and only after the fabric has taken an exclusive pair at the ring's first
// entry (REQ: SMU-16).
`include "claim.svh"

module unit_fabric
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [2:0] UpIdle = 3'd0, UpWait = 3'd2, UpWrite = 3'd3, UpTell = 3'd5, RegRead = 3'd2, RegMerge = 3'd3, RegCheck = 3'd4,
      RegExec = 3'd5;
  localparam logic [1:0] FetchIdle = 2'd0, RetWrite = 2'd2;

  // `works_q`: the latest test succeeded, as seen from the bus alone.
  logic works_q;
  logic [2:0] state, reg_state;
  logic trying, begun, tried, ok, rings;

  assign state = `SMU.u_updaters.g_update[0].g_pair.u_update.state_q;
  assign trying = `SMU.u_updaters.g_update[0].g_pair.u_update.try_q && state != UpIdle;
  assign reg_state = `SMU.u_registers.u_csr.state_q;
  assign begun = `SMU.u_registers.u_csr.begun_q;
  assign tried = `SMU.u_registers.u_csr.tried_q;
  assign ok = `SMU.u_registers.u_csr.try_ok_q;
  assign rings = `SMU.u_registers.u_csr.rings_ok;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      works_q <= 1'b0;
    end else if (trying && state == UpWrite && `SMU.m_axi_bvalid && `SMU.m_axi_bid == '0) begin
      works_q <= `SMU.m_axi_bresp == RespExOkay;
    end else if (trying && state == UpWait && `SMU.m_axi_rvalid && `SMU.m_axi_rid == '0 && `SMU.m_axi_rresp != RespExOkay) begin
      works_q <= 1'b0;
    end
  end

  `CLAIM(tried_for_an_access, begun && tried, (!(begun || tried) || reg_state inside {RegCheck, RegExec}) && (!tried || begun)
      && (!begun || (`SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.enabling && `SMU.u_registers.u_csr.halves_q
      && rings)) && (!(begun && reg_state == RegExec) || tried))
  `CLAIM_WHEN(tried_when_asked, trying, begun && !tried && reg_state == RegCheck)
  `CLAIM_WHEN(held_while_set_up, (reg_state inside {RegRead, RegMerge, RegCheck, RegExec}),
      `SMU.u_registers.u_csr.is_q == `SMU.u_registers.u_csr.is_d
      && `SMU.u_registers.u_csr.halves_q == (`SMU.u_registers.u_csr.biten_q inside {64'hffff_ffff_ffff_ffff,
      64'h0000_0000_ffff_ffff, 64'hffff_ffff_0000_0000}) && (reg_state == RegRead
      || `SMU.u_registers.u_csr.hold_q == `SMU.u_registers.u_csr.hold) && (!(reg_state inside {RegMerge, RegCheck})
      || `SMU.u_registers.u_csr.write_q))
  `CLAIM_WHEN(tried_a_few_times, trying, `SMU.u_updaters.g_update[0].g_pair.u_update.attempt_q < 9'd16 || state == UpTell)
  `CLAIM_WHEN(tried_beside_nobody, begun, `SMU.u_rings.u_free.state_q == FetchIdle
      && `SMU.u_rings.u_return.state_q != RetWrite && !`SMU.enable)
  `CLAIM(try_told_as_it_ended, trying && state == UpTell, (!(trying && state == UpTell)
      || (`SMU.u_updaters.g_update[0].g_pair.u_update.reason_q == '0) == works_q) && (!tried || ok == works_q))
  `CLAIM_WHEN(enabled_where_exclusives_work, `SMU.enable, works_q)
  `CLAIM_WHEN(enabled_with_a_return_ring, `SMU.enable, `SMU.ret_size != '0)

endmodule

bind trapless_smu unit_fabric u_fabric (.*);
