// SPDX-License-Identifier: Apache-2.0
// No frame is lost and none is given twice (REQ: SMU-5): every frame taken from the free ring is in the buffer, with an entry, on
// its way back, installed or returned, and it is in only one of these places.
`include "claim.svh"

module unit_frames
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Any one frame. The operating system gives it only while the unit does not have it (an assumption).
`ifdef CLAIMS_SIMULATED
  logic [43:0] frame, frame_q;
  logic seen_q;
  // In simulation, this is the first frame that comes.
  assign frame = seen_q ? frame_q : `SMU.u_rings.u_free.read_q[43:0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) seen_q <= 1'b0;
    else if (`SMU.u_rings.u_free.took) seen_q <= 1'b1;
  end
  always_ff @(posedge clk_i) frame_q <= frame;
`else
  (* anyconst *) logic [43:0] frame;
`endif

  localparam int unsigned PlaceWidth = $clog2(Prefetch);
  logic [PlaceWidth-1:0] free_ptr;
  logic [PlaceWidth:0] free_count;
  logic [7:0] taken_q, left_q, here, places;
  logic have_q, given, took, latch;
  logic [Updaters-1:0] put;

  assign took = `SMU.u_rings.u_free.took;
  assign given = took && `SMU.u_rings.u_free.read_q[43:0] == frame;
  assign latch = !`SMU.ret_empty;
  assign free_count = `SMU.u_rings.u_free.count_q;

  always_comb begin
    for (int unsigned u = 0; u < Updaters; u++) put[u] = `SMU.pte_valid[u] && `SMU.entry[`SMU.update_slot[u]].pfn == frame;
  end

  `ASSUME(!given || !have_q)

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= '0;
      left_q <= '0;
      have_q <= 1'b0;
    end else begin
      taken_q <= taken_q + 8'(took);
      left_q <= left_q + 8'($countones(`SMU.pte_valid)) + 8'(`SMU.returned);
      if (given) have_q <= 1'b1;
      else if (put != '0 || (`SMU.returned && `SMU.u_rings.u_return.pfn_q == frame)) have_q <= 1'b0;
    end
  end

  always_comb begin
    here = 8'(free_count) + 8'(`SMU.u_rings.u_free.bad_q) + 8'(latch && !`SMU.u_rings.u_return.from_slot_q);
    places = 8'(`SMU.u_rings.u_free.bad_q && `SMU.u_rings.u_free.read_q[43:0] == frame)
        + 8'(latch && !`SMU.u_rings.u_return.from_slot_q && `SMU.u_rings.u_return.pfn_q == frame);
    free_ptr = '0;
    for (int unsigned k = 0; k < Prefetch; k++) begin
      free_ptr = `SMU.u_rings.u_free.rptr_q + PlaceWidth'(k);
      if (k < 32'(free_count) && `SMU.u_rings.u_free.buffer_q[free_ptr][43:0] == frame) places = places + 8'd1;
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      here = here + 8'(`SMU.entry[i].frame);
      places = places + 8'(`SMU.entry[i].frame && `SMU.entry[i].pfn == frame);
    end
  end

  `CLAIM(buffer_pointers, 32'(free_count) == Prefetch, 32'(free_count) <= Prefetch
      && `SMU.u_rings.u_free.wptr_q == `SMU.u_rings.u_free.rptr_q + free_count[PlaceWidth-1:0])
  `CLAIM(fetch_has_room, `SMU.u_rings.u_free.state_q != 2'd0, `SMU.u_rings.u_free.state_q == 2'd0
      || (32'(free_count) < Prefetch && !`SMU.u_rings.u_free.bad_q))
  `CLAIM(frames_conserved, here == 8'(Prefetch + 1), taken_q - left_q == here)
  `CLAIM(frame_in_one_place, have_q, places == 8'(have_q))
  `CLAIM_WHEN(frame_returned_as_it_is, latch && `SMU.u_rings.u_return.from_slot_q, `SMU.u_rings.u_return.state_q == 2'd1
      || (`SMU.u_rings.u_return.pfn_q == `SMU.entry[`SMU.returned_slot].pfn
      && `SMU.u_rings.u_return.mapped_q == `SMU.entry[`SMU.returned_slot].mapped))
  // REQ: SMU-13
  `CLAIM_WHEN(prefetched_is_not_mapped, latch, `SMU.u_rings.u_return.from_slot_q || !`SMU.u_rings.u_return.mapped_q)

  // The rings: entries are read only in the free ring and written only in the return ring, each at the index of its turn.
  logic [31:0] free_index, ret_index;
  assign free_index = `SMU.free_head & (`SMU.free_size - 32'd1);
  assign ret_index = `SMU.ret_tail & (`SMU.ret_size - 32'd1);

  `CLAIM(level_known, `SMU.u_rings.u_free.has_entry_q && `SMU.u_rings.u_free.state_q == 2'd0,
      !(`SMU.u_rings.u_free.has_entry_q && `SMU.u_rings.u_free.state_q == 2'd0 && !`SMU.u_rings.u_free.has_entry)
      && !(`SMU.u_rings.u_free.empty_q && `SMU.u_rings.u_free.has_entry))
  `CLAIM(picked_waits, `SMU.u_rings.u_return.state_q == 2'd0 && `SMU.u_rings.u_return.any_q,
      `SMU.u_rings.u_return.state_q != 2'd0 || !`SMU.u_rings.u_return.any_q
      || `SMU.u_rings.u_return.waiting[`SMU.u_rings.u_return.pick_q])
  `CLAIM(fetch_address, `SMU.u_rings.u_free.state_q != 2'd0, `SMU.u_rings.u_free.state_q == 2'd0
      || `SMU.u_rings.u_free.address_q == `SMU.free_base + {28'b0, free_index, 4'b0})
  `CLAIM(return_address, `SMU.u_rings.u_return.state_q == 2'd2, `SMU.u_rings.u_return.state_q != 2'd2
      || `SMU.u_rings.u_return.address_q == `SMU.ret_base + {28'b0, ret_index, 4'b0})
  `CLAIM(return_full_known, `SMU.u_rings.u_return.full_q, `SMU.u_rings.u_return.state_q inside {2'd2, 2'd3}
      || `SMU.u_rings.u_return.full_q || `SMU.ret_tail - `SMU.ret_head < `SMU.ret_size)

  function automatic logic power_of_two(logic [31:0] size);
    return (size & (size - 32'd1)) == '0;
  endfunction

  `CLAIM(ring_sizes, `SMU.free_size > 32'd1, power_of_two(`SMU.free_size) && power_of_two(`SMU.ret_size)
      && `SMU.free_base[3:0] == '0 && `SMU.ret_base[3:0] == '0)
  `CLAIM(free_ring_level, `SMU.free_tail - `SMU.free_head > 32'd1, `SMU.free_tail - `SMU.free_head <= `SMU.free_size)
  `CLAIM(return_ring_level, `SMU.ret_tail - `SMU.ret_head == `SMU.ret_size && `SMU.ret_size != '0,
      `SMU.ret_tail - `SMU.ret_head <= `SMU.ret_size)
  `CLAIM_WHEN(ring_read_where_filled, (`SMU.m_axi_arvalid && `SMU.m_axi_arid == RdFree),
      `SMU.m_axi_araddr == `SMU.free_base + {28'b0, free_index, 4'b0} && `SMU.free_head != `SMU.free_tail)
  `CLAIM(fetch_only_filled, `SMU.u_rings.u_free.state_q != 2'd0, `SMU.u_rings.u_free.state_q == 2'd0
      || `SMU.free_head != `SMU.free_tail)
  `CLAIM(return_only_where_free, `SMU.u_rings.u_return.state_q == 2'd2, `SMU.u_rings.u_return.state_q != 2'd2
      || `SMU.ret_tail - `SMU.ret_head < `SMU.ret_size)
  `CLAIM_WHEN(ring_written_where_free, (`SMU.m_axi_awvalid && `SMU.m_axi_awid == WrReturn),
      `SMU.m_axi_awaddr == `SMU.ret_base + {28'b0, ret_index, 4'b0} && `SMU.ret_tail - `SMU.ret_head < `SMU.ret_size)

endmodule

bind trapless_smu unit_frames u_frames (.*);
