// SPDX-License-Identifier: Apache-2.0
// Takes requests from walkers and software ports in turn, one every two cycles (REQ: SMU-1, SMU-6, SMU-11).
//
// The first cycle picks a source and takes its PTE's address, the second searches the PMSHR for it, the third joins, allocates or
// refuses, and picks the next source. While the PMSHR is full, the unit still looks at every source in turn, because the
// requested page may already be under way. A freed entry goes to a source that has waited, in turn.
`include "trapless_smu_ff.svh"

module trapless_smu_front
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Sources = 8
) (
  input logic clk_i,
  input logic rst_ni,
  input logic enable_i,

  input logic [Sources-1:0] valid_i,
  output logic [Sources-1:0] ready_o,
  input smu_req_t [Sources-1:0] req_i,
  // An address that no entry can have: not a multiple of 8; beyond PAddrWidth, which only software can ask for.
  input logic [Sources-1:0] misaligned_i,
  input logic [Sources-1:0] far_i,
  // The three entries of the request, compared in the cycle before, lie in windows (REQ: SMU-15).
  input logic inside_i,
  input logic [Sources-1:0] abandon_i,

  // PMSHR: searched in one cycle; the result is reported and used in the next
  output logic act_o,
  output smu_req_t req_o,
  output entry_addr_t search_o,
  input logic hit_i,
  input logic free_i,
  input logic stuck_i,
  output logic join_o,
  output logic allocate_o,
  output logic [Sources-1:0] source_o,

  // a request that is accepted only to fail; it is answered in the next cycle
  output logic refuse_o,
  output reason_t refuse_reason_o,
  output logic [Sources-1:0] refused_o,
  output reason_t refused_reason_o,

  output logic accepted_o,
  output logic full_o
);

  localparam int unsigned SourceWidth = Sources > 1 ? $clog2(Sources) : 1;

  logic look_q, look_d, act_q, any;
  logic [SourceWidth-1:0] sel_q, sel_d;
  logic [SourceWidth-1:0] turn, last_q;
  logic [Sources-1:0] waiting_q, waiting, mine, ask;
  entry_addr_t search_q;
  logic [IdWidth-1:0] id_q;
  logic [Sources-1:0] refused_q;
  reason_t reason_q;
  logic looked_at, stayed_q, my_turn_q;

  always_comb begin
    mine = '0;
    mine[sel_q] = act_q;
  end

  // No source is picked before the search for the last one is made. A source whose result comes in this cycle is not picked.
  assign ask = valid_i & ~mine;

  trapless_smu_rr #(.Count(Sources)) u_pick (
    .req_i(ask),
    .last_i(sel_q),
    .valid_o(any),
    .sel_o(sel_d)
  );

  assign look_d = any && !look_q;

  assign waiting = waiting_q & valid_i;

  trapless_smu_rr #(.Count(Sources)) u_turn (
    .req_i(waiting),
    .last_i(last_q),
    .valid_o(),
    .sel_o(turn)
  );

  assign req_o = req_i[sel_q];
  assign act_o = act_q;
  assign search_o = search_q;
  // When a request is taken back, its source may show another request at once. The unit looks at the new request later.
  assign looked_at = (mine & valid_i) != '0 && stayed_q && req_o.id == id_q;
  assign source_o = mine & valid_i & ~abandon_i;

  always_comb begin
    refuse_o = 1'b0;
    refuse_reason_o = '0;
    join_o = 1'b0;
    allocate_o = 1'b0;
    if (looked_at) begin
      if (!enable_i) begin
        refuse_o = 1'b1;
        refuse_reason_o = reason_t'(REASON_DISABLED);
      end else if ((mine & misaligned_i) != '0) begin
        refuse_o = 1'b1;
        refuse_reason_o = reason_t'(REASON_DESCRIPTOR);
      end else if ((mine & far_i) != '0 || !inside_i) begin
        refuse_o = 1'b1;
        refuse_reason_o = reason_t'(REASON_BUS);
      end else if (hit_i) begin
        join_o = 1'b1;
      end else if (free_i && my_turn_q) begin
        allocate_o = 1'b1;
      end else if (stuck_i) begin
        // REQ: SMU-10. Misses that are over keep the entries, maybe for ever.
        refuse_o = 1'b1;
        refuse_reason_o = reason_t'(REASON_TIMEOUT);
      end
    end
  end

  assign accepted_o = join_o || allocate_o || refuse_o;
  assign ready_o = accepted_o ? mine : '0;
  assign full_o = looked_at && !waiting_q[sel_q] && !accepted_o && !free_i;

  assign refused_o = refused_q & ~abandon_i;
  assign refused_reason_o = reason_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      look_q <= 1'b0;
      act_q <= 1'b0;
      sel_q <= '0;
      last_q <= '0;
      waiting_q <= '0;
      refused_q <= '0;
      reason_q <= '0;
    end else begin
      look_q <= look_d;
      act_q <= look_q;
      if (look_d) sel_q <= sel_d;
      waiting_q <= waiting & ~ready_o;
      if (full_o) waiting_q[sel_q] <= 1'b1;
      // A source that joins a miss does not use up its turn for an entry.
      if (allocate_o && waiting_q[sel_q]) last_q <= sel_q;
      refused_q <= refuse_o ? source_o : '0;
      if (refuse_o) reason_q <= refuse_reason_o;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!look_q) begin
      search_q <= req_i[sel_d].pte_addr[PAddrWidth-1:3];
      id_q <= req_i[sel_d].id;
    end
    stayed_q <= valid_i[sel_q];
    my_turn_q <= waiting == '0 || turn == sel_q;
  end

endmodule
