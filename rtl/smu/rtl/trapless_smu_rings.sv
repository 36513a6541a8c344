// SPDX-License-Identifier: Apache-2.0
// Frames: the free ring, the buffer of frames fetched ahead, and the return ring (REQ: SMU-5).

module trapless_smu_rings
  import trapless_smu_pkg::*;
#(
  parameter int unsigned PmshrEntries = 32,
  parameter int unsigned PrefetchDepth = 16,
  parameter int unsigned SlotWidth = $clog2(PmshrEntries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic enable_i,
  input logic hold_i,
  input logic free_base_set_i,
  input logic free_size_set_i,
  input logic free_tail_set_i,
  input logic [63:0] wdata_i,
  output logic [63:0] free_base_o,
  output logic [31:0] free_size_o,
  output logic [31:0] free_head_o,
  output logic [31:0] free_tail_o,
  output logic [31:0] free_used_o,
  output logic free_error_o,
  input logic lookup_valid_i,
  input logic lookup_end_i,
  input logic [SlotWidth-1:0] lookup_slot_i,
  output logic free_read_valid_o,
  input logic free_read_ready_i,
  output dma_read_t free_read_o,
  input logic free_data_valid_i,
  input logic rd_wide_error_i,
  input logic [127:0] rd_wide_i,
  output logic frame_valid_o,
  output logic frame_end_o,
  output logic [SlotWidth-1:0] frame_slot_o,
  output logic [43:0] frame_pfn_o,
  output logic [51:0] frame_dma_o,
  output logic free_empty_o,
  input entry_t [PmshrEntries-1:0] entry_i,
  input logic ret_inside_i,
  input logic ret_base_set_i,
  input logic ret_size_set_i,
  input logic ret_head_set_i,
  output logic [63:0] ret_base_o,
  output logic [31:0] ret_size_o,
  output logic [31:0] ret_head_o,
  output logic [31:0] ret_tail_o,
  output logic ret_error_o,
  output logic ret_write_valid_o,
  output logic ret_write_soon_o,
  output dma_write_t ret_write_o,
  input logic ret_write_done_i,
  input logic wr_error_i,
  output logic returned_o,
  output logic returned_slot_valid_o,
  output logic [SlotWidth-1:0] returned_slot_o,
  output logic ret_empty_o,
  output logic rings_busy_o,
  output logic rings_rest_o
);

  if (PrefetchDepth < 2 || PrefetchDepth > 64) begin : g_bad_prefetch
    $error("PrefetchDepth must be from 2 to 64");
  end

  logic free_busy, free_rest, ret_rest, ret_full, free_return_valid, free_return_taken, ret_busy;
  logic [43:0] free_return_pfn;
  reason_t free_return_reason;

  trapless_smu_free #(.Entries(PmshrEntries), .Prefetch(PrefetchDepth)) u_free (
    .clk_i,
    .rst_ni,
    .enable_i,
    .hold_i,
    .busy_o(free_busy),
    .rest_o(free_rest),
    .set_base_i(free_base_set_i),
    .set_size_i(free_size_set_i),
    .set_tail_i(free_tail_set_i),
    .wdata_i,
    .base_o(free_base_o),
    .size_o(free_size_o),
    .head_o(free_head_o),
    .tail_o(free_tail_o),
    .used_o(free_used_o),
    .error_o(free_error_o),
    .want_i(lookup_valid_i && !lookup_end_i),
    .want_slot_i(lookup_slot_i),
    .read_valid_o(free_read_valid_o),
    .read_ready_i(free_read_ready_i),
    .read_o(free_read_o),
    .data_valid_i(free_data_valid_i),
    .data_error_i(rd_wide_error_i),
    .data_i(rd_wide_i),
    .valid_o(frame_valid_o),
    .end_o(frame_end_o),
    .slot_o(frame_slot_o),
    .pfn_o(frame_pfn_o),
    .dma_o(frame_dma_o),
    .return_full_i(ret_full),
    .return_valid_o(free_return_valid),
    .return_pfn_o(free_return_pfn),
    .return_reason_o(free_return_reason),
    .return_taken_i(free_return_taken),
    .empty_o(free_empty_o)
  );

  trapless_smu_return #(.Entries(PmshrEntries)) u_return (
    .clk_i,
    .rst_ni,
    .hold_i,
    .busy_o(ret_busy),
    .rest_o(ret_rest),
    .entry_i,
    .set_base_i(ret_base_set_i),
    .set_size_i(ret_size_set_i),
    .set_head_i(ret_head_set_i),
    .inside_i(ret_inside_i),
    .wdata_i,
    .base_o(ret_base_o),
    .size_o(ret_size_o),
    .head_o(ret_head_o),
    .tail_o(ret_tail_o),
    .error_o(ret_error_o),
    .free_valid_i(free_return_valid),
    .free_pfn_i(free_return_pfn),
    .free_reason_i(free_return_reason),
    .free_taken_o(free_return_taken),
    .write_valid_o(ret_write_valid_o),
    .write_soon_o(ret_write_soon_o),
    .write_o(ret_write_o),
    .done_valid_i(ret_write_done_i),
    .done_error_i(wr_error_i),
    .returned_o,
    .slot_valid_o(returned_slot_valid_o),
    .slot_o(returned_slot_o),
    .full_o(ret_full),
    .empty_o(ret_empty_o)
  );

  assign rings_busy_o = free_busy || ret_busy;
  assign rings_rest_o = free_rest && ret_rest;

endmodule
