// SPDX-License-Identifier: Apache-2.0
// The AXI4-Lite slave. An answer stays until it is taken. It belongs to an access that was taken as a whole, with its address
// and data. There is always room for it, and it comes in time.
`include "claim.svh"

module unit_lite
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of the enumeration inside the registers.
  localparam logic [2:0] RegIdle = 3'd0, RegCheck = 3'd4, RegExec = 3'd5;

  // ---------------------------------------------------------------- accesses that were taken and are to be answered
  logic [2:0] aw_due_q, w_due_q, ar_due_q;
  logic aw, w, ar, b, r;

  assign aw = `SMU.s_axil_awvalid && `SMU.s_axil_awready;
  assign w = `SMU.s_axil_wvalid && `SMU.s_axil_wready;
  assign ar = `SMU.s_axil_arvalid && `SMU.s_axil_arready;
  assign b = `SMU.s_axil_bvalid && `SMU.s_axil_bready;
  assign r = `SMU.s_axil_rvalid && `SMU.s_axil_rready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_due_q, w_due_q, ar_due_q} <= '0;
    end else begin
      aw_due_q <= aw_due_q + 3'(aw) - 3'(b);
      w_due_q <= w_due_q + 3'(w) - 3'(b);
      ar_due_q <= ar_due_q + 3'(ar) - 3'(r);
    end
  end

  // Where such an access can be: taken (address and data separately), in the registers (one at a time), or an answer that waits.
  logic read_taken, address_taken, data_taken, busy, busy_writes;
  logic [1:0] answers, write_answers, read_answers, under_way;
  logic [2:0] state;

  assign read_taken = `SMU.u_registers.u_regs.axil_arvalid;
  assign address_taken = `SMU.u_registers.u_regs.axil_awvalid;
  assign data_taken = `SMU.u_registers.u_regs.axil_wvalid;
  assign under_way = `SMU.u_registers.u_regs.axil_n_in_flight;
  assign busy = `SMU.u_registers.u_regs.external_pending;
  assign busy_writes = `SMU.u_registers.u_csr.write_q;
  assign state = `SMU.u_registers.u_csr.state_q;
  assign answers = `SMU.u_registers.u_regs.axil_resp_wptr - `SMU.u_registers.u_regs.axil_resp_rptr;

  logic [1:0] is_write;
  logic head;
  assign is_write = {`SMU.u_registers.u_regs.axil_resp_buffer_is_wr[1], `SMU.u_registers.u_regs.axil_resp_buffer_is_wr[0]};
  assign head = `SMU.u_registers.u_regs.axil_resp_rptr[0];
  assign write_answers = 2'(answers != '0 && is_write[head]) + 2'(answers[1] && is_write[!head]);
  assign read_answers = answers - write_answers;

  `CLAIM(register_states, busy, state <= RegExec && busy == (state != RegIdle))
  `CLAIM(accesses_have_room, under_way == 2'd2, under_way <= 2'd2 && answers <= 2'd2
      && 3'(under_way) == 3'(answers) + 3'(busy))
  `CLAIM(writes_due, write_answers != '0 && address_taken, aw_due_q == 3'(address_taken) + 3'(write_answers) + 3'(busy
      && busy_writes) && w_due_q == 3'(data_taken) + 3'(write_answers) + 3'(busy && busy_writes))
  `CLAIM(read_accesses_due, read_answers != '0 && read_taken, ar_due_q == 3'(read_taken) + 3'(read_answers) + 3'(busy
      && !busy_writes))
  `CLAIM(few_due, aw_due_q > 3'd1, aw_due_q <= 3'd3 && w_due_q <= 3'd3 && ar_due_q <= 3'd3)

  // ---------------------------------------------------------------- rules of AXI4-Lite
  logic b_q, r_q;
  logic [1:0] bresp_q, rresp_q;
  logic [63:0] rdata_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {b_q, r_q} <= '0;
    end else begin
      b_q <= `SMU.s_axil_bvalid && !`SMU.s_axil_bready;
      r_q <= `SMU.s_axil_rvalid && !`SMU.s_axil_rready;
    end
  end
  always_ff @(posedge clk_i) begin
    bresp_q <= `SMU.s_axil_bresp;
    rresp_q <= `SMU.s_axil_rresp;
    rdata_q <= `SMU.s_axil_rdata;
  end

  `CLAIM_WHEN(b_stable, b_q, `SMU.s_axil_bvalid && `SMU.s_axil_bresp == bresp_q)
  `CLAIM_WHEN(r_stable, r_q, `SMU.s_axil_rvalid && {`SMU.s_axil_rresp, `SMU.s_axil_rdata} == {rresp_q, rdata_q})
  `CLAIM_WHEN(b_of_whole_write, `SMU.s_axil_bvalid, aw_due_q != '0 && w_due_q != '0)
  `CLAIM_WHEN(r_of_read, `SMU.s_axil_rvalid, ar_due_q != '0)

  // ---------------------------------------------------------------- in time
  // Limits in cycles: `Before` until an access is in the registers, `Inside` for the time in them. A cycle does not count if an
  // answer is not taken in it, or if the registers wait for a part in the middle of a step or for the test of the fabric.
  localparam logic [4:0] Inside = 5'd5, Before = 5'd11;

  logic counted;
  logic [4:0] read_age_q, write_age_q, inside_age_q, left, rest;

  assign counted = !(`SMU.s_axil_bvalid && !b) && !(`SMU.s_axil_rvalid && !r)
      && !(state == RegCheck && `SMU.u_registers.u_csr.hold && `SMU.busy)
      && !(state == RegCheck && `SMU.u_registers.u_csr.enabling && `SMU.u_registers.u_csr.rings_ok && !`SMU.u_registers.u_csr.tried_q);
  assign left = busy ? 5'd6 - 5'(state) : '0;
  // `rest`: cycles until the registers take the next access. If that access is of the other kind, the claims add its time.
  assign rest = left + 5'(answers == 2'd2);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {read_age_q, write_age_q, inside_age_q} <= '0;
    end else begin
      read_age_q <= read_taken && !`SMU.u_registers.u_regs.axil_ar_accept ? read_age_q + 5'(counted) : '0;
      write_age_q <= address_taken && data_taken && !`SMU.u_registers.u_regs.axil_aw_accept ? write_age_q + 5'(counted) : '0;
      inside_age_q <= busy && state != RegExec ? inside_age_q + 5'(counted) : '0;
    end
  end

  `CLAIM_WHEN(read_in_turn, read_taken,
      6'(read_age_q) + 6'(rest) + (`SMU.u_registers.u_regs.axil_prev_was_rd ? 6'd6 : 6'd0) <= 6'(Before))
  `CLAIM_WHEN(write_in_turn, (address_taken && data_taken),
      6'(write_age_q) + 6'(rest) + (`SMU.u_registers.u_regs.axil_prev_was_rd ? 6'd0 : 6'd6) <= 6'(Before))
  `CLAIM_WHEN(access_in_time, busy, 6'(inside_age_q) + 6'(left) <= 6'(Inside))
  `CLAIM(ages_of_what_waits, read_taken && write_age_q != '0, (read_taken || read_age_q == '0) && ((address_taken
      && data_taken) || write_age_q == '0) && (busy || inside_age_q == '0))

endmodule

bind trapless_smu unit_lite u_lite (.*);
