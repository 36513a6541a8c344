// SPDX-License-Identifier: Apache-2.0
// Return ring: frames that were taken and not installed go back to the operating system (REQ: SMU-5). While the ring is full,
// broken, or in no window, frames stay where they are. A frame that a PTE may map is marked as such (REQ: SMU-13).
`include "trapless_smu_ff.svh"

module trapless_smu_return
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic hold_i,
  output logic busy_o,
  // Nothing is under way, and there is nothing to write, or it cannot be written.
  output logic rest_o,
  input entry_t [Entries-1:0] entry_i,

  // ring registers
  input logic set_base_i,
  input logic set_size_i,
  input logic set_head_i,
  input logic [63:0] wdata_i,
  // The ring lies in a window, or no window is in force (REQ: SMU-15).
  input logic inside_i,
  output logic [63:0] base_o,
  output logic [31:0] size_o,
  output logic [31:0] head_o,
  output logic [31:0] tail_o,
  output logic error_o,

  // frames of the free page fetcher
  input logic free_valid_i,
  input logic [43:0] free_pfn_i,
  input reason_t free_reason_i,
  output logic free_taken_o,

  output logic write_valid_o,
  output logic write_soon_o,
  output dma_write_t write_o,
  input logic done_valid_i,
  input logic done_error_i,

  output logic returned_o,
  output logic slot_valid_o,
  output logic [SlotWidth-1:0] slot_o,
  // Nothing can be written now.
  output logic full_o,
  output logic empty_o
);

  typedef enum logic [1:0] { RetIdle, RetHave, RetWrite, RetDone } ret_e;

  ret_e state_q, state_d;
  logic [63:0] base_q, address_q;
  logic [43:0] pfn_q;
  logic [31:0] size_q, head_q, tail_q;
  logic broken_q, full_q, from_slot_q, mapped_q;
  logic [63:0] reason_word;
  reason_t reason_q;
  logic [SlotWidth-1:0] slot_q, pick, pick_q, last_q;
  logic [Entries-1:0] waiting;
  logic any, any_q, head_fits, take;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      waiting[i] = entry_i[i].frame && !entry_i[i].command && entry_i[i].stage inside {StAnswer, StOver};
    end
  end

  trapless_smu_rr #(.Count(Entries)) u_pick (
    .req_i(waiting),
    .last_i(last_q),
    .valid_o(any),
    .sel_o(pick)
  );

  // `pick_q` is one cycle old, which suffices: an entry waits here until it is served, and in RetDone it already waits no more.
  // `full_q` comes from the indices of the cycle before. They change with RetDone, and when software sets them.
  assign full_o = full_q;
  assign take = state_q == RetIdle && !full_o && (any_q || free_valid_i);
  assign free_taken_o = take && !any_q;

  always_comb begin
    reason_word = '0;
    reason_word[RETURNED_REASON_MSB:RETURNED_REASON_LSB] = 8'(reason_q);
    reason_word[RETURNED_MAPPED_BIT] = mapped_q;
  end

  assign write_valid_o = state_q == RetWrite;
  assign write_soon_o = state_q == RetHave && !full_o;
  assign write_o = '{
    addr: address_q,
    size: 3'd4,
    exclusive: 1'b0,
    atop: AtopNone,
    data: {4{reason_word, 64'(pfn_q)}}
  };

  assign returned_o = done_valid_i && !done_error_i;
  assign slot_valid_o = returned_o && from_slot_q;
  assign slot_o = slot_q;
  assign busy_o = state_q == RetWrite;
  assign rest_o = full_q ? state_q inside {RetIdle, RetHave} : state_q == RetIdle && !any && !any_q && !free_valid_i;
  assign empty_o = state_q inside {RetIdle, RetDone};

  assign head_fits = tail_q - wdata_i[31:0] <= tail_q - head_q;
  assign error_o = (done_valid_i && done_error_i) || (set_head_i && !head_fits);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      RetIdle: if (take) state_d = RetHave;
      RetHave: if (!full_o && !hold_i) state_d = RetWrite;
      RetWrite: if (done_valid_i) state_d = done_error_i ? RetHave : RetDone;
      default: state_d = RetIdle;
    endcase
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= RetIdle;
      base_q <= '0;
      size_q <= '0;
      head_q <= '0;
      tail_q <= '0;
      broken_q <= 1'b0;
      full_q <= 1'b1;
      last_q <= '0;
      any_q <= 1'b0;
    end else begin
      state_q <= state_d;
      full_q <= broken_q || (done_valid_i && done_error_i) || set_base_i || set_size_i || !inside_i || tail_q - head_q >= size_q;
      any_q <= any;
      if (take && any_q) last_q <= pick_q;
      if (done_valid_i && done_error_i) broken_q <= 1'b1;
      if (returned_o) tail_q <= tail_q + 32'd1;
      if (set_head_i && head_fits) head_q <= wdata_i[31:0];
      if (set_base_i) base_q <= wdata_i;
      if (set_size_i) size_q <= wdata_i[31:0];
      if (set_base_i || set_size_i) begin
        head_q <= '0;
        tail_q <= '0;
        broken_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    pick_q <= pick;
    if (state_q == RetHave) address_q <= base_q + {28'b0, tail_q & (size_q - 32'd1), 4'b0};
    if (take) begin
      from_slot_q <= any_q;
      slot_q <= pick_q;
      pfn_q <= free_pfn_i;
      reason_q <= free_reason_i;
      mapped_q <= 1'b0;
    end else if (state_q == RetHave && from_slot_q) begin
      pfn_q <= entry_i[slot_q].pfn;
      reason_q <= entry_i[slot_q].reason;
      mapped_q <= entry_i[slot_q].mapped;
    end
  end

  assign base_o = base_q;
  assign size_o = size_q;
  assign head_o = head_q;
  assign tail_o = tail_q;

endmodule
