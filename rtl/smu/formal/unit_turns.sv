// SPDX-License-Identifier: Apache-2.0
// No source that asks is passed over for ever (REQ: SMU-6): while it waits to be looked at, or for an entry, each other source
// gets at most one look, or one entry, before it.
`include "claim.svh"

module unit_turns #(
  parameter int unsigned Sources = 3,
  parameter int unsigned Width = $clog2(Sources)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [Sources-1:0] valid_i,
  input logic allocate_o,
  input logic look_d,
  input logic [Width-1:0] sel_d,
  input logic [Width-1:0] sel_q,
  input logic [Width-1:0] last_q,
  input logic [Sources-1:0] waiting_q,
  input logic [Sources-1:0] mine,
  input logic act_q,
  input logic my_turn_q
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // How many entries, or looks, the other sources have had since this source began to wait.
  logic [Sources-1:0][7:0] entries_q, looks_q;
  logic [Sources-1:0] fair, seen, behind;

  // Number of sources that come before this one, counted from the one after `last`.
  function automatic logic [7:0] rank(logic [Width-1:0] last, logic [Width-1:0] source);
    return source > last ? 8'(source) - 8'(last) - 8'd1 : 8'(source) + 8'(Sources) - 8'(last) - 8'd1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      entries_q <= '0;
      looks_q <= '0;
    end else begin
      for (int unsigned s = 0; s < Sources; s++) begin
        if (!waiting_q[s]) entries_q[s] <= '0;
        else if (allocate_o && !mine[s]) entries_q[s] <= entries_q[s] + 8'd1;
        if (!valid_i[s] || mine[s] || (look_d && sel_d == Width'(s))) looks_q[s] <= '0;
        else if (look_d) looks_q[s] <= looks_q[s] + 8'd1;
      end
    end
  end

  always_comb begin
    for (int unsigned s = 0; s < Sources; s++) begin
      fair[s] = !waiting_q[s] || 16'(entries_q[s]) + 16'(rank(last_q, Width'(s))) <= 16'(Sources - 1);
      behind[s] = !waiting_q[s] || rank(last_q, sel_q) <= rank(last_q, Width'(s));
      seen[s] = looks_q[s] == '0 || 16'(looks_q[s]) + 16'(rank(sel_q, Width'(s))) <= 16'(Sources - 1);
    end
  end

  `CLAIM(turn_sources, 32'(sel_q) == Sources - 1, 32'(sel_q) < Sources && 32'(last_q) < Sources)
  `CLAIM_WHEN(turn_known, (act_q && my_turn_q), waiting_q == '0 || (waiting_q[sel_q] && behind == '1))
  `CLAIM(entry_in_turn, entries_q != '0, fair == '1)
  `CLAIM(look_in_turn, looks_q != '0, seen == '1)

endmodule

bind trapless_smu_front unit_turns #(.Sources(Sources)) u_turns (.*);

// No part that asks for memory is passed over: when the part that has the bus does not keep it, the bus goes to a part that asks.
// While a part waits, each other part has the bus at most once.
module bus_turns #(
  parameter int unsigned Count = 4,
  parameter int unsigned Width = $clog2(Count)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [Count-1:0] ask_i,
  input logic keep_i,
  input logic any,
  input logic stay,
  input logic [Width-1:0] pick,
  input logic [Width-1:0] sel_q
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // How often the bus went to another part since this part began to wait.
  logic [Count-1:0][7:0] turns_q;
  logic [Count-1:0] asked_q, fair;
  logic [Width-1:0] last_q;
  logic free_q;

  function automatic logic [7:0] rank(logic [Width-1:0] last, logic [7:0] client);
    return client > 8'(last) ? client - 8'(last) : client + 8'(Count) - 8'(last);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turns_q <= '0;
      asked_q <= '0;
      free_q <= 1'b0;
    end else begin
      for (int unsigned c = 0; c < Count; c++) begin
        if (!ask_i[c] || 8'(sel_q) == 8'(c)) turns_q[c] <= '0;
        else if (any && !stay && !keep_i && 8'(pick) != 8'(c)) turns_q[c] <= turns_q[c] + 8'd1;
      end
      asked_q <= ask_i;
      free_q <= !keep_i;
    end
  end
  always_ff @(posedge clk_i) last_q <= sel_q;

  logic others;
  always_comb begin
    others = 1'b0;
    for (int unsigned c = 0; c < Count; c++) begin
      fair[c] = turns_q[c] == '0 || 8'(sel_q) == 8'(c) || 16'(turns_q[c]) + 16'(rank(sel_q, 8'(c))) < 16'(Count);
      others |= asked_q[c] && 8'(last_q) != 8'(c);
    end
  end

  `CLAIM_WHEN(bus_goes_on, others && free_q, sel_q != last_q && asked_q[sel_q])
  `CLAIM(bus_in_turn, turns_q != '0, fair == '1)

endmodule

bind trapless_smu_ahead bus_turns #(.Count(Count)) u_turns (.*);
