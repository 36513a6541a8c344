// SPDX-License-Identifier: Apache-2.0
// The NVMe host controller: writes commands to submission queues, reads completion queues, keeps queue descriptors, and rings
// doorbells (REQ: SMU-9, SMU-14). All queues are in memory, and the same submodules serve them. Doorbells are at the
// devices, and each device has its own submodule for them.
`include "trapless_smu_ff.svh"

module trapless_smu_nvme
  import trapless_smu_pkg::*;
#(
  parameter int unsigned PmshrEntries = 32,
  parameter int unsigned Devices = 8,
  parameter int unsigned PollInterval = 0,
  parameter int unsigned DoorbellCycles = 65536,
  parameter logic [2:0] AxiProt = 3'b010,
  parameter int unsigned StreamIdWidth = 1,
  parameter logic [StreamIdWidth-1:0] StreamId = '0,
  parameter int unsigned SlotWidth = $clog2(PmshrEntries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic hold_i,
  input entry_t [PmshrEntries-1:0] entry_i,
  output desc_t [Devices-1:0] desc_o,
  // `lost_o`: a device goes out of use because of an error. `kill_o`: all misses at `kill_device_o` end, some cycles after its
  // loss, or when software releases it.
  output logic lost_o,
  output logic kill_o,
  output logic [2:0] kill_device_o,
  input logic frame_valid_i,
  input logic frame_end_i,
  input logic [SlotWidth-1:0] frame_slot_i,
  output logic sqe_valid_o,
  output logic sqe_soon_o,
  output dma_write_t sqe_write_o,
  input logic sqe_done_i,
  input logic wr_error_i,
  output logic submitted_o,
  output logic command_valid_o,
  output logic command_end_o,
  output logic [SlotWidth-1:0] command_slot_o,
  output reason_t command_reason_o,
  output logic device_valid_o,
  output logic device_end_o,
  output logic [SlotWidth-1:0] device_slot_o,
  output reason_t device_reason_o,
  input logic [63:0] timeout_i,
  input logic expire_i,
  input logic [2:0] desc_index_i,
  input logic snoop_valid_i,
  input logic [63:0] snoop_addr_i,
  output logic cqe_valid_o,
  output logic cqe_soon_o,
  input logic cqe_ready_i,
  output dma_read_t cqe_read_o,
  input logic cqe_data_valid_i,
  input logic rd_error_i,
  input logic [63:0] rd_data_i,
  output logic completion_matched_o,
  output logic stray_o,
  output logic completion_error_o,
  output logic [SlotWidth-1:0] completion_slot_o,
  output logic [14:0] completion_status_o,
  output logic install_soon_o,
  output logic install_o,
  output logic timeout_valid_o,
  output logic [SlotWidth-1:0] timeout_slot_o,
  input logic [3:0] desc_field_i,
  input logic desc_write_i,
  input logic [63:0] wdata_i,
  output logic [63:0] desc_rdata_o,
  output logic desc_refused_o,
  output logic release_desc_o,
  output logic nvme_busy_o,
  output desc_t desc_selected_o,
  input logic desc_inside_i,
  // No descriptor is valid, no command is at a device, and no doorbell is due or under way.
  output logic nvme_quiet_o,
  // No command is on its way to a queue, and no doorbell is due or under way.
  output logic nvme_rest_o,

  output logic [Devices-1:0][63:0] m_db_awaddr,
  output logic [Devices-1:0][2:0] m_db_awprot,
  output logic [Devices-1:0][StreamIdWidth-1:0] m_db_awuser,
  output logic [Devices-1:0] m_db_awvalid,
  input logic [Devices-1:0] m_db_awready,
  output logic [Devices-1:0][31:0] m_db_wdata,
  output logic [Devices-1:0][3:0] m_db_wstrb,
  output logic [Devices-1:0] m_db_wvalid,
  input logic [Devices-1:0] m_db_wready,
  input logic [Devices-1:0][1:0] m_db_bresp,
  input logic [Devices-1:0] m_db_bvalid,
  output logic [Devices-1:0] m_db_bready
);

  if (Devices < 1 || Devices > 8) begin : g_bad_devices
    $error("Devices must be from 1 to 8");
  end
  if (DoorbellCycles < 2 || DoorbellCycles > 2**30) begin : g_bad_doorbell
    $error("DoorbellCycles must be from 2 to 2^30");
  end

  logic submit_busy, complete_busy, taken, ring_tail, ring_head, queue_lost, renew;
  logic [2:0] submitted_device, complete_device, tail_device;
  logic [16:0] tail, head;
  generation_t [PmshrEntries-1:0] generation;
  logic [Devices-1:0] lost, bell_lost, bell_idle, old, used, kill_q, next, released;

  trapless_smu_submit #(.Entries(PmshrEntries), .Devices(Devices)) u_submit (
    .clk_i,
    .rst_ni,
    .hold_i,
    .busy_o(submit_busy),
    .entry_i,
    .desc_i(desc_o),
    .generation_o(generation),
    .frame_valid_i(frame_valid_i && !frame_end_i),
    .frame_slot_i,
    .sqe_valid_o,
    .sqe_soon_o,
    .sqe_o(sqe_write_o),
    .sqe_done_i,
    .sqe_error_i(wr_error_i),
    .ring_o(ring_tail),
    .ring_device_o(tail_device),
    .ring_tail_o(tail),
    .submitted_o,
    .submitted_device_o(submitted_device),
    .command_valid_o,
    .command_end_o,
    .command_slot_o,
    .command_reason_o,
    .device_valid_o,
    .device_end_o,
    .device_slot_o,
    .device_reason_o
  );

  trapless_smu_complete #(
    .Entries(PmshrEntries),
    .Devices(Devices),
    .PollInterval(PollInterval)
  ) u_complete (
    .clk_i,
    .rst_ni,
    .hold_i,
    .busy_o(complete_busy),
    .entry_i,
    .desc_i(desc_o),
    .generation_i(generation),
    .timeout_i,
    .expire_i,
    .expire_device_i(desc_index_i),
    .snoop_valid_i,
    .snoop_addr_i,
    .read_valid_o(cqe_valid_o),
    .read_soon_o(cqe_soon_o),
    .read_ready_i(cqe_ready_i),
    .read_o(cqe_read_o),
    .data_valid_i(cqe_data_valid_i),
    .data_error_i(rd_error_i),
    .data_i(rd_data_i),
    .ring_o(ring_head),
    .ring_head_o(head),
    .device_valid_i(device_valid_o),
    .device_end_i(device_end_o),
    .device_slot_i(device_slot_o),
    .device_o(complete_device),
    .taken_o(taken),
    .lost_o(queue_lost),
    .matched_o(completion_matched_o),
    .stray_o,
    .error_o(completion_error_o),
    .slot_o(completion_slot_o),
    .status_o(completion_status_o),
    .install_soon_o,
    .install_o,
    .timeout_valid_o,
    .timeout_slot_o
  );

  trapless_smu_desc #(.Entries(PmshrEntries), .Devices(Devices)) u_desc (
    .clk_i,
    .rst_ni,
    .entry_i,
    .desc_o,
    .index_i(desc_index_i),
    .field_i(desc_field_i),
    .write_i(desc_write_i),
    .wdata_i,
    .rdata_o(desc_rdata_o),
    .selected_o(desc_selected_o),
    .inside_i(desc_inside_i),
    .refused_o(desc_refused_o),
    .release_o(release_desc_o),
    .renew_o(renew),
    .old_i(old),
    .submitted_i(submitted_o),
    .submitted_device_i(submitted_device),
    .taken_i(taken),
    .matched_i(completion_matched_o),
    .device_i(complete_device),
    .lost_i(lost)
  );

  for (genvar i = 0; i < Devices; i++) begin : g_doorbell
    localparam logic [2:0] Device = 3'(unsigned'(i));

    trapless_smu_doorbell #(.Cycles(DoorbellCycles)) u_doorbell (
      .clk_i,
      .rst_ni,
      .sq_doorbell_i(desc_o[i].sq_doorbell),
      .cq_doorbell_i(desc_o[i].cq_doorbell),
      .broken_i(desc_o[i].broken),
      .renew_i(renew && desc_index_i == Device),
      .tail_valid_i(ring_tail && tail_device == Device),
      .tail_i(tail),
      .head_valid_i(ring_head && complete_device == Device),
      .head_i(head),
      .lost_o(bell_lost[i]),
      .old_o(old[i]),
      .idle_o(bell_idle[i]),
      .awaddr_o(m_db_awaddr[i]),
      .awvalid_o(m_db_awvalid[i]),
      .awready_i(m_db_awready[i]),
      .wdata_o(m_db_wdata[i]),
      .wvalid_o(m_db_wvalid[i]),
      .wready_i(m_db_wready[i]),
      .bresp_i(m_db_bresp[i]),
      .bvalid_i(m_db_bvalid[i]),
      .bready_o(m_db_bready[i])
    );

    assign used[i] = desc_o[i].valid || desc_o[i].outstanding || !bell_idle[i];
    assign m_db_awprot[i] = AxiProt;
    assign m_db_awuser[i] = StreamId;
    assign m_db_wstrb[i] = '1;
    assign lost[i] = bell_lost[i] || (queue_lost && complete_device == Device);
    assign released[i] = release_desc_o && desc_index_i == Device;
  end

  assign lost_o = lost != '0;

  // Several devices may be lost in one cycle. The unit ends the misses of one device per cycle, and of none in a cycle in which
  // RELEASE ends those of another device. Until then no new misses come, because a lost device is marked as out of use at once.
  assign next = kill_q & (~kill_q + 1'b1);

  always_comb begin
    kill_o = release_desc_o || kill_q != '0;
    kill_device_o = desc_index_i;
    for (int unsigned i = 0; i < Devices; i++) begin
      if (!release_desc_o && next[i]) kill_device_o = 3'(i);
    end
  end

  `TRAPLESS_FF begin
    if (!rst_ni) kill_q <= '0;
    else kill_q <= (kill_q & ~(release_desc_o ? released : next)) | lost;
  end

  assign nvme_busy_o = submit_busy || complete_busy;
  assign nvme_quiet_o = used == '0;
  assign nvme_rest_o = !nvme_busy_o && bell_idle == '1 && kill_q == '0;

endmodule
