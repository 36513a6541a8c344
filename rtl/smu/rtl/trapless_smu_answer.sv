// SPDX-License-Identifier: Apache-2.0
// Answers one PMSHR entry per cycle, to all its waiters (REQ: SMU-6). In the same cycle it answers refused requests. No source
// gets both answers.
`include "trapless_smu_ff.svh"

module trapless_smu_answer
  import trapless_smu_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Sources = 8,
  parameter int unsigned Updaters = 2,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  input entry_t [Entries-1:0] entry_i,
  // Entries whose outcome is being recorded.
  input logic [Updaters-1:0] update_valid_i,
  input logic [Updaters-1:0][SlotWidth-1:0] update_slot_i,

  output logic valid_o,
  output logic [SlotWidth-1:0] slot_o,
  // the same entry, as one bit per entry
  output logic [Entries-1:0] leaves_o,
  input logic [Sources-1:0] waiters_i,
  input logic [Sources-1:0] refused_i,
  input reason_t refused_reason_i,

  output logic [Sources-1:0] answer_o,
  output reason_t [Sources-1:0] reason_o,
  output logic [63:0] value_o
);

  logic [Entries-1:0] known, leaves_q;
  logic [SlotWidth-1:0] pick, slot_q;
  logic any, valid_q;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      known[i] = entry_i[i].stage == StAnswer && !leaves_q[i];
      for (int unsigned u = 0; u < Updaters; u++) begin
        if (update_valid_i[u] && update_slot_i[u] == SlotWidth'(i)) known[i] = 1'b1;
      end
    end
  end

  trapless_smu_rr #(.Count(Entries)) u_pick (
    .req_i(known),
    .last_i(slot_q),
    .valid_o(any),
    .sel_o(pick)
  );

  assign valid_o = valid_q;
  assign slot_o = slot_q;
  assign leaves_o = leaves_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      slot_q <= '0;
      leaves_q <= '0;
    end else begin
      valid_q <= any;
      if (any) slot_q <= pick;
      for (int unsigned i = 0; i < Entries; i++) leaves_q[i] <= any && pick == SlotWidth'(i);
    end
  end

  always_comb begin
    for (int unsigned s = 0; s < Sources; s++) reason_o[s] = refused_i[s] ? refused_reason_i : entry_i[slot_q].reason;
  end

  assign answer_o = (valid_q ? waiters_i : '0) | refused_i;
  assign value_o = entry_i[slot_q].value;

endmodule
