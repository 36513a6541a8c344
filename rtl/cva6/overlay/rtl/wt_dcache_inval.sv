// SPDX-License-Identifier: Apache-2.0
// Invalidation of single lines of the write-through data cache after another master has written to them in memory. The tags
// are looked up on a read port of the cache's memory. Only a way that holds the line is invalidated: the miss unit's packet for
// invalidation is put into the return path in a cycle in which nothing returns. A fill of the line that is in flight in the
// cycle of the lookup may bring the old value. The miss unit gives this fill to the requester that waits for it, and does not
// keep it. The lookup of a line that is not cached takes two cycles.
module wt_dcache_inval
  import ariane_pkg::*;
  import wt_cache_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic                   inval_valid_i,
  output logic                   inval_ready_o,  // the cache does not hold the line
  input  logic [riscv::PLEN-1:0] inval_addr_i,

  // Lookup of tags.
  output logic                           rd_req_o,
  input  logic                           rd_ack_i,
  output logic [DCACHE_TAG_WIDTH-1:0]    rd_tag_o,
  output logic [DCACHE_CL_IDX_WIDTH-1:0] rd_idx_o,
  input  logic [DCACHE_SET_ASSOC-1:0]    rd_hit_oh_i,

  // To the miss unit: a fill of the line is stale.
  output logic stale_valid_o,

  // Return path.
  input  logic         rtrn_vld_i,
  input  dcache_rtrn_t rtrn_i,
  output logic         rtrn_vld_o,
  output dcache_rtrn_t rtrn_o
);
  typedef enum logic [1:0] {Lookup, Compare, Invalidate} state_e;
  state_e state_d, state_q;
  logic [DCACHE_SET_ASSOC-1:0]  hit_q;
  logic [L1D_WAY_WIDTH-1:0]     way;

  assign rd_req_o      = state_q == Lookup && inval_valid_i;
  assign rd_tag_o      = inval_addr_i[DCACHE_INDEX_WIDTH +: DCACHE_TAG_WIDTH];
  assign rd_idx_o      = inval_addr_i[DCACHE_INDEX_WIDTH-1:DCACHE_OFFSET_WIDTH];
  assign stale_valid_o = state_q == Compare;

  lzc #(
    .WIDTH(DCACHE_SET_ASSOC)
  ) i_way (
    .in_i   (hit_q),
    .cnt_o  (way),
    .empty_o()
  );

  always_comb begin
    state_d       = state_q;
    inval_ready_o = 1'b0;
    rtrn_vld_o    = rtrn_vld_i;
    rtrn_o        = rtrn_i;
    unique case (state_q)
      Lookup: if (rd_req_o && rd_ack_i) state_d = Compare;
      Compare: begin
        inval_ready_o = rd_hit_oh_i == '0;
        state_d       = inval_ready_o ? Lookup : Invalidate;
      end
      default: if (!rtrn_vld_i) begin
        rtrn_vld_o     = 1'b1;
        rtrn_o         = '0;
        rtrn_o.rtype   = DCACHE_INV_REQ;
        rtrn_o.inv.vld = 1'b1;
        rtrn_o.inv.idx = inval_addr_i[DCACHE_INDEX_WIDTH-1:0];
        rtrn_o.inv.way = $bits(rtrn_o.inv.way)'(way);
        inval_ready_o  = 1'b1;
        state_d        = Lookup;
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Lookup;
      hit_q   <= '0;
    end else begin
      state_q <= state_d;
      if (state_q == Compare) hit_q <= rd_hit_oh_i;
    end
  end
endmodule
