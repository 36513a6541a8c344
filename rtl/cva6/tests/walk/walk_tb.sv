// SPDX-License-Identifier: Apache-2.0
// One core, with its buses as single signals for the harness (harness.cpp): memory, a mock of the SMU, interrupts.
module walk_tb #(
  parameter bit Shwdp = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [1:0]  irq_i,
  input  logic        ipi_i,
  input  logic        time_irq_i,
  input  logic        debug_req_i,

  output logic        aw_valid_o, input  logic        aw_ready_i,
  output logic [63:0] aw_addr_o,  output logic [3:0]  aw_id_o,  output logic [7:0] aw_len_o, output logic [2:0] aw_size_o,
  output logic        aw_lock_o,  output logic [5:0]  aw_atop_o,
  output logic        w_valid_o,  input  logic        w_ready_i,
  output logic [63:0] w_data_o,   output logic [7:0]  w_strb_o, output logic w_last_o,
  input  logic        b_valid_i,  output logic        b_ready_o,
  input  logic [3:0]  b_id_i,     input  logic [1:0]  b_resp_i,
  output logic        ar_valid_o, input  logic        ar_ready_i,
  output logic [63:0] ar_addr_o,  output logic [3:0]  ar_id_o,  output logic [7:0] ar_len_o, output logic [2:0] ar_size_o,
  output logic        ar_lock_o,
  input  logic        r_valid_i,  output logic        r_ready_o,
  input  logic [63:0] r_data_i,   input  logic [3:0]  r_id_i,   input  logic [1:0] r_resp_i, input  logic r_last_i,

  output logic        smu_req_valid_o, input logic smu_req_ready_i,
  output logic [55:0] smu_pte_addr_o, output logic [55:0] smu_pmd_addr_o, output logic [55:0] smu_pud_addr_o,
  output logic [63:0] smu_pte_o, output logic [7:0] smu_id_o,
  output logic        smu_abandon_o,
  input  logic        smu_rsp_valid_i,
  input  logic [7:0]  smu_rsp_id_i, input logic [1:0] smu_rsp_outcome_i, input logic [7:0] smu_rsp_reason_i,
  input  logic [63:0] smu_rsp_pte_i,

  input  logic        inval_valid_i, output logic inval_ready_o, input logic [55:0] inval_addr_i,

  // What the harness watches.
  output logic [1:0]  retired_o,
  output logic [63:0] pc_o,
  output logic        trap_o,
  output logic [63:0] cause_o,
  output logic [1:0]  privilege_o,
  output logic        debug_o,
  output logic [11:0] enabled_o  // mie
);
  localparam ariane_pkg::ariane_cfg_t Config = '{
    RASDepth: 2, BTBEntries: 32, BHTEntries: 128,
    NrNonIdempotentRules: 1, NonIdempotentAddrBase: {64'h0}, NonIdempotentLength: {64'h8000_0000},
    NrExecuteRegionRules: 2, ExecuteRegionAddrBase: {64'h8000_0000, 64'h0}, ExecuteRegionLength: {64'h4000_0000, 64'h1000},
    NrCachedRegionRules: 1, CachedRegionAddrBase: {64'h8000_0000}, CachedRegionLength: {64'h4000_0000},
    AxiCompliant: 1'b1, SwapEndianess: 1'b0, DmBaseAddress: 64'h0, NrPMPEntries: 4
  };

  ariane_axi::req_t           req;
  ariane_axi::resp_t          rsp;
  trapless_smu_pkg::smu_req_t smu_req;

  cva6 #(
    .ArianeCfg (Config),
    .Shwdp     (Shwdp),
    .ShwdpLimit(64'd20_000)
  ) u_core (
    .clk_i, .rst_ni,
    .boot_addr_i    (64'h8000_0000),
    .hart_id_i      ('0),
    .irq_i, .ipi_i, .time_irq_i, .debug_req_i,
    .cvxif_req_o    (),
    .cvxif_resp_i   ('0),
    .axi_req_o      (req),
    .axi_resp_i     (rsp),
    .smu_req_valid_o, .smu_req_ready_i,
    .smu_req_o      (smu_req),
    .smu_abandon_o, .smu_rsp_valid_i,
    .smu_rsp_i      ({smu_rsp_id_i, smu_rsp_outcome_i, smu_rsp_reason_i, smu_rsp_pte_i}),
    .inval_valid_i, .inval_ready_o, .inval_addr_i
  );

  assign {smu_pte_addr_o, smu_pmd_addr_o, smu_pud_addr_o, smu_pte_o, smu_id_o} = smu_req;

  assign aw_valid_o = req.aw_valid;
  assign aw_addr_o  = req.aw.addr;
  assign aw_id_o    = req.aw.id;
  assign aw_len_o   = req.aw.len;
  assign aw_size_o  = req.aw.size;
  assign aw_lock_o  = req.aw.lock;
  assign aw_atop_o  = req.aw.atop;
  assign w_valid_o  = req.w_valid;
  assign w_data_o   = req.w.data;
  assign w_strb_o   = req.w.strb;
  assign w_last_o   = req.w.last;
  assign b_ready_o  = req.b_ready;
  assign ar_valid_o = req.ar_valid;
  assign ar_addr_o  = req.ar.addr;
  assign ar_id_o    = req.ar.id;
  assign ar_len_o   = req.ar.len;
  assign ar_size_o  = req.ar.size;
  assign ar_lock_o  = req.ar.lock;
  assign r_ready_o  = req.r_ready;

  always_comb begin
    rsp          = '0;
    rsp.aw_ready = aw_ready_i;
    rsp.w_ready  = w_ready_i;
    rsp.ar_ready = ar_ready_i;
    rsp.b_valid  = b_valid_i;
    rsp.b.id     = b_id_i;
    rsp.b.resp   = b_resp_i;
    rsp.r_valid  = r_valid_i;
    rsp.r.id     = r_id_i;
    rsp.r.data   = r_data_i;
    rsp.r.resp   = r_resp_i;
    rsp.r.last   = r_last_i;
  end

  assign retired_o = u_core.commit_ack;
  assign pc_o      = u_core.pc_commit;
  assign trap_o    = u_core.ex_commit.valid;
  assign cause_o   = u_core.ex_commit.cause;
  assign privilege_o = u_core.priv_lvl;
  assign debug_o     = u_core.debug_mode;
  assign enabled_o   = u_core.irq_ctrl_csr_id.mie[11:0];
endmodule
