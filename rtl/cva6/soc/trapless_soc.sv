// SPDX-License-Identifier: Apache-2.0
// The SoC of the simulation: one CVA6 core, the SMU if there is one (TRAPLESS_SMU), memory and the platform's devices.
//
// core --+                +-- atomics -- memory
//        +-- mux -- demux-+-- devices (the harness: CLINT, PLIC, UART, finisher, PCIe with its NVMe drives)
// SMU ---+                +-- SMU registers
//
// The core's data cache is kept coherent: when the SMU or a drive writes to memory, the cache invalidates the lines before
// software can learn of the write. coherent_writes sees to this for the SMU, the harness (by inval_*) for drives.
module trapless_soc
  import trapless_soc_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic [63:0] boot_address_i,
  input logic [15:0] memory_read_latency_i,
  input logic [15:0] memory_write_latency_i,
  input logic [15:0] device_latency_i,
  // Interrupts of the hart: [0] machine, [1] supervisor; software; timer.
  input logic [1:0]  external_i,
  input logic        software_i,
  input logic        timer_i,
  // Lines in memory that drives have written. Nothing is read until the core's cache has invalidated them.
  input  logic        inval_valid_i,
  output logic        inval_ready_o,
  input  logic [63:0] inval_addr_i
);
  mst_req_t  [Masters-1:0] mst_req;
  mst_resp_t [Masters-1:0] mst_rsp;
  slv_req_t  bus_req;
  slv_resp_t bus_rsp;
  slv_req_t  [2:0] target_req;
  slv_resp_t [2:0] target_rsp;
  slv_req_t  memory_req;
  slv_resp_t memory_rsp;

  logic  smu_req_valid, smu_req_ready, smu_abandon, smu_rsp_valid;
  trapless_smu_pkg::smu_req_t smu_req;
  trapless_smu_pkg::smu_rsp_t smu_rsp;
  logic  smu_inval_valid, smu_inval_ready;
  addr_t smu_inval_addr;
  logic  inval_valid, inval_ready;
  addr_t inval_addr;

  cva6 #(
    .ArianeCfg    (CoreConfig),
    .AxiAddrWidth (AddrWidth),
    .AxiDataWidth (DataWidth),
    .AxiIdWidth   (MasterIdWidth),
    .axi_ar_chan_t(mst_ar_chan_t),
    .axi_aw_chan_t(mst_aw_chan_t),
    .axi_w_chan_t (mst_w_chan_t),
    .axi_req_t    (mst_req_t),
    .axi_rsp_t    (mst_resp_t),
    .Shwdp        (1'b1)
  ) u_core (
    .clk_i,
    .rst_ni,
    .boot_addr_i    (boot_address_i),
    .hart_id_i      ('0),
    .irq_i          (external_q[1]),
    .ipi_i          (software_q[1]),
    .time_i         (time_q),
    .time_irq_i     (timer_q[1]),
    .debug_req_i    (1'b0),
    .cvxif_req_o    (),
    .cvxif_resp_i   ('0),
    .axi_req_o      (mst_req[0]),
    .axi_resp_i     (mst_rsp[0]),
    .smu_req_valid_o(smu_req_valid),
    .smu_req_ready_i(smu_req_ready),
    .smu_req_o      (smu_req),
    .smu_abandon_o  (smu_abandon),
    .smu_rsp_valid_i(smu_rsp_valid),
    .smu_rsp_i      (smu_rsp),
    .inval_valid_i  (inval_valid),
    .inval_ready_o  (inval_ready),
    .inval_addr_i   (riscv::PLEN'(inval_addr))
  );

  // Inputs from the harness go through registers first. Verilator would evaluate logic that depends on an input at both edges
  // of the clock.
  logic [1:0][1:0] external_q;
  logic [1:0]      software_q, timer_q;
  logic            drive_inval_valid_q, drive_inval_ready, hold;
  addr_t           drive_inval_addr_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      external_q          <= '0;
      software_q          <= '0;
      timer_q             <= '0;
      drive_inval_valid_q <= 1'b0;
      drive_inval_addr_q  <= '0;
    end else begin
      external_q <= {external_q[0], external_i};
      software_q <= {software_q[0], software_i};
      timer_q    <= {timer_q[0], timer_i};
      if (inval_ready_o) begin
        drive_inval_valid_q <= inval_valid_i;
        drive_inval_addr_q  <= inval_addr_i;
      end
    end
  end
  assign inval_ready_o = !drive_inval_valid_q || drive_inval_ready;
  assign hold          = inval_valid_i || drive_inval_valid_q;

  // A copy of the CLINT's mtime. Both count from the reset, and nobody writes mtime.
  logic [63:0] time_q;
  logic [7:0]  tick_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      time_q <= '0;
      tick_q <= '0;
    end else if (tick_q == 8'(CyclesPerTick - 1)) begin
      time_q <= time_q + 64'd1;
      tick_q <= '0;
    end else begin
      tick_q <= tick_q + 8'd1;
    end
  end

  // One line at a time, the SMU's lines first. An invalidation that was begun is finished before the next one begins.
  logic drives_turn_d, drives_turn_q, busy_q;
  assign drives_turn_d   = busy_q ? drives_turn_q : !smu_inval_valid;
  assign inval_valid       = drives_turn_d ? drive_inval_valid_q : smu_inval_valid;
  assign inval_addr        = drives_turn_d ? drive_inval_addr_q : smu_inval_addr;
  assign drive_inval_ready = drives_turn_d && inval_ready;
  assign smu_inval_ready   = !drives_turn_d && inval_ready;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drives_turn_q <= 1'b0;
      busy_q        <= 1'b0;
    end else begin
      drives_turn_q <= drives_turn_d;
      busy_q        <= inval_valid && !inval_ready;
    end
  end

  axi_mux #(
    .SlvAxiIDWidth(MasterIdWidth),
    .slv_aw_chan_t(mst_aw_chan_t),
    .mst_aw_chan_t(slv_aw_chan_t),
    .w_chan_t     (mst_w_chan_t),
    .slv_b_chan_t (mst_b_chan_t),
    .mst_b_chan_t (slv_b_chan_t),
    .slv_ar_chan_t(mst_ar_chan_t),
    .mst_ar_chan_t(slv_ar_chan_t),
    .slv_r_chan_t (mst_r_chan_t),
    .mst_r_chan_t (slv_r_chan_t),
    .slv_req_t    (mst_req_t),
    .slv_resp_t   (mst_resp_t),
    .mst_req_t    (slv_req_t),
    .mst_resp_t   (slv_resp_t),
    .NoSlvPorts   (Masters),
    .SpillAw      (1'b0),
    .SpillAr      (1'b0)
  ) u_mux (
    .clk_i,
    .rst_ni,
    .test_i     (1'b0),
    .slv_reqs_i (mst_req),
    .slv_resps_o(mst_rsp),
    .mst_req_o  (bus_req),
    .mst_resp_i (bus_rsp)
  );

  axi_demux #(
    .AxiIdWidth (SlaveIdWidth),
    .aw_chan_t  (slv_aw_chan_t),
    .w_chan_t   (slv_w_chan_t),
    .b_chan_t   (slv_b_chan_t),
    .ar_chan_t  (slv_ar_chan_t),
    .r_chan_t   (slv_r_chan_t),
    .req_t      (slv_req_t),
    .resp_t     (slv_resp_t),
    .NoMstPorts (3),
    .MaxTrans   (8),
    .AxiLookBits(SlaveIdWidth)
  ) u_demux (
    .clk_i,
    .rst_ni,
    .test_i         (1'b0),
    .slv_req_i      (bus_req),
    .slv_aw_select_i(target(bus_req.aw.addr)),
    .slv_ar_select_i(target(bus_req.ar.addr)),
    .slv_resp_o     (bus_rsp),
    .mst_reqs_o     (target_req),
    .mst_resps_i    (target_rsp)
  );

  atomics u_atomics (
    .clk_i,
    .rst_ni,
    .req_i(target_req[TargetMemory]),
    .rsp_o(target_rsp[TargetMemory]),
    .req_o(memory_req),
    .rsp_i(memory_rsp)
  );

  sim_slave #(
    .req_t(slv_req_t),
    .rsp_t(slv_resp_t),
    .aw_t (slv_aw_chan_t),
    .ar_t (slv_ar_chan_t)
  ) u_memory (
    .clk_i,
    .rst_ni,
    .hold_i         (hold),
    .read_latency_i (memory_read_latency_i),
    .write_latency_i(memory_write_latency_i),
    .req_i          (memory_req),
    .rsp_o          (memory_rsp)
  );

  sim_slave #(
    .Devices(1'b1),
    .req_t  (slv_req_t),
    .rsp_t  (slv_resp_t),
    .aw_t   (slv_aw_chan_t),
    .ar_t   (slv_ar_chan_t)
  ) u_devices (
    .clk_i,
    .rst_ni,
    .hold_i         (hold),
    .read_latency_i (device_latency_i),
    .write_latency_i(device_latency_i),
    .req_i          (target_req[TargetDevices]),
    .rsp_o          (target_rsp[TargetDevices])
  );

`ifdef TRAPLESS_SMU
  mst_req_t  smu_mem_req;
  mst_resp_t smu_mem_rsp;

  // The SMU's clock runs only while the SMU has work, and a little longer. This makes the simulation twice as fast. All work
  // begins with a walker's request or a register access. It is not over while a miss, an answer or a transfer is under way.
  logic [6:0] smu_on_q;
  logic       smu_work, smu_clk_en_q, smu_clk;
  assign smu_work = smu_req_valid || smu_abandon || !u_smu.u_smu.idle || !u_smu.u_smu.no_dma
                    || target_req[TargetSmu].aw_valid || target_req[TargetSmu].w_valid || target_req[TargetSmu].ar_valid
                    || target_rsp[TargetSmu].b_valid || target_rsp[TargetSmu].r_valid
                    || smu_mem_req.aw_valid || smu_mem_req.w_valid || smu_mem_req.ar_valid
                    || smu_mem_rsp.b_valid || smu_mem_rsp.r_valid;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) smu_on_q <= '1;
    else if (smu_work) smu_on_q <= '1;
    else if (smu_on_q != '0) smu_on_q <= smu_on_q - 1'b1;
  end
  // Chosen between the edges, so that the clock has no glitch.
  always_ff @(negedge clk_i or negedge rst_ni) begin
    if (!rst_ni) smu_clk_en_q <= 1'b1;
    else smu_clk_en_q <= smu_work || smu_on_q != '0;
  end
  assign smu_clk = clk_i & smu_clk_en_q;

  soc_smu u_smu (
    .clk_i      (smu_clk),
    .rst_ni,
    .req_valid_i(smu_req_valid),
    .req_ready_o(smu_req_ready),
    .req_i      (smu_req),
    .abandon_i  (smu_abandon),
    .rsp_valid_o(smu_rsp_valid),
    .rsp_o      (smu_rsp),
    .mem_req_o  (smu_mem_req),
    .mem_rsp_i  (smu_mem_rsp),
    .reg_req_i  (target_req[TargetSmu]),
    .reg_rsp_o  (target_rsp[TargetSmu])
  );

  coherent_writes u_coherent_writes (
    .clk_i,
    .rst_ni,
    .req_i        (smu_mem_req),
    .rsp_o        (smu_mem_rsp),
    .req_o        (mst_req[1]),
    .rsp_i        (mst_rsp[1]),
    .inval_valid_o(smu_inval_valid),
    .inval_ready_i(smu_inval_ready),
    .inval_addr_o (smu_inval_addr)
  );
`else
  assign target_rsp[TargetSmu] = '0;
  assign {smu_req_ready, smu_rsp_valid} = '0;
  assign smu_rsp = '0;
  assign smu_inval_valid = 1'b0;
  assign smu_inval_addr  = '0;
`endif

  logic [1:0]  retired;
  logic [31:0] instruction[2];
  for (genvar port = 0; port < 2; port++) begin : gen_retired
    assign retired[port]     = u_core.commit_ack[port] && !u_core.commit_instr_id_commit[port].ex.valid;
    assign instruction[port] = u_core.commit_instr_id_commit[port].ex.tval[31:0];
  end
  sim_probe u_probe (
    .clk_i,
    .valid_i      (retired),
    .instruction_i(instruction),
    .a0_i         (u_core.issue_stage_i.i_issue_read_operands.i_ariane_regfile.mem[10]),
    .request_i    (smu_req_valid && smu_req_ready),
    .answer_i     (smu_rsp_valid),
    .done_i       (smu_rsp.outcome == trapless_smu_pkg::OutcomeDone)
  );
endmodule
