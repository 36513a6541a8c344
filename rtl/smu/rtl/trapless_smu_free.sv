// SPDX-License-Identifier: Apache-2.0
// Free page fetcher: fetches frames ahead into a buffer, from the ring through which the operating system gives them (REQ:
// SMU-5). Entries that wait for a frame are served in order.
`include "trapless_smu_ff.svh"

module trapless_smu_free
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Prefetch = 16,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic enable_i,
  // No read begins while this is set: the ring is being set up.
  input logic hold_i,
  output logic busy_o,
  // Nothing is under way, and nothing is to be fetched.
  output logic rest_o,

  // ring registers
  input logic set_base_i,
  input logic set_size_i,
  input logic set_tail_i,
  input logic [63:0] wdata_i,
  output logic [63:0] base_o,
  output logic [31:0] size_o,
  output logic [31:0] head_o,
  output logic [31:0] tail_o,
  output logic [31:0] used_o,
  output logic error_o,

  // entries that want a frame
  input logic want_i,
  input logic [SlotWidth-1:0] want_slot_i,

  output logic read_valid_o,
  input logic read_ready_i,
  output dma_read_t read_o,
  input logic data_valid_i,
  input logic data_error_i,
  input logic [127:0] data_i,

  output logic valid_o,
  output logic end_o,
  output logic [SlotWidth-1:0] slot_o,
  output logic [43:0] pfn_o,
  output logic [51:0] dma_o,

  // frames that go back unused: first the frame of a malformed entry, then those fetched ahead before the unit was disabled
  input logic return_full_i,
  output logic return_valid_o,
  output logic [43:0] return_pfn_o,
  output reason_t return_reason_o,
  input logic return_taken_i,
  output logic empty_o
);

  localparam int unsigned PtrWidth = Prefetch > 1 ? $clog2(Prefetch) : 1;
  typedef enum logic [1:0] { FetchIdle, FetchAsk, FetchWait, FetchTake } fetch_e;

  fetch_e state_q, state_d;
  logic [63:0] base_q, address_q;
  logic [31:0] size_q, head_q, tail_q, used_q;
  logic broken_q;
  logic [Prefetch-1:0][95:0] buffer_q;
  logic [PtrWidth-1:0] rptr_q, wptr_q;
  logic [PtrWidth:0] count_q;
  // The ring entry that was read. A malformed one stays until its frame is handed back.
  logic [127:0] read_q;
  logic read_error_q, bad_q;

  logic waiting, has_entry, has_entry_q, empty_q, wanted, malformed, took, push, give, none, hand_back, take_bad, pop, fetching, tail_fits;

  trapless_smu_fifo #(.Width(SlotWidth), .Depth(Entries)) u_waiters (
    .clk_i,
    .rst_ni,
    .push_i(want_i),
    .data_i(want_slot_i),
    .valid_o(waiting),
    .data_o(slot_o),
    .pop_i(valid_o)
  );

  function automatic logic [PtrWidth-1:0] next(logic [PtrWidth-1:0] ptr);
    return ptr == PtrWidth'(Prefetch - 1) ? '0 : ptr + 1'b1;
  endfunction

  // A frame number too large for the PTE's field, or a DMA address not aligned to a page, would reach outside the frame.
  assign malformed = read_q[63:44] != '0 || read_q[75:64] != '0;
  assign took = state_q == FetchTake && !read_error_q;
  // Known one cycle later: `has_entry_q` is true until head or tail moves, `empty_q` until the tail moves.
  assign has_entry = !broken_q && head_q != tail_q;
  assign wanted = enable_i ? count_q != (PtrWidth+1)'(Prefetch) : count_q == '0 && waiting;

  assign give = waiting && count_q != '0;
  // No frame is here and none will come: the ring is empty, or a malformed entry whose frame cannot be handed back stops it.
  assign none = waiting && count_q == '0 && state_q == FetchIdle && !hold_i && (empty_q || (bad_q && return_full_i));
  assign valid_o = give || none;
  assign end_o = none;
  assign {dma_o, pfn_o} = buffer_q[rptr_q];

  assign hand_back = !enable_i && !waiting && count_q != '0;
  assign return_valid_o = bad_q || hand_back;
  // Of a malformed entry, only the bits of a frame number are returned: nobody may choose all bits of a word that the SMU writes
  // (REQ: SMU-15).
  assign return_pfn_o = bad_q ? read_q[43:0] : pfn_o;
  assign return_reason_o = bad_q ? reason_t'(REASON_BAD_ENTRY) : reason_t'(REASON_DISABLED);
  assign take_bad = return_taken_i && bad_q;
  assign pop = give || (return_taken_i && !bad_q);
  assign empty_o = count_q == '0 && !bad_q && state_q == FetchIdle;

  assign busy_o = state_q != FetchIdle;
  assign rest_o = !busy_o && !(has_entry && wanted && !bad_q);
  assign read_valid_o = state_q == FetchAsk;
  assign read_o = '{
    addr: address_q,
    wide: 1'b1,
    exclusive: 1'b0
  };

  // Software cannot take back the entry that is being fetched.
  assign tail_fits = wdata_i[31:0] - head_q <= size_q && !(fetching && wdata_i[31:0] == head_q);
  assign fetching = state_q != FetchIdle || state_d != FetchIdle;
  assign error_o = (state_q == FetchTake && (read_error_q || malformed)) || (set_tail_i && !tail_fits);
  assign push = took && !malformed;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      FetchIdle: if (has_entry_q && wanted && !bad_q && !hold_i) state_d = FetchAsk;
      FetchAsk: if (read_ready_i) state_d = FetchWait;
      FetchWait: if (data_valid_i) state_d = FetchTake;
      default: state_d = FetchIdle;
    endcase
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= FetchIdle;
      has_entry_q <= 1'b0;
      empty_q <= 1'b0;
      base_q <= '0;
      size_q <= '0;
      head_q <= '0;
      tail_q <= '0;
      used_q <= '0;
      broken_q <= 1'b0;
      rptr_q <= '0;
      wptr_q <= '0;
      count_q <= '0;
      bad_q <= 1'b0;
    end else begin
      state_q <= state_d;
      has_entry_q <= has_entry && state_q == FetchIdle && !set_base_i && !set_size_i && !set_tail_i;
      empty_q <= !has_entry && !set_tail_i;
      if (state_q == FetchTake && read_error_q) broken_q <= 1'b1;
      if (took) head_q <= head_q + 32'd1;
      if (took && malformed) bad_q <= 1'b1;
      if (take_bad) bad_q <= 1'b0;
      if (give) used_q <= used_q + 32'd1;
      if (push) wptr_q <= next(wptr_q);
      if (pop) rptr_q <= next(rptr_q);
      if (push != pop) count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
      if (set_tail_i && tail_fits) tail_q <= wdata_i[31:0];
      if (set_base_i) base_q <= wdata_i;
      if (set_size_i) size_q <= wdata_i[31:0];
      if (set_base_i || set_size_i) begin
        head_q <= '0;
        tail_q <= '0;
        used_q <= '0;
        broken_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == FetchIdle) address_q <= base_q + {28'b0, head_q & (size_q - 32'd1), 4'b0};
    if (data_valid_i) begin
      read_q <= data_i;
      read_error_q <= data_error_i;
    end
    if (push) buffer_q[wptr_q] <= {read_q[127:76], read_q[43:0]};
  end

  assign base_o = base_q;
  assign size_o = size_q;
  assign head_o = head_q;
  assign tail_o = tail_q;
  assign used_o = used_q;

endmodule
