// SPDX-License-Identifier: Apache-2.0
// Storage Management Unit: serves page misses from NVMe devices without a trap. Behaviour: spec/smu.md. Registers: spec/smu.rdl.
//
// The way of a miss: front -> pmshr -> lookup -> free -> submit -> (device) -> complete -> update -> answer; frames that were not
// installed leave by return.

module trapless_smu
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  /// PMSHR entries: a power of two, 4 to 64. Also the most commands in flight.
  parameter int unsigned PmshrEntries = 32,
  /// Walkers that may ask, one request port each: 1 to 32.
  parameter int unsigned Harts = 4,
  /// Software request ports: 1 to 32.
  parameter int unsigned Ports = Harts,
  /// Queue descriptors: 1 to 8.
  parameter int unsigned Devices = 8,
  /// Frames fetched from the free ring in advance: 2 to 64.
  parameter int unsigned PrefetchDepth = 16,
  /// Page tables updated at a time: 1 to 4.
  parameter int unsigned Updaters = 2,
  /// AXI data bits: 64, 128, 256 or 512.
  parameter int unsigned DataWidth = 64,
  /// AXI identifier bits: 3 at least (4 for 4 updaters).
  parameter int unsigned AxiIdWidth = 4,
  /// Cycles between two looks at a completion queue that had nothing.
  parameter int unsigned PollInterval = 0,
  /// Which socket field of an armed entry means this unit.
  parameter int unsigned Socket = 0,
  /// Reset value of TIMEOUT in cycles; 0: never.
  parameter longint unsigned TimeoutReset = 0
) (
  input logic clk_i,
  input logic rst_ni,

  // Walkers. A request is held with a stable payload until `ready`, or taken back: one not accepted is forgotten. A hart has one wait
  // at a time. `abandon` is a pulse: no answer is sent after that cycle, and one arriving in it is told apart by its id. An answer
  // cannot be refused.
  input logic [Harts-1:0] req_valid_i,
  output logic [Harts-1:0] req_ready_o,
  input smu_req_t [Harts-1:0] req_i,
  input logic [Harts-1:0] abandon_i,
  output logic [Harts-1:0] rsp_valid_o,
  output smu_rsp_t [Harts-1:0] rsp_o,

  // A write that was seen on its way to memory; tie to zero where nothing watches.
  input logic snoop_valid_i,
  input logic [63:0] snoop_addr_i,

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
  output logic m_axi_arvalid,
  input logic m_axi_arready,
  input logic [AxiIdWidth-1:0] m_axi_rid,
  input logic [DataWidth-1:0] m_axi_rdata,
  input logic [1:0] m_axi_rresp,
  input logic m_axi_rlast,
  input logic m_axi_rvalid,
  output logic m_axi_rready,

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
  localparam int unsigned Writers = 4 + Updaters;
  // Place of each part is its AXI identifier. Updaters come first, so that the two halves of an exclusive pair have the same.
  localparam int unsigned RdUpdate = 0, RdLookup = Updaters, RdFree = Updaters + 1, RdComplete = Updaters + 2;
  localparam int unsigned WrUpdate = 0, WrCommand = Updaters, WrDoorbell = Updaters + 1, WrComplete = Updaters + 2,
      WrReturn = Updaters + 3;

  if (PmshrEntries < 4 || PmshrEntries > 64 || (PmshrEntries & (PmshrEntries - 1)) != 0) begin : g_bad_entries
    $error("PmshrEntries must be a power of two from 4 to 64");
  end
  if (Harts < 1 || Harts > 32 || Ports < 1 || Ports > 32) begin : g_bad_harts
    $error("Harts and Ports must be from 1 to 32");
  end
  if (Devices < 1 || Devices > 8) begin : g_bad_devices
    $error("Devices must be from 1 to 8");
  end
  if (PrefetchDepth < 2 || PrefetchDepth > 64) begin : g_bad_prefetch
    $error("PrefetchDepth must be from 2 to 64");
  end
  if (Updaters < 1 || Updaters > 4) begin : g_bad_updaters
    $error("Updaters must be from 1 to 4");
  end
  if (!(DataWidth inside {64, 128, 256, 512})) begin : g_bad_width
    $error("DataWidth must be 64, 128, 256 or 512");
  end
  if (AxiIdWidth < unsigned'($clog2(Writers))) begin : g_bad_id
    $error("AxiIdWidth is too small for the parts that write");
  end
  if (Socket > 7) begin : g_bad_socket
    $error("Socket must be from 0 to 7");
  end

  entry_t [PmshrEntries-1:0] entry;
  desc_t [Devices-1:0] desc;
  logic [PmshrEntries-1:0] live, pending, with_command;

  // ---------------------------------------------------------------- registers
  // The generated front wants unpacked structs.
  trapless_smu_regs_pkg::trapless_smu_regs__in_t hwif_in;
  trapless_smu_regs_pkg::trapless_smu_regs__out_t hwif_out;
  logic read_ack, write_ack;
  logic [63:0] csr_rdata;

  always_comb begin
    hwif_in.smu.rd_ack = read_ack;
    hwif_in.smu.rd_data = csr_rdata;
    hwif_in.smu.wr_ack = write_ack;
  end

  trapless_smu_regs u_regs (
    .clk(clk_i),
    .arst_n(rst_ni),
    .s_axil_awready,
    .s_axil_awvalid,
    .s_axil_awaddr,
    .s_axil_awprot,
    .s_axil_wready,
    .s_axil_wvalid,
    .s_axil_wdata,
    .s_axil_wstrb,
    .s_axil_bready,
    .s_axil_bvalid,
    .s_axil_bresp,
    .s_axil_arready,
    .s_axil_arvalid,
    .s_axil_araddr,
    .s_axil_arprot,
    .s_axil_rready,
    .s_axil_rvalid,
    .s_axil_rdata,
    .s_axil_rresp,
    .hwif_in,
    .hwif_out
  );

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
  logic [CNT_COUNT-1:0][1:0] events;
  logic idle, no_dma, no_frames, error, failed;
  logic [7:0] live_count, quarantined_count;
  reason_t failed_reason;
  logic completion_error, completion_matched;
  logic [SlotWidth-1:0] completion_slot;
  logic [14:0] completion_status;

  trapless_smu_csr #(
    .Entries(PmshrEntries),
    .Harts(Harts),
    .Ports(Ports),
    .Devices(Devices),
    .Prefetch(PrefetchDepth),
    .Socket(Socket),
    .TimeoutReset(TimeoutReset)
  ) u_csr (
    .clk_i,
    .rst_ni,
    .req_i(hwif_out.smu.req),
    .write_i(hwif_out.smu.req_is_wr),
    .addr_i(hwif_out.smu.addr),
    .wdata_i(hwif_out.smu.wr_data),
    .biten_i(hwif_out.smu.wr_biten),
    .read_ack_o(read_ack),
    .write_ack_o(write_ack),
    .rdata_o(csr_rdata),
    .hold_o(hold),
    .busy_i(busy),
    .enable_o(enable),
    .timeout_o(timeout),
    .wdata_o(wdata),
    .upper_o(upper),
    .free_base_o(free_base_set),
    .free_size_o(free_size_set),
    .free_tail_o(free_tail_set),
    .ret_base_o(ret_base_set),
    .ret_size_o(ret_size_set),
    .ret_head_o(ret_head_set),
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
    .no_dma_i(no_dma),
    .no_frames_i(no_frames),
    .live_i(live_count),
    .quarantined_i(quarantined_count),
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
    .status_valid_i(completion_matched && completion_error && entry[completion_slot].stage == StDevice),
    .status_i(completion_status)
  );

  // ---------------------------------------------------------------- requests and answers
  logic [Sources-1:0] src_valid, src_ready, src_misaligned, src_far, src_abandon;
  smu_req_t [Sources-1:0] src_req;
  logic [Ports-1:0] port_valid, port_misaligned, port_far;
  smu_req_t [Ports-1:0] port_req;
  logic [Harts-1:0] walker_misaligned;
  logic [Harts-1:0][IdWidth-1:0] id_q;
  smu_req_t req;
  entry_addr_t search;
  logic act, hit, has_free, stuck, join_entry, allocate, accepted, full, refuse;
  logic [Sources-1:0] source, refused, waiters, answer;
  reason_t refuse_reason, refused_reason;
  reason_t [Sources-1:0] answer_reason;
  logic [63:0] answer_value;
  logic [SlotWidth-1:0] allocated;
  logic answer_valid;
  logic [Updaters-1:0] update_valid;
  logic [Updaters-1:0][SlotWidth-1:0] update_slot;
  logic [SlotWidth-1:0] answer_slot;
  logic [PmshrEntries-1:0] answer_leaves;
  logic port_refused;

  for (genvar h = 0; h < Harts; h++) begin : g_walker
    assign walker_misaligned[h] = (req_i[h].pte_addr[2:0] | req_i[h].pmd_addr[2:0] | req_i[h].pud_addr[2:0]) != '0;

    always_ff @(posedge clk_i) begin
      if (req_valid_i[h] && req_ready_o[h]) id_q[h] <= req_i[h].id;
    end

    assign rsp_valid_o[h] = answer[h];
    assign rsp_o[h] = '{
      id: id_q[h],
      outcome: outcome_of(answer_reason[h]),
      reason: outcome_of(answer_reason[h]) == OutcomeFailed ? 8'(answer_reason[h]) : '0,
      pte: outcome_of(answer_reason[h]) == OutcomeFailed ? '0 : answer_value
    };
  end

  assign src_valid = {port_valid, req_valid_i};
  assign req_ready_o = src_ready[Harts-1:0];
  assign src_req = {port_req, req_i};
  assign src_misaligned = {port_misaligned, walker_misaligned};
  assign src_far = {port_far, {Harts{1'b0}}};
  assign src_abandon = {{Ports{1'b0}}, abandon_i};

  trapless_smu_front #(.Sources(Sources)) u_front (
    .clk_i,
    .rst_ni,
    .enable_i(enable),
    .valid_i(src_valid),
    .ready_o(src_ready),
    .req_i(src_req),
    .misaligned_i(src_misaligned),
    .far_i(src_far),
    .abandon_i(src_abandon),
    .act_o(act),
    .req_o(req),
    .search_o(search),
    .hit_i(hit),
    .free_i(has_free),
    .stuck_i(stuck),
    .join_o(join_entry),
    .allocate_o(allocate),
    .source_o(source),
    .refuse_o(refuse),
    .refuse_reason_o(refuse_reason),
    .refused_o(refused),
    .refused_reason_o(refused_reason),
    .accepted_o(accepted),
    .full_o(full)
  );

  trapless_smu_ports #(.Ports(Ports)) u_ports (
    .clk_i,
    .rst_ni,
    .index_i(port_index),
    .field_i(port_field),
    .write_i(port_write),
    .upper_i(upper),
    .wdata_i(wdata),
    .rdata_o(port_rdata),
    .refused_o(port_refused),
    .valid_o(port_valid),
    .ready_i(src_ready[Sources-1:Harts]),
    .req_o(port_req),
    .misaligned_o(port_misaligned),
    .far_o(port_far),
    .answer_i(answer[Sources-1:Harts]),
    .reason_i(answer_reason[Sources-1:Harts]),
    .value_i(answer_value)
  );

  trapless_smu_answer #(.Entries(PmshrEntries), .Sources(Sources), .Updaters(Updaters)) u_answer (
    .clk_i,
    .rst_ni,
    .entry_i(entry),
    .update_valid_i(update_valid),
    .update_slot_i(update_slot),
    .valid_o(answer_valid),
    .slot_o(answer_slot),
    .leaves_o(answer_leaves),
    .waiters_i(waiters),
    .refused_i(refused),
    .refused_reason_i(refused_reason),
    .answer_o(answer),
    .reason_o(answer_reason),
    .value_o(answer_value)
  );

  // ---------------------------------------------------------------- the parts
  logic [Readers-1:0] rd_valid, rd_soon, rd_ready, rd_data_valid;
  dma_read_t [Readers-1:0] rd;
  logic [Readers-1:0][5:0] rd_lane;
  axi_resp_e rd_resp;
  logic [63:0] rd_data;
  logic [127:0] rd_wide;
  logic rd_error, rd_wide_error;
  logic [Writers-1:0] wr_valid, wr_soon, wr_done;
  dma_write_t [Writers-1:0] wr;
  axi_resp_e wr_resp;
  logic wr_error;

  assign rd_error = rd_resp inside {RespSlvErr, RespDecErr};
  assign wr_error = wr_resp inside {RespSlvErr, RespDecErr};

  logic lookup_valid, lookup_end;
  logic [SlotWidth-1:0] lookup_slot;
  reason_t lookup_reason;
  logic [63:0] lookup_value;

  trapless_smu_lookup #(.Entries(PmshrEntries), .Devices(Devices), .Socket(3'(Socket))) u_lookup (
    .clk_i,
    .rst_ni,
    .entry_i(entry),
    .desc_i(desc),
    .look_i(act),
    .allocate_i(allocate),
    .allocated_i(allocated),
    .read_valid_o(rd_valid[RdLookup]),
    .read_soon_o(rd_soon[RdLookup]),
    .read_ready_i(rd_ready[RdLookup]),
    .read_o(rd[RdLookup]),
    .lane_o(rd_lane[RdLookup]),
    .data_valid_i(rd_data_valid[RdLookup]),
    .data_error_i(rd_error),
    .data_i(rd_data),
    .valid_o(lookup_valid),
    .end_o(lookup_end),
    .slot_o(lookup_slot),
    .reason_o(lookup_reason),
    .value_o(lookup_value)
  );

  logic free_busy, free_error, frame_valid, frame_end, free_return_valid, free_return_taken, free_empty, ret_full;
  logic [SlotWidth-1:0] frame_slot;
  logic [43:0] frame_pfn;
  logic [51:0] frame_dma;
  logic [63:0] free_return_pfn;
  reason_t free_return_reason;

  assign rd_soon[RdFree] = 1'b0;

  trapless_smu_free #(.Entries(PmshrEntries), .Prefetch(PrefetchDepth)) u_free (
    .clk_i,
    .rst_ni,
    .enable_i(enable),
    .hold_i(hold),
    .busy_o(free_busy),
    .set_base_i(free_base_set),
    .set_size_i(free_size_set),
    .set_tail_i(free_tail_set),
    .wdata_i(wdata),
    .base_o(free_base),
    .size_o(free_size),
    .head_o(free_head),
    .tail_o(free_tail),
    .used_o(free_used),
    .error_o(free_error),
    .want_i(lookup_valid && !lookup_end),
    .want_slot_i(lookup_slot),
    .read_valid_o(rd_valid[RdFree]),
    .read_ready_i(rd_ready[RdFree]),
    .read_o(rd[RdFree]),
    .data_valid_i(rd_data_valid[RdFree]),
    .data_error_i(rd_wide_error),
    .data_i(rd_wide),
    .valid_o(frame_valid),
    .end_o(frame_end),
    .slot_o(frame_slot),
    .pfn_o(frame_pfn),
    .dma_o(frame_dma),
    .return_full_i(ret_full),
    .return_valid_o(free_return_valid),
    .return_pfn_o(free_return_pfn),
    .return_reason_o(free_return_reason),
    .return_taken_i(free_return_taken),
    .empty_o(free_empty)
  );

  logic submit_busy, submitted, command_valid, command_end, device_valid, device_end, lost;
  logic [2:0] submitted_device, complete_device;
  logic [SlotWidth-1:0] command_slot, device_slot;
  reason_t command_reason, device_reason;

  trapless_smu_submit #(.Entries(PmshrEntries), .Devices(Devices)) u_submit (
    .clk_i,
    .rst_ni,
    .hold_i(hold),
    .busy_o(submit_busy),
    .entry_i(entry),
    .desc_i(desc),
    .lost_i(lost),
    .lost_device_i(complete_device),
    .frame_valid_i(frame_valid && !frame_end),
    .frame_slot_i(frame_slot),
    .sqe_valid_o(wr_valid[WrCommand]),
    .sqe_soon_o(wr_soon[WrCommand]),
    .sqe_o(wr[WrCommand]),
    .sqe_done_i(wr_done[WrCommand]),
    .sqe_error_i(wr_error),
    .doorbell_valid_o(wr_valid[WrDoorbell]),
    .doorbell_soon_o(wr_soon[WrDoorbell]),
    .doorbell_o(wr[WrDoorbell]),
    .doorbell_done_i(wr_done[WrDoorbell]),
    .doorbell_error_i(wr_error),
    .submitted_o(submitted),
    .submitted_device_o(submitted_device),
    .command_valid_o(command_valid),
    .command_end_o(command_end),
    .command_slot_o(command_slot),
    .command_reason_o(command_reason),
    .device_valid_o(device_valid),
    .device_end_o(device_end),
    .device_slot_o(device_slot),
    .device_reason_o(device_reason)
  );

  logic complete_busy, taken, stray, install_soon, install, timeout_valid;
  logic [SlotWidth-1:0] timeout_slot;

  trapless_smu_complete #(
    .Entries(PmshrEntries),
    .Devices(Devices),
    .PollInterval(PollInterval)
  ) u_complete (
    .clk_i,
    .rst_ni,
    .hold_i(hold),
    .busy_o(complete_busy),
    .entry_i(entry),
    .desc_i(desc),
    .timeout_i(timeout),
    .expire_i(expire),
    .expire_device_i(desc_index),
    .snoop_valid_i,
    .snoop_addr_i,
    .read_valid_o(rd_valid[RdComplete]),
    .read_soon_o(rd_soon[RdComplete]),
    .read_ready_i(rd_ready[RdComplete]),
    .read_o(rd[RdComplete]),
    .data_valid_i(rd_data_valid[RdComplete]),
    .data_error_i(rd_error),
    .data_i(rd_data),
    .doorbell_valid_o(wr_valid[WrComplete]),
    .doorbell_soon_o(wr_soon[WrComplete]),
    .doorbell_o(wr[WrComplete]),
    .doorbell_done_i(wr_done[WrComplete]),
    .doorbell_error_i(wr_error),
    .device_valid_i(device_valid),
    .device_end_i(device_end),
    .device_slot_i(device_slot),
    .device_o(complete_device),
    .taken_o(taken),
    .lost_o(lost),
    .matched_o(completion_matched),
    .stray_o(stray),
    .error_o(completion_error),
    .slot_o(completion_slot),
    .status_o(completion_status),
    .install_soon_o(install_soon),
    .install_o(install),
    .timeout_valid_o(timeout_valid),
    .timeout_slot_o(timeout_slot)
  );

  logic desc_refused, release_desc;

  trapless_smu_desc #(.Entries(PmshrEntries), .Devices(Devices)) u_desc (
    .clk_i,
    .rst_ni,
    .entry_i(entry),
    .desc_o(desc),
    .index_i(desc_index),
    .field_i(desc_field),
    .write_i(desc_write),
    .wdata_i(wdata),
    .rdata_o(desc_rdata),
    .refused_o(desc_refused),
    .release_o(release_desc),
    .submitted_i(submitted),
    .submitted_device_i(submitted_device),
    .taken_i(taken),
    .matched_i(completion_matched),
    .lost_i(lost),
    .device_i(complete_device)
  );

  // Installs go to the first updater that has nothing to do, in the order of completion.
  logic install_waiting, install_any, install_start;
  logic [SlotWidth-1:0] install_first, install_slot;
  logic [Updaters-1:0] update_ready, update_next, update_start, update_error, update_mapped, pte_valid;
  reason_t [Updaters-1:0] update_reason;
  logic [Updaters-1:0][63:0] update_value;

  trapless_smu_fifo #(.Width(SlotWidth), .Depth(PmshrEntries)) u_installs (
    .clk_i,
    .rst_ni,
    .push_i(install && (install_waiting || !install_start)),
    .data_i(completion_slot),
    .valid_o(install_waiting),
    .data_o(install_first),
    .pop_i(install_waiting && install_start)
  );

  // One that finds nobody before it does not wait.
  assign install_any = install_waiting || install;
  assign install_slot = install_waiting ? install_first : completion_slot;
  assign install_start = update_start != '0;
  assign update_next = update_ready & (~update_ready + 1'b1);
  assign update_start = install_any ? update_next : '0;

  for (genvar u = 0; u < Updaters; u++) begin : g_update
    trapless_smu_update #(.Entries(PmshrEntries), .Index(u)) u_update (
      .clk_i,
      .rst_ni,
      .entry_i(entry),
      .start_i(update_start[u]),
      .start_slot_i(install_slot),
      .ready_o(update_ready[u]),
      .next_i(update_next[u] && (install_waiting || install_soon)),
      .read_valid_o(rd_valid[RdUpdate+u]),
      .read_soon_o(rd_soon[RdUpdate+u]),
      .read_ready_i(rd_ready[RdUpdate+u]),
      .read_o(rd[RdUpdate+u]),
      .data_valid_i(rd_data_valid[RdUpdate+u]),
      .data_resp_i(rd_resp),
      .data_i(rd_data),
      .write_valid_o(wr_valid[WrUpdate+u]),
      .write_soon_o(wr_soon[WrUpdate+u]),
      .write_o(wr[WrUpdate+u]),
      .done_valid_i(wr_done[WrUpdate+u]),
      .done_resp_i(wr_resp),
      .pte_valid_o(pte_valid[u]),
      .error_o(update_error[u]),
      .valid_o(update_valid[u]),
      .slot_o(update_slot[u]),
      .reason_o(update_reason[u]),
      .mapped_o(update_mapped[u]),
      .value_o(update_value[u])
    );
  end

  logic ret_busy, ret_error, ret_empty, returned, returned_slot_valid;
  logic [SlotWidth-1:0] returned_slot;

  trapless_smu_return #(.Entries(PmshrEntries)) u_return (
    .clk_i,
    .rst_ni,
    .hold_i(hold),
    .busy_o(ret_busy),
    .entry_i(entry),
    .set_base_i(ret_base_set),
    .set_size_i(ret_size_set),
    .set_head_i(ret_head_set),
    .wdata_i(wdata),
    .base_o(ret_base),
    .size_o(ret_size),
    .head_o(ret_head),
    .tail_o(ret_tail),
    .error_o(ret_error),
    .free_valid_i(free_return_valid),
    .free_pfn_i(free_return_pfn),
    .free_reason_i(free_return_reason),
    .free_taken_o(free_return_taken),
    .write_valid_o(wr_valid[WrReturn]),
    .write_soon_o(wr_soon[WrReturn]),
    .write_o(wr[WrReturn]),
    .done_valid_i(wr_done[WrReturn]),
    .done_error_i(wr_error),
    .returned_o(returned),
    .slot_valid_o(returned_slot_valid),
    .slot_o(returned_slot),
    .full_o(ret_full),
    .empty_o(ret_empty)
  );

  assign busy = free_busy || ret_busy || submit_busy || complete_busy;

  trapless_smu_pmshr #(.Entries(PmshrEntries), .Sources(Sources), .Updaters(Updaters)) u_pmshr (
    .clk_i,
    .rst_ni,
    .entry_o(entry),
    .live_o(live),
    .req_i(req),
    .search_i(search),
    .hit_o(hit),
    .free_o(has_free),
    .stuck_o(stuck),
    .act_i(act),
    .join_i(join_entry),
    .allocate_i(allocate),
    .source_i(source),
    .abandon_i(src_abandon),
    .allocated_o(allocated),
    .lookup_valid_i(lookup_valid),
    .lookup_end_i(lookup_end),
    .lookup_slot_i(lookup_slot),
    .lookup_reason_i(lookup_reason),
    .lookup_value_i(lookup_value),
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
    .completion_valid_i(completion_matched),
    .completion_error_i(completion_error),
    .completion_slot_i(completion_slot),
    .timeout_valid_i(timeout_valid),
    .timeout_slot_i(timeout_slot),
    .kill_i(lost || release_desc),
    .release_i(release_desc),
    .kill_device_i(release_desc ? desc_index : complete_device),
    .pte_valid_i(pte_valid),
    .update_valid_i(update_valid),
    .update_slot_i(update_slot),
    .update_reason_i(update_reason),
    .update_mapped_i(update_mapped),
    .update_value_i(update_value),
    .answer_slot_i(answer_slot),
    .answer_leaves_i(answer_leaves),
    .waiters_o(waiters),
    .returned_valid_i(returned_slot_valid),
    .returned_slot_i(returned_slot)
  );

  // ---------------------------------------------------------------- fences (REQ: SMU-8)
  trapless_smu_fence #(.Entries(PmshrEntries), .Devices(Devices)) u_fence (
    .clk_i,
    .rst_ni,
    .allocate_i(allocate),
    .slot_i(allocated),
    .device_i(req.pte[PTE_DEVICE_MSB:PTE_DEVICE_LSB]),
    .live_i(live),
    .pending_i(pending),
    .index_i(desc_index),
    .fence_i(fence),
    .drain_i(drain),
    .fence_busy_o(fence_busy),
    .drain_busy_o(drain_busy)
  );

  // ---------------------------------------------------------------- status and counters
  logic [PmshrEntries-1:0] with_frame;
  reason_t ended_reason;
  logic [31:0] ended, given_up;

  always_comb begin
    live_count = '0;
    quarantined_count = '0;
    for (int unsigned i = 0; i < PmshrEntries; i++) begin
      with_command[i] = entry[i].command;
      with_frame[i] = entry[i].frame;
      live_count = live_count + 8'(live[i]);
      quarantined_count = quarantined_count + 8'(entry[i].command && entry[i].stage inside {StAnswer, StOver});
    end
  end

  assign pending = live | with_command;
  assign idle = live == '0 && refused == '0 && answer == '0;
  assign no_dma = with_command == '0;
  assign no_frames = with_frame == '0 && free_empty && ret_empty;

  assign ended_reason = entry[answer_slot].reason;
  assign failed = refuse || (answer_valid && outcome_of(ended_reason) == OutcomeFailed);
  assign failed_reason = refuse ? refuse_reason : ended_reason;
  assign error = free_error || ret_error || lost || desc_refused || port_refused || update_error != '0
      || (answer_valid && ended_reason == reason_t'(REASON_BUS)) || (refuse && refuse_reason == reason_t'(REASON_BUS));

  always_comb begin
    events = '0;
    // A miss and a refused request may end in one cycle.
    ended = answer_valid ? 32'(ended_reason) : '0;
    given_up = refuse ? 32'(refuse_reason) : '0;
    events[CNT_REQUESTS] = 2'(accepted);
    events[CNT_COALESCED] = 2'(join_entry);
    events[CNT_PORT_REQUESTS] = 2'(accepted && src_ready[Sources-1:Harts] != '0);
    events[CNT_PMSHR_FULL] = 2'(full);
    events[CNT_STRAY_CQE] = 2'(stray);
    events[CNT_RETURNED] = 2'(returned);
    events[CNT_COMMANDS] = 2'(submitted);
    events[CNT_COMPLETIONS] = 2'(completion_matched);
    events[CNT_INSTALLED] = 2'(answer_valid && outcome_of(ended_reason) == OutcomeDone);
    events[CNT_CHANGED] = 2'(answer_valid && outcome_of(ended_reason) == OutcomeChanged);
    events[CNT_FAIL_NO_FRAME] = 2'(ended == REASON_NO_FRAME) + 2'(given_up == REASON_NO_FRAME);
    events[CNT_FAIL_DEVICE] = 2'(ended == REASON_DEVICE) + 2'(given_up == REASON_DEVICE);
    events[CNT_FAIL_BUS] = 2'(ended == REASON_BUS) + 2'(given_up == REASON_BUS);
    events[CNT_FAIL_DISABLED] = 2'(ended == REASON_DISABLED) + 2'(given_up == REASON_DISABLED);
    events[CNT_FAIL_DESCRIPTOR] = 2'(ended == REASON_DESCRIPTOR) + 2'(given_up == REASON_DESCRIPTOR);
    events[CNT_FAIL_TIMEOUT] = 2'(ended == REASON_TIMEOUT) + 2'(given_up == REASON_TIMEOUT);
  end

  trapless_smu_counters u_counters (
    .clk_i,
    .rst_ni,
    .event_i(events),
    .count_o(count)
  );

  // ---------------------------------------------------------------- memory
  for (genvar r = 0; r < Readers; r++) begin : g_lane
    if (r != RdLookup) begin : g_own
      assign rd_lane[r] = rd[r].addr[5:0];
    end
  end

  trapless_smu_dma_read #(.Clients(Readers), .DataWidth(DataWidth), .AxiIdWidth(AxiIdWidth)) u_dma_read (
    .clk_i,
    .rst_ni,
    .valid_i(rd_valid),
    .soon_i(rd_soon),
    .ready_o(rd_ready),
    .read_i(rd),
    .lane_i(rd_lane),
    .data_valid_o(rd_data_valid),
    .data_resp_o(rd_resp),
    .data_o(rd_data),
    .wide_o(rd_wide),
    .wide_error_o(rd_wide_error),
    .arid_o(m_axi_arid),
    .araddr_o(m_axi_araddr),
    .arlen_o(m_axi_arlen),
    .arsize_o(m_axi_arsize),
    .arlock_o(m_axi_arlock),
    .arvalid_o(m_axi_arvalid),
    .arready_i(m_axi_arready),
    .rid_i(m_axi_rid),
    .rdata_i(m_axi_rdata),
    .rresp_i(m_axi_rresp),
    .rlast_i(m_axi_rlast),
    .rvalid_i(m_axi_rvalid)
  );

  trapless_smu_dma_write #(.Clients(Writers), .DataWidth(DataWidth), .AxiIdWidth(AxiIdWidth)) u_dma_write (
    .clk_i,
    .rst_ni,
    .valid_i(wr_valid),
    .soon_i(wr_soon),
    .write_i(wr),
    .done_o(wr_done),
    .done_resp_o(wr_resp),
    .awid_o(m_axi_awid),
    .awaddr_o(m_axi_awaddr),
    .awlen_o(m_axi_awlen),
    .awsize_o(m_axi_awsize),
    .awlock_o(m_axi_awlock),
    .awcache_o(m_axi_awcache),
    .awvalid_o(m_axi_awvalid),
    .awready_i(m_axi_awready),
    .wdata_o(m_axi_wdata),
    .wstrb_o(m_axi_wstrb),
    .wlast_o(m_axi_wlast),
    .wvalid_o(m_axi_wvalid),
    .wready_i(m_axi_wready),
    .bid_i(m_axi_bid),
    .bresp_i(m_axi_bresp),
    .bvalid_i(m_axi_bvalid)
  );

  assign m_axi_bready = 1'b1;
  assign m_axi_rready = 1'b1;
  assign m_axi_awburst = 2'b01;
  assign m_axi_awprot = 3'b000;
  assign m_axi_awqos = '0;
  assign m_axi_arburst = 2'b01;
  assign m_axi_arcache = 4'b0010;
  assign m_axi_arprot = 3'b000;
  assign m_axi_arqos = '0;

endmodule
