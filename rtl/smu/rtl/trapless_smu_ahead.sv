// SPDX-License-Identifier: Apache-2.0
// Chooses one cycle ahead which part has a bus next, so that the part can use the bus without a choice in the same cycle. Parts
// that ask go before parts that may ask soon. Among equals the parts take turns.
`include "trapless_smu_ff.svh"

module trapless_smu_ahead #(
  parameter int unsigned Count = 4,
  parameter int unsigned Width = $clog2(Count)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [Count-1:0] ask_i,
  // The part may ask in the next cycle. A part that asks without this notice waits one cycle.
  input logic [Count-1:0] soon_i,
  // The part that has the bus is not done.
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
