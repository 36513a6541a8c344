// SPDX-License-Identifier: Apache-2.0
// The SoC of the simulation: one CVA6 core, the SMU if there is one (TRAPLESS_SMU), memory and the platform's devices.
//
// core --+                +-- atomics -- memory
//        +-- mux -- demux-+-- devices (the harness: CLINT, PLIC, UART, finisher, PCIe with its NVMe drives)
// SMU ---+                +-- SMU registers
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
  input logic        timer_i
);
  mst_req_t  [Masters-1:0] mst_req;
  mst_resp_t [Masters-1:0] mst_rsp;
  slv_req_t  bus_req;
  slv_resp_t bus_rsp;
  slv_req_t  [2:0] target_req;
  slv_resp_t [2:0] target_rsp;
  slv_req_t  memory_req;
  slv_resp_t memory_rsp;

  cva6 #(
    .ArianeCfg    (CoreConfig),
    .AxiAddrWidth (AddrWidth),
    .AxiDataWidth (DataWidth),
    .AxiIdWidth   (MasterIdWidth),
    .axi_ar_chan_t(mst_ar_chan_t),
    .axi_aw_chan_t(mst_aw_chan_t),
    .axi_w_chan_t (mst_w_chan_t),
    .axi_req_t    (mst_req_t),
    .axi_rsp_t    (mst_resp_t)
  ) u_core (
    .clk_i,
    .rst_ni,
    .boot_addr_i (boot_address_i),
    .hart_id_i   ('0),
    .irq_i       (external_i),
    .ipi_i       (software_i),
    .time_irq_i  (timer_i),
    .debug_req_i (1'b0),
    .cvxif_req_o (),
    .cvxif_resp_i('0),
    .axi_req_o   (mst_req[0]),
    .axi_resp_i  (mst_rsp[0])
  );

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
    .read_latency_i (device_latency_i),
    .write_latency_i(device_latency_i),
    .req_i          (target_req[TargetDevices]),
    .rsp_o          (target_rsp[TargetDevices])
  );

  assign target_rsp[TargetSmu] = '0;

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
    .a0_i         (u_core.issue_stage_i.i_issue_read_operands.i_ariane_regfile.mem[10])
  );
endmodule
