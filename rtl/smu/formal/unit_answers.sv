// SPDX-License-Identifier: Apache-2.0
// Every accepted request that is not abandoned is answered once, and nobody else is (REQ: SMU-6): who waits is noted in exactly one
// place, from the cycle of the acceptance to that of the answer. Fences and drains wait for all accepted before them (REQ: SMU-8).
`include "claim.svh"

// Any one fence, or drain: the entries it must wait for.
module fence_watch #(
  parameter int unsigned Entries = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic take_i,
  input logic [Entries-1:0] pending_i,
  input logic active_q,
  input logic [Entries-1:0] wait_q,
  input logic [63:0] issued_q,
  input logic [63:0] done_q,
  input logic [63:0] ticket_q,
  input logic start
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  localparam logic [63:0] Half = 64'h8000_0000_0000_0000, Quarter = 64'h4000_0000_0000_0000;

  (* anyseq *) logic pick;
  logic watch_q, begins, served;
  logic [63:0] number_q;
  logic [Entries-1:0] must_q;

  assign begins = take_i && pick && !watch_q;
  assign served = done_q - number_q < Half;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      watch_q <= 1'b0;
      number_q <= '0;
      must_q <= '0;
    end else if (begins) begin
      watch_q <= 1'b1;
      number_q <= issued_q + 64'd1;
      must_q <= pending_i;
    end else begin
      must_q <= must_q & pending_i;
    end
  end

  // Nobody takes 2^62 tickets.
  always_comb assume (issued_q < Quarter);
  `CLAIM(fence_tickets, issued_q <= Quarter && done_q <= issued_q && number_q <= issued_q
      && (!active_q || (ticket_q <= issued_q && done_q < ticket_q)))
  `CLAIM(fence_waits_for_all, !(watch_q && active_q && ticket_q >= number_q) || (must_q & pending_i & ~wait_q) == '0)
  // REQ: SMU-8
  `CLAIM(fence_passes_no_miss, !(watch_q && served) || (must_q & pending_i) == '0)
  `CLAIM(fence_of_one, watch_q || must_q == '0)

  // Nor does it wait for what came later: it only loses what is over, in time not to take the place's next miss for it.
  logic [Entries-1:0] waited_q, over_q;
  logic started_q;
  always_ff @(posedge clk_i) begin
    waited_q <= wait_q;
    over_q <= ~pending_i;
    started_q <= !rst_ni || start;
  end
  `CLAIM(fence_waits_for_no_later, started_q || (wait_q & (~waited_q | over_q)) == '0)

endmodule

module unit_answers
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // ---------------------------------------------------------------- who waits
  logic [Sources-1:0] waits, noted, once, answered;
  logic [Harts-1:0][IdWidth-1:0] id_q;
  logic [Harts-1:0] named;
  logic [Entries-1:0] quiet;
  logic [3:0] n;

  assign waits = {`SMU.u_ports.busy_q & ~`SMU.u_ports.ask_q, `SMU.u_environment.wait_q};
  assign answered = `SMU.answer;

  always_ff @(posedge clk_i) begin
    for (int unsigned h = 0; h < Harts; h++) begin
      if (`SMU.req_valid_i[h] && `SMU.req_ready_o[h]) id_q[h] <= `SMU.req_i[h].id;
    end
  end

  always_comb begin
    n = '0;
    for (int unsigned s = 0; s < Sources; s++) begin
      n = 4'(`SMU.u_front.refused_q[s]);
      for (int unsigned i = 0; i < Entries; i++) n = n + 4'(`SMU.u_pmshr.waiters_q[i][s]);
      once[s] = n == 4'(waits[s]);
    end
    for (int unsigned i = 0; i < Entries; i++) quiet[i] = `SMU.live[i] || `SMU.u_pmshr.waiters_q[i] == '0;
    for (int unsigned h = 0; h < Harts; h++) begin
      named[h] = !(waits[h] || `SMU.rsp_valid_o[h]) || (waits[h] && `SMU.rsp_o[h].id == id_q[h]);
    end
  end

  `CLAIM(waits_in_one_place, once == '1)
  `CLAIM(waits_for_live, quiet == '1)
  `CLAIM(answer_to_whom_waits, (answered & ~waits) == '0 && named == '1)
  `CLAIM(port_asks_while_busy, (`SMU.u_ports.ask_q & ~`SMU.u_ports.busy_q) == '0)
  `CLAIM(one_is_looked_at, !`SMU.u_front.look_q || `SMU.u_front.sel_q < 2'(Sources))

  // ---------------------------------------------------------------- fences (REQ: SMU-8)
  // Who waited when the watched fence was taken; each is with an entry that the fence waits for.
  logic [Sources-1:0] told_q, gone, watched;

  assign gone = answered | `SMU.src_abandon;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) told_q <= '0;
    else told_q <= (`SMU.u_fence.u_watch.begins ? waits : told_q) & ~gone;
  end

  always_comb begin
    for (int unsigned s = 0; s < Sources; s++) begin
      watched[s] = !told_q[s];
      for (int unsigned i = 0; i < Entries; i++) begin
        if (`SMU.u_pmshr.waiters_q[i][s] && `SMU.u_fence.u_watch.must_q[i] && `SMU.live[i]) watched[s] = 1'b1;
      end
    end
  end

  `CLAIM(fence_watches_waits, watched == '1 && (told_q & ~waits) == '0 && (told_q & `SMU.u_front.refused_q) == '0)
  `CLAIM(fence_passes_no_wait, !(`SMU.u_fence.u_watch.watch_q && `SMU.u_fence.u_watch.served) || told_q == '0)
  `CLAIM(fence_of_one_waits, `SMU.u_fence.u_watch.watch_q || told_q == '0)

endmodule

bind trapless_smu_fence fence_watch #(.Entries(Entries)) u_watch (.*);
bind trapless_smu unit_answers u_answers (.*);
