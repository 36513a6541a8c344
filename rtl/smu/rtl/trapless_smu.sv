// SPDX-License-Identifier: Apache-2.0
// Storage Management Unit: serves page misses from NVMe devices without a trap. Behaviour: spec/smu.md. Registers: spec/smu.rdl.
//
// A miss passes front -> pmshr -> lookup -> free -> submit -> (device) -> complete -> update -> answer. Frames that were not
// installed go back through `return`.

module trapless_smu
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  /// PMSHR entries: a power of two, 4 to 64. Also the most commands in flight.
  parameter int unsigned PmshrEntries = 32,
  /// Walkers, with one request port each: 1 to 32.
  parameter int unsigned Harts = 4,
  /// Software request ports: 1 to 32.
  parameter int unsigned Ports = Harts,
  /// Queue descriptors: 1 to 8.
  parameter int unsigned Devices = 8,
  /// Frames fetched from the free ring in advance: 2 to 64.
  parameter int unsigned PrefetchDepth = 16,
  /// Page tables updated at a time: 1 to 4.
  parameter int unsigned Updaters = 2,
  /// How page tables are updated: 1 by the atomic accesses of AXI5 (AtomicCompare, AtomicStore), 0 by exclusive pairs.
  parameter bit Atomics = 1'b0,
  /// AXI data bits: 64, 128, 256 or 512.
  parameter int unsigned DataWidth = 64,
  /// AXI identifier bits: 3 or more.
  parameter int unsigned AxiIdWidth = 4,
  /// Windows to which addresses can be restricted: 0 to 8.
  parameter int unsigned Windows = 3,
  /// AxPROT of all accesses: non-secure, unprivileged data by default.
  parameter logic [2:0] AxiProt = 3'b010,
  /// AxUSER of all accesses: source id for an IOPMP, device id for an IOMMU.
  parameter int unsigned StreamIdWidth = 1,
  parameter logic [StreamIdWidth-1:0] StreamId = '0,
  /// Cycles between two looks at an empty completion queue.
  parameter int unsigned PollInterval = 0,
  /// Cycles after which a doorbell write that is not answered has failed: 2 to 2^30.
  parameter int unsigned DoorbellCycles = 65536,
  /// Socket field of armed entries for this unit: 0 to 7.
  parameter int unsigned Socket = 0,
  /// Reset value of TIMEOUT in cycles; with 0 no command times out.
  parameter longint unsigned TimeoutReset = 0
) (
  input logic clk_i,
  input logic rst_ni,

  // Walkers. The payload is stable while `valid` is up. `valid` may fall before `ready`; then the request is forgotten. A hart
  // has one wait at a time. `abandon` is a pulse: no answer is sent after that cycle, and the walker recognizes an answer in the
  // same cycle by its id. An answer cannot be refused.
  input logic [Harts-1:0] req_valid_i,
  output logic [Harts-1:0] req_ready_o,
  input smu_req_t [Harts-1:0] req_i,
  input logic [Harts-1:0] abandon_i,
  output logic [Harts-1:0] rsp_valid_o,
  output smu_rsp_t [Harts-1:0] rsp_o,

  // Snoop port: a write on its way to memory. Tie both to zero if nothing watches the writes.
  input logic snoop_valid_i,
  input logic [63:0] snoop_addr_i,

  // High while an enabled cause of an interrupt is set (REQ: SMU-17).
  output logic irq_o,

  // While this is high, the clock may stop until a walker asks or a register access comes (REQ: SMU-18).
  output logic idle_o,

  // AXI4 master
  output logic [AxiIdWidth-1:0] m_axi_awid,
  output logic [63:0] m_axi_awaddr,
  output logic [7:0] m_axi_awlen,
  output logic [2:0] m_axi_awsize,
  output logic [1:0] m_axi_awburst,
  output logic m_axi_awlock,
  output logic [3:0] m_axi_awcache,
  output logic [2:0] m_axi_awprot,
  output logic [3:0] m_axi_awqos,
  output logic [StreamIdWidth-1:0] m_axi_awuser,
  output logic [5:0] m_axi_awatop,
  output logic m_axi_awvalid,
  input logic m_axi_awready,
  output logic [DataWidth-1:0] m_axi_wdata,
  output logic [DataWidth/8-1:0] m_axi_wstrb,
  output logic m_axi_wlast,
  output logic m_axi_wvalid,
  input logic m_axi_wready,
  input logic [AxiIdWidth-1:0] m_axi_bid,
  input logic [1:0] m_axi_bresp,
  input logic m_axi_bvalid,
  output logic m_axi_bready,
  output logic [AxiIdWidth-1:0] m_axi_arid,
  output logic [63:0] m_axi_araddr,
  output logic [7:0] m_axi_arlen,
  output logic [2:0] m_axi_arsize,
  output logic [1:0] m_axi_arburst,
  output logic m_axi_arlock,
  output logic [3:0] m_axi_arcache,
  output logic [2:0] m_axi_arprot,
  output logic [3:0] m_axi_arqos,
  output logic [StreamIdWidth-1:0] m_axi_aruser,
  output logic m_axi_arvalid,
  input logic m_axi_arready,
  input logic [AxiIdWidth-1:0] m_axi_rid,
  input logic [DataWidth-1:0] m_axi_rdata,
  input logic [1:0] m_axi_rresp,
  input logic m_axi_rlast,
  input logic m_axi_rvalid,
  output logic m_axi_rready,

  // AXI4-Lite masters without reads, one for each descriptor: doorbells
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
  output logic [Devices-1:0] m_db_bready,

  // AXI4-Lite slave: registers
  input logic [11:0] s_axil_awaddr,
  input logic [2:0] s_axil_awprot,
  input logic s_axil_awvalid,
  output logic s_axil_awready,
  input logic [63:0] s_axil_wdata,
  input logic [7:0] s_axil_wstrb,
  input logic s_axil_wvalid,
  output logic s_axil_wready,
  output logic [1:0] s_axil_bresp,
  output logic s_axil_bvalid,
  input logic s_axil_bready,
  input logic [11:0] s_axil_araddr,
  input logic [2:0] s_axil_arprot,
  input logic s_axil_arvalid,
  output logic s_axil_arready,
  output logic [63:0] s_axil_rdata,
  output logic [1:0] s_axil_rresp,
  output logic s_axil_rvalid,
  input logic s_axil_rready
);

  localparam int unsigned SlotWidth = $clog2(PmshrEntries);
  localparam int unsigned Sources = Harts + Ports;
  localparam int unsigned Readers = 3 + Updaters;
  localparam int unsigned Writers = 2 + Updaters;
  // Numbers of the parts, which are their AXI identifiers. Updaters come first, so that both halves of an exclusive pair have the
  // same identifier.
  localparam int unsigned RdUpdate = 0, RdLookup = Updaters, RdFree = Updaters + 1, RdComplete = Updaters + 2;
  localparam int unsigned WrUpdate = 0, WrCommand = Updaters, WrReturn = Updaters + 1;

  entry_t [PmshrEntries-1:0] entry;
  logic device_failed, rings_busy, nvme_busy, rings_rest, nvme_rest, registers_rest, asking, rest;
  desc_t [Devices-1:0] desc;
  logic [PmshrEntries-1:0] live, pending;
  logic enable, hold, busy, fence, drain, expire, fence_busy, drain_busy, upper;
  logic [63:0] timeout, wdata;
  logic free_base_set, free_size_set, free_tail_set, ret_base_set, ret_size_set, ret_head_set;
  logic desc_write, port_write;
  logic [2:0] desc_index, port_field;
  logic [3:0] desc_field;
  logic [4:0] port_index;
  logic [63:0] desc_rdata, port_rdata;
  logic [63:0] free_base, ret_base;
  logic [31:0] free_size, free_head, free_tail, free_used, ret_size, ret_head, ret_tail;
  logic [CNT_COUNT-1:0][63:0] count;
  logic idle, no_dma, no_frames, error, failed;
  logic [7:0] live_count, quarantined_count;
  reason_t failed_reason;
  logic completion_error, completion_matched;
  logic [14:0] completion_status;
  logic [Ports-1:0] port_accepted;
  logic join_entry, accepted, full, refuse, port_refused, answer_valid;
  logic [Sources-1:0] refused, answer;
  reason_t refuse_reason;
  logic [Updaters-1:0] update_valid;
  logic [Updaters-1:0][SlotWidth-1:0] update_slot;
  logic [Readers-1:0] rd_valid, rd_soon, rd_ready, rd_data_valid;
  dma_read_t [Readers-1:0] rd;
  logic [5:0] lookup_lane;
  axi_resp_e rd_resp;
  logic [63:0] rd_data;
  logic [127:0] rd_wide;
  logic rd_error, rd_wide_error, wr_error, update_error;
  logic [Writers-1:0] wr_valid, wr_soon, wr_done;
  dma_write_t [Writers-1:0] wr;
  axi_resp_e wr_resp;
  logic lookup_valid, lookup_end;
  logic free_error, frame_valid, frame_end, free_empty;
  logic [43:0] frame_pfn;
  logic [51:0] frame_dma;
  logic submitted, command_valid, command_end, device_valid, device_end, lost, kill;
  logic [2:0] kill_device;
  logic [SlotWidth-1:0] lookup_slot, frame_slot, command_slot, device_slot, completion_slot, timeout_slot, answer_slot, returned_slot;
  reason_t command_reason, device_reason;
  logic stray, install_soon, install, timeout_valid;
  logic desc_refused, release_desc;
  entry_addr_t look_pte, look_pmd, look_pud;
  desc_t desc_selected;
  logic try_fabric, tried, try_ok, nvme_quiet, entries_inside, desc_inside, ret_inside;
  logic [Updaters-1:0] pte_valid;
  reason_t [Updaters-1:0] update_reason;
  logic [Updaters-1:0] update_mapped;
  logic [Updaters-1:0][63:0] update_value;
  logic ret_error, ret_empty, returned, returned_slot_valid;

  // ---------------------------------------------------------------- registers
  trapless_smu_registers #(.PmshrEntries(PmshrEntries), .Harts(Harts), .Ports(Ports), .Devices(Devices),
      .PrefetchDepth(PrefetchDepth), .Windows(Windows), .Socket(Socket), .TimeoutReset(TimeoutReset)) u_registers (
    .*,  // clock, reset, irq_o, and the pins of the registers
    .hold_o(hold),
    .registers_rest_o(registers_rest),
    .busy_i(busy),
    .enable_o(enable),
    .timeout_o(timeout),
    .wdata_o(wdata),
    .upper_o(upper),
    .free_base_set_o(free_base_set),
    .free_size_set_o(free_size_set),
    .free_tail_set_o(free_tail_set),
    .ret_base_set_o(ret_base_set),
    .ret_size_set_o(ret_size_set),
    .ret_head_set_o(ret_head_set),
    .desc_write_o(desc_write),
    .desc_index_o(desc_index),
    .desc_field_o(desc_field),
    .fence_o(fence),
    .drain_o(drain),
    .expire_o(expire),
    .port_write_o(port_write),
    .port_index_o(port_index),
    .port_field_o(port_field),
    .idle_i(idle),
    .quiet_i(nvme_quiet),
    .look_pte_i(look_pte),
    .look_pmd_i(look_pmd),
    .look_pud_i(look_pud),
    .entries_inside_o(entries_inside),
    .desc_selected_i(desc_selected),
    .desc_inside_o(desc_inside),
    .ret_inside_o(ret_inside),
    .timed_out_i(timeout_valid && !(completion_matched && completion_slot == timeout_slot)),
    .try_o(try_fabric),
    .tried_i(tried),
    .try_ok_i(try_ok),
    .no_dma_i(no_dma),
    .no_frames_i(no_frames),
    .live_count_i(live_count),
    .quarantined_count_i(quarantined_count),
    .free_base_i(free_base),
    .free_size_i(free_size),
    .free_head_i(free_head),
    .free_tail_i(free_tail),
    .free_used_i(free_used),
    .ret_base_i(ret_base),
    .ret_size_i(ret_size),
    .ret_head_i(ret_head),
    .ret_tail_i(ret_tail),
    .count_i(count),
    .desc_rdata_i(desc_rdata),
    .fence_busy_i(fence_busy),
    .drain_busy_i(drain_busy),
    .port_rdata_i(port_rdata),
    .error_i(error),
    .failed_i(failed),
    .failed_reason_i(failed_reason),
    .device_failed_i(device_failed),
    .completion_status_i(completion_status)
  );

  // The completion of a command reports an error.
  assign device_failed = completion_matched && completion_error && entry[completion_slot].stage == StDevice;

  // ---------------------------------------------------------------- requests and answers
  trapless_smu_requests #(.PmshrEntries(PmshrEntries), .Harts(Harts), .Ports(Ports), .Devices(Devices), .Updaters(Updaters),
      .Socket(Socket)) u_requests (
    .clk_i,
    .rst_ni,
    .req_i,
    .req_valid_i,
    .req_ready_o,
    .rsp_valid_o,
    .answer_o(answer),
    .rsp_o,
    .port_accepted_o(port_accepted),
    .abandon_i,
    .enable_i(enable),
    .asking_o(asking),
    .look_pte_o(look_pte),
    .look_pmd_o(look_pmd),
    .look_pud_o(look_pud),
    .entries_inside_i(entries_inside),
    .join_entry_o(join_entry),
    .refuse_o(refuse),
    .refuse_reason_o(refuse_reason),
    .refused_o(refused),
    .accepted_o(accepted),
    .full_o(full),
    .port_index_i(port_index),
    .port_field_i(port_field),
    .port_write_i(port_write),
    .upper_i(upper),
    .wdata_i(wdata),
    .port_rdata_o(port_rdata),
    .port_refused_o(port_refused),
    .entry_o(entry),
    .update_valid_i(update_valid),
    .update_slot_i(update_slot),
    .answer_valid_o(answer_valid),
    .answer_slot_o(answer_slot),
    .live_o(live),
    .lookup_valid_o(lookup_valid),
    .lookup_end_o(lookup_end),
    .lookup_slot_o(lookup_slot),
    .frame_valid_i(frame_valid),
    .frame_end_i(frame_end),
    .frame_slot_i(frame_slot),
    .frame_pfn_i(frame_pfn),
    .frame_dma_i(frame_dma),
    .command_valid_i(command_valid),
    .command_end_i(command_end),
    .command_slot_i(command_slot),
    .command_reason_i(command_reason),
    .device_valid_i(device_valid),
    .device_end_i(device_end),
    .device_slot_i(device_slot),
    .device_reason_i(device_reason),
    .completion_matched_i(completion_matched),
    .completion_error_i(completion_error),
    .completion_slot_i(completion_slot),
    .timeout_valid_i(timeout_valid),
    .timeout_slot_i(timeout_slot),
    .kill_i(kill),
    .release_desc_i(release_desc),
    .desc_index_i(desc_index),
    .kill_device_i(kill_device),
    .pte_valid_i(pte_valid),
    .update_reason_i(update_reason),
    .update_mapped_i(update_mapped),
    .update_value_i(update_value),
    .returned_slot_valid_i(returned_slot_valid),
    .returned_slot_i(returned_slot),
    .desc_i(desc),
    .lookup_read_valid_o(rd_valid[RdLookup]),
    .lookup_read_soon_o(rd_soon[RdLookup]),
    .lookup_read_ready_i(rd_ready[RdLookup]),
    .lookup_read_o(rd[RdLookup]),
    .lookup_lane_o(lookup_lane),
    .lookup_data_valid_i(rd_data_valid[RdLookup]),
    .rd_error_i(rd_error),
    .rd_data_i(rd_data),
    .pending_i(pending),
    .fence_i(fence),
    .drain_i(drain),
    .fence_busy_o(fence_busy),
    .drain_busy_o(drain_busy)
  );

  // ---------------------------------------------------------------- the parts
  assign rd_error = rd_resp inside {RespSlvErr, RespDecErr};
  assign wr_error = wr_resp inside {RespSlvErr, RespDecErr};
  assign rd_soon[RdFree] = 1'b0;

  trapless_smu_rings #(.PmshrEntries(PmshrEntries), .PrefetchDepth(PrefetchDepth)) u_rings (
    .clk_i,
    .rst_ni,
    .enable_i(enable),
    .hold_i(hold),
    .free_base_set_i(free_base_set),
    .free_size_set_i(free_size_set),
    .free_tail_set_i(free_tail_set),
    .wdata_i(wdata),
    .free_base_o(free_base),
    .free_size_o(free_size),
    .free_head_o(free_head),
    .free_tail_o(free_tail),
    .free_used_o(free_used),
    .free_error_o(free_error),
    .lookup_valid_i(lookup_valid),
    .lookup_end_i(lookup_end),
    .lookup_slot_i(lookup_slot),
    .free_read_valid_o(rd_valid[RdFree]),
    .free_read_ready_i(rd_ready[RdFree]),
    .free_read_o(rd[RdFree]),
    .free_data_valid_i(rd_data_valid[RdFree]),
    .rd_wide_error_i(rd_wide_error),
    .rd_wide_i(rd_wide),
    .frame_valid_o(frame_valid),
    .frame_end_o(frame_end),
    .frame_slot_o(frame_slot),
    .frame_pfn_o(frame_pfn),
    .frame_dma_o(frame_dma),
    .free_empty_o(free_empty),
    .entry_i(entry),
    .ret_inside_i(ret_inside),
    .ret_base_set_i(ret_base_set),
    .ret_size_set_i(ret_size_set),
    .ret_head_set_i(ret_head_set),
    .ret_base_o(ret_base),
    .ret_size_o(ret_size),
    .ret_head_o(ret_head),
    .ret_tail_o(ret_tail),
    .ret_error_o(ret_error),
    .ret_write_valid_o(wr_valid[WrReturn]),
    .ret_write_soon_o(wr_soon[WrReturn]),
    .ret_write_o(wr[WrReturn]),
    .ret_write_done_i(wr_done[WrReturn]),
    .wr_error_i(wr_error),
    .returned_o(returned),
    .returned_slot_valid_o(returned_slot_valid),
    .returned_slot_o(returned_slot),
    .ret_empty_o(ret_empty),
    .rings_busy_o(rings_busy),
    .rings_rest_o(rings_rest)
  );

  trapless_smu_nvme #(.PmshrEntries(PmshrEntries), .Devices(Devices), .PollInterval(PollInterval),
      .DoorbellCycles(DoorbellCycles), .AxiProt(AxiProt), .StreamIdWidth(StreamIdWidth), .StreamId(StreamId)) u_nvme (
    .clk_i,
    .rst_ni,
    .hold_i(hold),
    .entry_i(entry),
    .desc_o(desc),
    .lost_o(lost),
    .kill_o(kill),
    .kill_device_o(kill_device),
    .frame_valid_i(frame_valid),
    .frame_end_i(frame_end),
    .frame_slot_i(frame_slot),
    .sqe_valid_o(wr_valid[WrCommand]),
    .sqe_soon_o(wr_soon[WrCommand]),
    .sqe_write_o(wr[WrCommand]),
    .sqe_done_i(wr_done[WrCommand]),
    .wr_error_i(wr_error),
    .submitted_o(submitted),
    .command_valid_o(command_valid),
    .command_end_o(command_end),
    .command_slot_o(command_slot),
    .command_reason_o(command_reason),
    .device_valid_o(device_valid),
    .device_end_o(device_end),
    .device_slot_o(device_slot),
    .device_reason_o(device_reason),
    .timeout_i(timeout),
    .expire_i(expire),
    .desc_index_i(desc_index),
    .snoop_valid_i,
    .snoop_addr_i,
    .cqe_valid_o(rd_valid[RdComplete]),
    .cqe_soon_o(rd_soon[RdComplete]),
    .cqe_ready_i(rd_ready[RdComplete]),
    .cqe_read_o(rd[RdComplete]),
    .cqe_data_valid_i(rd_data_valid[RdComplete]),
    .rd_error_i(rd_error),
    .rd_data_i(rd_data),
    .completion_matched_o(completion_matched),
    .stray_o(stray),
    .completion_error_o(completion_error),
    .completion_slot_o(completion_slot),
    .completion_status_o(completion_status),
    .install_soon_o(install_soon),
    .install_o(install),
    .timeout_valid_o(timeout_valid),
    .timeout_slot_o(timeout_slot),
    .desc_field_i(desc_field),
    .desc_write_i(desc_write),
    .wdata_i(wdata),
    .desc_rdata_o(desc_rdata),
    .desc_refused_o(desc_refused),
    .release_desc_o(release_desc),
    .nvme_busy_o(nvme_busy),
    .desc_selected_o(desc_selected),
    .desc_inside_i(desc_inside),
    .nvme_quiet_o(nvme_quiet),
    .nvme_rest_o(nvme_rest),
    .m_db_awaddr,
    .m_db_awprot,
    .m_db_awuser,
    .m_db_awvalid,
    .m_db_awready,
    .m_db_wdata,
    .m_db_wstrb,
    .m_db_wvalid,
    .m_db_wready,
    .m_db_bresp,
    .m_db_bvalid,
    .m_db_bready
  );

  trapless_smu_updaters #(.PmshrEntries(PmshrEntries), .Updaters(Updaters), .Atomics(Atomics)) u_updaters (
    .clk_i,
    .rst_ni,
    .install_i(install),
    .completion_slot_i(completion_slot),
    .entry_i(entry),
    .install_soon_i(install_soon),
    .try_i(try_fabric),
    .try_addr_i(ret_base[PAddrWidth-1:3]),
    .tried_o(tried),
    .try_ok_o(try_ok),
    .read_valid_o(rd_valid[RdUpdate+:Updaters]),
    .read_soon_o(rd_soon[RdUpdate+:Updaters]),
    .read_ready_i(rd_ready[RdUpdate+:Updaters]),
    .read_o(rd[RdUpdate+:Updaters]),
    .data_valid_i(rd_data_valid[RdUpdate+:Updaters]),
    .rd_resp_i(rd_resp),
    .rd_data_i(rd_data),
    .write_valid_o(wr_valid[WrUpdate+:Updaters]),
    .write_soon_o(wr_soon[WrUpdate+:Updaters]),
    .write_o(wr[WrUpdate+:Updaters]),
    .write_done_i(wr_done[WrUpdate+:Updaters]),
    .wr_resp_i(wr_resp),
    .pte_valid_o(pte_valid),
    .update_valid_o(update_valid),
    .update_slot_o(update_slot),
    .update_reason_o(update_reason),
    .update_mapped_o(update_mapped),
    .update_error_o(update_error),
    .update_value_o(update_value)
  );

  assign busy = rings_busy || nvme_busy;
  assign rest = idle && no_dma && !asking && rings_rest && nvme_rest && registers_rest;

  trapless_smu_idle u_idle (
    .clk_i,
    .rst_ni,
    .rest_i(rest),
    .idle_o
  );

  // ---------------------------------------------------------------- status and counters
  trapless_smu_status #(.PmshrEntries(PmshrEntries), .Harts(Harts), .Ports(Ports)) u_status (
    .clk_i,
    .rst_ni,
    .live_count_o(live_count),
    .quarantined_count_o(quarantined_count),
    .entry_i(entry),
    .live_i(live),
    .pending_o(pending),
    .idle_o(idle),
    .refused_i(refused),
    .answer_i(answer),
    .no_dma_o(no_dma),
    .no_frames_o(no_frames),
    .free_empty_i(free_empty),
    .ret_empty_i(ret_empty),
    .answer_slot_i(answer_slot),
    .failed_o(failed),
    .refuse_i(refuse),
    .answer_valid_i(answer_valid),
    .failed_reason_o(failed_reason),
    .refuse_reason_i(refuse_reason),
    .error_o(error),
    .free_error_i(free_error),
    .ret_error_i(ret_error),
    .lost_i(lost),
    .desc_refused_i(desc_refused),
    .port_refused_i(port_refused),
    .update_error_i(update_error),
    .accepted_i(accepted),
    .join_entry_i(join_entry),
    .port_accepted_i(port_accepted),
    .full_i(full),
    .stray_i(stray),
    .returned_i(returned),
    .submitted_i(submitted),
    .completion_matched_i(completion_matched),
    .count_o(count)
  );

  // ---------------------------------------------------------------- memory; `.*` connects its pins by name
  trapless_smu_axi #(.Readers(Readers), .Writers(Writers), .Lookup(RdLookup), .DataWidth(DataWidth), .AxiIdWidth(AxiIdWidth),
      .AxiProt(AxiProt), .StreamIdWidth(StreamIdWidth), .StreamId(StreamId)) u_axi (
    .*,
    .rd_i(rd),
    .lookup_lane_i(lookup_lane),
    .rd_valid_i(rd_valid),
    .rd_soon_i(rd_soon),
    .rd_ready_o(rd_ready),
    .rd_data_valid_o(rd_data_valid),
    .rd_resp_o(rd_resp),
    .rd_data_o(rd_data),
    .rd_wide_o(rd_wide),
    .rd_wide_error_o(rd_wide_error),
    .wr_valid_i(wr_valid),
    .wr_soon_i(wr_soon),
    .wr_i(wr),
    .wr_done_o(wr_done),
    .wr_resp_o(wr_resp)
  );

endmodule
