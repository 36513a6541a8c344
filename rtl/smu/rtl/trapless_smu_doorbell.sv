// SPDX-License-Identifier: Apache-2.0
// Doorbells of one device (REQ: SMU-14): the newest tail and head that were not yet written, and one write under way. Newer
// values replace older ones, so a part that rings never waits, whatever the device does. If a write fails or takes too long,
// the device is lost: its descriptor goes out of use until RELEASE. AXI does not allow the unit to withdraw the write: it stays
// until the device has answered it.
`include "trapless_smu_ff.svh"

module trapless_smu_doorbell
  import trapless_smu_pkg::*;
#(
  // Limit in cycles from the start of a write to its answer. A write that takes longer has failed.
  parameter int unsigned Cycles = 65536
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] sq_doorbell_i,
  input logic [63:0] cq_doorbell_i,
  // The device is out of use: nothing more is written.
  input logic broken_i,
  // The queue pair is set up anew: values that are due are forgotten, and a write under way counts as one for an old queue pair.
  input logic renew_i,

  input logic tail_valid_i,
  input logic [16:0] tail_i,
  input logic head_valid_i,
  input logic [16:0] head_i,

  output logic lost_o,
  output logic old_o,
  // Nothing is due or under way.
  output logic idle_o,

  output logic [63:0] awaddr_o,
  output logic awvalid_o,
  input logic awready_i,
  output logic [31:0] wdata_o,
  output logic wvalid_o,
  input logic wready_i,
  input logic [1:0] bresp_i,
  input logic bvalid_i,
  output logic bready_o
);

  localparam int unsigned CountWidth = $clog2(Cycles + 1);

  logic tail_due, tail_due_q, head_due, head_due_q, start, head_next, head_turn_q;
  logic [16:0] tail_q, head_q, data_q;
  logic [63:0] addr_q;
  logic busy_q, address_q, value_q, told_q, old_q, done, failed;
  logic [CountWidth-1:0] count_q;
  axi_resp_e resp;

  assign tail_due = (tail_valid_i || tail_due_q) && !broken_i && !renew_i;
  assign head_due = (head_valid_i || head_due_q) && !broken_i && !renew_i;
  // Tail and head take turns when both are due.
  assign head_next = head_due && (!tail_due || head_turn_q);
  assign start = !busy_q && (tail_due || head_due);

  assign awvalid_o = address_q;
  assign awaddr_o = addr_q;
  assign wvalid_o = value_q;
  assign wdata_o = {15'b0, data_q};
  assign bready_o = busy_q && !address_q && !value_q;
  assign resp = axi_resp_e'(bresp_i);
  assign done = bready_o && bvalid_i;
  assign failed = done ? resp inside {RespSlvErr, RespDecErr} : count_q == CountWidth'(Cycles - 1);
  assign lost_o = busy_q && failed && !told_q && !old_q && !renew_i;
  assign old_o = old_q;
  assign idle_o = !busy_q && !tail_due_q && !head_due_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      {tail_due_q, head_due_q, head_turn_q} <= '0;
      {busy_q, address_q, value_q, told_q, old_q} <= '0;
      count_q <= '0;
    end else begin
      tail_due_q <= tail_due && !(start && !head_next);
      head_due_q <= head_due && !(start && head_next);
      if (start) head_turn_q <= !head_next;
      busy_q <= start || (busy_q && !done);
      address_q <= start || (address_q && !awready_i);
      value_q <= start || (value_q && !wready_i);
      told_q <= !start && (told_q || lost_o);
      old_q <= busy_q && !done && (old_q || renew_i);
      if (start) count_q <= '0;
      else if (busy_q && count_q != CountWidth'(Cycles - 1)) count_q <= count_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (tail_valid_i) tail_q <= tail_i;
    if (head_valid_i) head_q <= head_i;
    if (start) begin
      addr_q <= head_next ? cq_doorbell_i : sq_doorbell_i;
      if (head_next) data_q <= head_valid_i ? head_i : head_q;
      else data_q <= tail_valid_i ? tail_i : tail_q;
    end
  end

endmodule
