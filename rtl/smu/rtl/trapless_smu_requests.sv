// SPDX-License-Identifier: Apache-2.0
// Requests of walkers and software ports, the misses that they join or begin, and their answers (REQ: SMU-1, SMU-6, SMU-11).

module trapless_smu_requests
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned PmshrEntries = 32,
  parameter int unsigned Harts = 4,
  parameter int unsigned Ports = 4,
  parameter int unsigned Devices = 8,
  parameter int unsigned Updaters = 2,
  parameter int unsigned Socket = 0,
  parameter int unsigned SlotWidth = $clog2(PmshrEntries),
  parameter int unsigned Sources = Harts + Ports
) (
  input logic clk_i,
  input logic rst_ni,
  input smu_req_t [Harts-1:0] req_i,
  input logic [Harts-1:0] req_valid_i,
  output logic [Harts-1:0] req_ready_o,
  output logic [Harts-1:0] rsp_valid_o,
  output logic [Sources-1:0] answer_o,
  output smu_rsp_t [Harts-1:0] rsp_o,
  output logic [Ports-1:0] port_accepted_o,
  input logic [Harts-1:0] abandon_i,
  input logic enable_i,
  output entry_addr_t look_pte_o,
  output entry_addr_t look_pmd_o,
  output entry_addr_t look_pud_o,
  input logic entries_inside_i,
  // A walker or a port asks.
  output logic asking_o,
  output logic join_entry_o,
  output logic refuse_o,
  output reason_t refuse_reason_o,
  output logic [Sources-1:0] refused_o,
  output logic accepted_o,
  output logic full_o,
  input logic [4:0] port_index_i,
  input logic [2:0] port_field_i,
  input logic port_write_i,
  input logic upper_i,
  input logic [63:0] wdata_i,
  output logic [63:0] port_rdata_o,
  output logic port_refused_o,
  output entry_t [PmshrEntries-1:0] entry_o,
  input logic [Updaters-1:0] update_valid_i,
  input logic [Updaters-1:0][SlotWidth-1:0] update_slot_i,
  output logic answer_valid_o,
  output logic [SlotWidth-1:0] answer_slot_o,
  output logic [PmshrEntries-1:0] live_o,
  output logic lookup_valid_o,
  output logic lookup_end_o,
  output logic [SlotWidth-1:0] lookup_slot_o,
  input logic frame_valid_i,
  input logic frame_end_i,
  input logic [SlotWidth-1:0] frame_slot_i,
  input logic [43:0] frame_pfn_i,
  input logic [51:0] frame_dma_i,
  input logic command_valid_i,
  input logic command_end_i,
  input logic [SlotWidth-1:0] command_slot_i,
  input reason_t command_reason_i,
  input logic device_valid_i,
  input logic device_end_i,
  input logic [SlotWidth-1:0] device_slot_i,
  input reason_t device_reason_i,
  input logic completion_matched_i,
  input logic completion_error_i,
  input logic [SlotWidth-1:0] completion_slot_i,
  input logic timeout_valid_i,
  input logic [SlotWidth-1:0] timeout_slot_i,
  input logic kill_i,
  input logic release_desc_i,
  input logic [2:0] desc_index_i,
  input logic [2:0] kill_device_i,
  input logic [Updaters-1:0] pte_valid_i,
  input reason_t [Updaters-1:0] update_reason_i,
  input logic [Updaters-1:0] update_mapped_i,
  input logic [Updaters-1:0][63:0] update_value_i,
  input logic returned_slot_valid_i,
  input logic [SlotWidth-1:0] returned_slot_i,
  input desc_t [Devices-1:0] desc_i,
  output logic lookup_read_valid_o,
  output logic lookup_read_soon_o,
  input logic lookup_read_ready_i,
  output dma_read_t lookup_read_o,
  output logic [5:0] lookup_lane_o,
  input logic lookup_data_valid_i,
  input logic rd_error_i,
  input logic [63:0] rd_data_i,
  input logic [PmshrEntries-1:0] pending_i,
  input logic fence_i,
  input logic drain_i,
  output logic fence_busy_o,
  output logic drain_busy_o
);

  if (PmshrEntries < 4 || PmshrEntries > 64 || (PmshrEntries & (PmshrEntries - 1)) != 0) begin : g_bad_entries
    $error("PmshrEntries must be a power of two from 4 to 64");
  end
  if (Harts < 1 || Harts > 32 || Ports < 1 || Ports > 32) begin : g_bad_harts
    $error("Harts and Ports must be from 1 to 32");
  end
  if (Socket > 7) begin : g_bad_socket
    $error("Socket must be from 0 to 7");
  end

  logic [Sources-1:0] src_ready;
  logic [Harts-1:0] walker_misaligned;
  logic [Harts-1:0][IdWidth-1:0] id_q;
  reason_t [Sources-1:0] answer_reason;
  logic [63:0] answer_value, lookup_value;
  logic [Sources-1:0] src_valid, src_misaligned, src_far, src_abandon, source, waiters;
  logic [Ports-1:0] port_valid, port_misaligned, port_far;
  smu_req_t [Sources-1:0] src_req;
  smu_req_t [Ports-1:0] port_req;
  logic act, hit, has_free, stuck, allocate;
  smu_req_t req;
  entry_addr_t search;
  reason_t refused_reason, lookup_reason;
  logic [PmshrEntries-1:0] answer_leaves;
  logic [SlotWidth-1:0] allocated;

  for (genvar h = 0; h < Harts; h++) begin : g_walker
    assign walker_misaligned[h] = (req_i[h].pte_addr[2:0] | req_i[h].pmd_addr[2:0] | req_i[h].pud_addr[2:0]) != '0;

    always_ff @(posedge clk_i) begin
      if (req_valid_i[h] && req_ready_o[h]) id_q[h] <= req_i[h].id;
    end

    assign rsp_valid_o[h] = answer_o[h];
    assign rsp_o[h] = '{
      id: id_q[h],
      outcome: outcome_of(answer_reason[h]),
      reason: outcome_of(answer_reason[h]) == OutcomeFailed ? 8'(answer_reason[h]) : '0,
      pte: outcome_of(answer_reason[h]) == OutcomeFailed ? '0 : answer_value
    };
  end

  assign look_pte_o = search;
  assign look_pmd_o = req.pmd_addr[PAddrWidth-1:3];
  assign look_pud_o = req.pud_addr[PAddrWidth-1:3];

  assign src_valid = {port_valid, req_valid_i};
  assign asking_o = src_valid != '0;
  assign req_ready_o = src_ready[Harts-1:0];
  assign src_req = {port_req, req_i};
  assign src_misaligned = {port_misaligned, walker_misaligned};
  assign src_far = {port_far, {Harts{1'b0}}};
  assign src_abandon = {{Ports{1'b0}}, abandon_i};

  trapless_smu_front #(.Sources(Sources)) u_front (
    .clk_i,
    .rst_ni,
    .enable_i,
    .valid_i(src_valid),
    .ready_o(src_ready),
    .req_i(src_req),
    .misaligned_i(src_misaligned),
    .far_i(src_far),
    .inside_i(entries_inside_i),
    .abandon_i(src_abandon),
    .act_o(act),
    .req_o(req),
    .search_o(search),
    .hit_i(hit),
    .free_i(has_free),
    .stuck_i(stuck),
    .join_o(join_entry_o),
    .allocate_o(allocate),
    .source_o(source),
    .refuse_o,
    .refuse_reason_o,
    .refused_o,
    .refused_reason_o(refused_reason),
    .accepted_o,
    .full_o
  );

  trapless_smu_ports #(.Ports(Ports)) u_ports (
    .clk_i,
    .rst_ni,
    .index_i(port_index_i),
    .field_i(port_field_i),
    .write_i(port_write_i),
    .upper_i,
    .wdata_i,
    .rdata_o(port_rdata_o),
    .refused_o(port_refused_o),
    .valid_o(port_valid),
    .ready_i(src_ready[Sources-1:Harts]),
    .req_o(port_req),
    .misaligned_o(port_misaligned),
    .far_o(port_far),
    .answer_i(answer_o[Sources-1:Harts]),
    .reason_i(answer_reason[Sources-1:Harts]),
    .value_i(answer_value)
  );

  trapless_smu_answer #(.Entries(PmshrEntries), .Sources(Sources), .Updaters(Updaters)) u_answer (
    .clk_i,
    .rst_ni,
    .entry_i(entry_o),
    .update_valid_i,
    .update_slot_i,
    .valid_o(answer_valid_o),
    .slot_o(answer_slot_o),
    .leaves_o(answer_leaves),
    .waiters_i(waiters),
    .refused_i(refused_o),
    .refused_reason_i(refused_reason),
    .answer_o,
    .reason_o(answer_reason),
    .value_o(answer_value)
  );

  trapless_smu_pmshr #(.Entries(PmshrEntries), .Sources(Sources), .Updaters(Updaters)) u_pmshr (
    .clk_i,
    .rst_ni,
    .entry_o,
    .live_o,
    .req_i(req),
    .search_i(search),
    .hit_o(hit),
    .free_o(has_free),
    .stuck_o(stuck),
    .act_i(act),
    .join_i(join_entry_o),
    .allocate_i(allocate),
    .source_i(source),
    .abandon_i(src_abandon),
    .allocated_o(allocated),
    .lookup_valid_i(lookup_valid_o),
    .lookup_end_i(lookup_end_o),
    .lookup_slot_i(lookup_slot_o),
    .lookup_reason_i(lookup_reason),
    .lookup_value_i(lookup_value),
    .frame_valid_i,
    .frame_end_i,
    .frame_slot_i,
    .frame_pfn_i,
    .frame_dma_i,
    .command_valid_i,
    .command_end_i,
    .command_slot_i,
    .command_reason_i,
    .device_valid_i,
    .device_end_i,
    .device_slot_i,
    .device_reason_i,
    .completion_valid_i(completion_matched_i),
    .completion_error_i,
    .completion_slot_i,
    .timeout_valid_i,
    .timeout_slot_i,
    .kill_i,
    .release_i(release_desc_i),
    .kill_device_i,
    .pte_valid_i,
    .update_valid_i,
    .update_slot_i,
    .update_reason_i,
    .update_mapped_i,
    .update_value_i,
    .answer_slot_i(answer_slot_o),
    .answer_leaves_i(answer_leaves),
    .waiters_o(waiters),
    .returned_valid_i(returned_slot_valid_i),
    .returned_slot_i
  );

  trapless_smu_lookup #(.Entries(PmshrEntries), .Devices(Devices), .Socket(3'(Socket))) u_lookup (
    .clk_i,
    .rst_ni,
    .entry_i(entry_o),
    .desc_i,
    .look_i(act),
    .allocate_i(allocate),
    .allocated_i(allocated),
    .read_valid_o(lookup_read_valid_o),
    .read_soon_o(lookup_read_soon_o),
    .read_ready_i(lookup_read_ready_i),
    .read_o(lookup_read_o),
    .lane_o(lookup_lane_o),
    .data_valid_i(lookup_data_valid_i),
    .data_error_i(rd_error_i),
    .data_i(rd_data_i),
    .valid_o(lookup_valid_o),
    .end_o(lookup_end_o),
    .slot_o(lookup_slot_o),
    .reason_o(lookup_reason),
    .value_o(lookup_value)
  );

  trapless_smu_fence #(.Entries(PmshrEntries), .Devices(Devices)) u_fence (
    .clk_i,
    .rst_ni,
    .allocate_i(allocate),
    .slot_i(allocated),
    .device_i(req.pte[PTE_DEVICE_MSB:PTE_DEVICE_LSB]),
    .live_i(live_o),
    .pending_i,
    .index_i(desc_index_i),
    .fence_i,
    .drain_i,
    .fence_busy_o,
    .drain_busy_o
  );

  assign port_accepted_o = src_ready[Sources-1:Harts];

endmodule
