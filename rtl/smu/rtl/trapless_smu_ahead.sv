// SPDX-License-Identifier: Apache-2.0
// Who has a bus next, chosen a cycle ahead: whoever has it uses it without a choice before it. Those who ask go before those who say
// that they will; among equals it goes in turn.
`include "trapless_smu_ff.svh"

module trapless_smu_ahead #(
  parameter int unsigned Count = 4,
  parameter int unsigned Width = $clog2(Count)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [Count-1:0] ask_i,
  // May ask in the next cycle. One who asks without notice waits a cycle.
  input logic [Count-1:0] soon_i,
  // Whoever has it is not done.
  input logic keep_i,
  output logic [Width-1:0] sel_o
);

  logic [Width-1:0] sel_q, pick;
  logic [Count-1:0] mine, others;
  logic any, stay;

  always_comb begin
    mine = '0;
    mine[sel_q] = 1'b1;
  end

  assign others = ask_i & ~mine;
  assign stay = others == '0 && (soon_i & mine) != '0;

  trapless_smu_rr #(.Count(Count)) u_pick (
    .req_i(others != '0 ? others : soon_i),
    .last_i(sel_q),
    .valid_o(any),
    .sel_o(pick)
  );

  assign sel_o = sel_q;

  `TRAPLESS_FF begin
    if (!rst_ni) sel_q <= '0;
    else if (any && !stay && !keep_i) sel_q <= pick;
  end

endmodule
