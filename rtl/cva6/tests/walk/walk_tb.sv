// SPDX-License-Identifier: Apache-2.0
// One core, with its buses as single signals for the harness (harness.cpp): memory, the SMU or its mock, interrupts.
module walk_tb #(
  parameter bit Shwdp = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [7:0]  seeded_i,  // which of the seeded faults is in force (seeded.toml)
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

  // The walker's requests, and the answers of the harness or the SMU.
  input  logic        smu_hold_i,  // the SMU accepts nothing
  output logic        smu_req_valid_o,
  output logic        smu_accepted_o,
  output logic [55:0] smu_pte_addr_o,
  output logic [55:0] smu_pmd_addr_o,
  output logic [55:0] smu_pud_addr_o,
  output logic [63:0] smu_pte_o,
  output logic [7:0]  smu_id_o,
  output logic        smu_abandon_o,
`ifdef WALK_SMU
  output logic        smu_rsp_valid_o,
  output logic [7:0]  smu_rsp_id_o,
  output logic [1:0]  smu_rsp_outcome_o,
  output logic        m_awvalid_o, input  logic        m_awready_i,
  output logic [63:0] m_awaddr_o,  output logic [3:0]  m_awid_o, output logic m_awlock_o,
  output logic        m_wvalid_o,  input  logic        m_wready_i,
  output logic [63:0] m_wdata_o,   output logic [7:0]  m_wstrb_o, output logic m_wlast_o,
  input  logic        m_bvalid_i,  output logic        m_bready_o,
  input  logic [3:0]  m_bid_i,     input  logic [1:0]  m_bresp_i,
  output logic        m_arvalid_o, input  logic        m_arready_i,
  output logic [63:0] m_araddr_o,  output logic [3:0]  m_arid_o, output logic [7:0] m_arlen_o, output logic m_arlock_o,
  input  logic        m_rvalid_i,  output logic        m_rready_o,
  input  logic [63:0] m_rdata_i,   input  logic [3:0]  m_rid_i,  input  logic [1:0] m_rresp_i, input logic m_rlast_i,
  input  logic [11:0] s_addr_i,    input  logic [63:0] s_wdata_i,
  input  logic        s_awvalid_i, output logic        s_awready_o,
  input  logic        s_wvalid_i,  output logic        s_wready_o,
  output logic        s_bvalid_o,
`else
  input  logic        smu_req_ready_i,
  input  logic        smu_rsp_valid_i,
  input  logic [7:0]  smu_rsp_id_i,
  input  logic [1:0]  smu_rsp_outcome_i,
  input  logic [7:0]  smu_rsp_reason_i,
  input  logic [63:0] smu_rsp_pte_i,
`endif

  input  logic        inval_valid_i, output logic inval_ready_o, input logic [55:0] inval_addr_i,

  // Signals that the harness watches.
  output logic [1:0]  retired_o,
  output logic [63:0] pc_o,
  output logic        trap_o,
  output logic        walks_o,
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
  trapless_smu_pkg::smu_rsp_t smu_rsp;
  logic                       smu_req_ready, smu_rsp_valid;

  cva6 #(
    .ArianeCfg(Config),
    .Shwdp    (Shwdp)
  ) u_core (
    .clk_i, .rst_ni,
    .boot_addr_i    (64'h8000_0000),
    .hart_id_i      ('0),
    .irq_i, .ipi_i, .time_irq_i, .debug_req_i,
    .cvxif_req_o    (),
    .cvxif_resp_i   ('0),
    .axi_req_o      (req),
    .axi_resp_i     (rsp),
    .smu_req_valid_o,
    .smu_req_ready_i(smu_accepted_o),
    .smu_req_o      (smu_req),
    .smu_abandon_o,
    .smu_rsp_valid_i(smu_rsp_valid),
    .smu_rsp_i      (smu_rsp),
    .inval_valid_i, .inval_ready_o, .inval_addr_i
  );

  assign smu_accepted_o = smu_req_valid_o && smu_req_ready && !smu_hold_i;
`ifdef WALK_SMU
  // The unit's writes to memory and its doorbells on one bus.
  logic [3:0]       awid;
  logic [63:0]      awaddr, wdata;
  logic [7:0]       awlen, wstrb;
  logic [2:0]       awsize;
  logic             awlock, awvalid, awready, wlast, wvalid, wready, bvalid, bready;
  logic [7:0][63:0] db_awaddr;
  logic [7:0][31:0] db_wdata;
  logic [7:0][1:0]  db_bresp;
  logic [7:0]       db_awvalid, db_awready, db_wvalid, db_wready, db_bvalid;

  join_doorbells u_join (
    .clk_i, .rst_ni,
    .awid_i(awid), .awaddr_i(awaddr), .awlen_i(awlen), .awsize_i(awsize), .awlock_i(awlock), .awcache_i('0),
    .awvalid_i(awvalid), .awready_o(awready),
    .wdata_i(wdata), .wstrb_i(wstrb), .wlast_i(wlast), .wvalid_i(wvalid), .wready_o(wready),
    .bvalid_o(bvalid), .bready_i(bready),
    .db_awaddr_i(db_awaddr), .db_awvalid_i(db_awvalid), .db_awready_o(db_awready),
    .db_wdata_i(db_wdata), .db_wvalid_i(db_wvalid), .db_wready_o(db_wready),
    .db_bresp_o(db_bresp), .db_bvalid_o(db_bvalid),
    .awid_o(m_awid_o), .awaddr_o(m_awaddr_o), .awlen_o(), .awsize_o(), .awlock_o(m_awlock_o), .awcache_o(),
    .awvalid_o(m_awvalid_o), .awready_i(m_awready_i),
    .wdata_o(m_wdata_o), .wstrb_o(m_wstrb_o), .wlast_o(m_wlast_o), .wvalid_o(m_wvalid_o), .wready_i(m_wready_i),
    .bid_i(m_bid_i), .bresp_i(m_bresp_i), .bvalid_i(m_bvalid_i), .bready_o(m_bready_o)
  );

  trapless_smu #(
    .Harts(1)
  ) u_smu (
    .clk_i, .rst_ni,
    .req_valid_i   (smu_req_valid_o && !smu_hold_i),
    .req_ready_o   (smu_req_ready),
    .req_i         (smu_req),
    .abandon_i     (smu_abandon_o),
    .rsp_valid_o   (smu_rsp_valid),
    .rsp_o         (smu_rsp),
    .snoop_valid_i (1'b0),
    .snoop_addr_i  ('0),
    .irq_o         (),
    .idle_o        (),
    .m_axi_awid(awid), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(awsize), .m_axi_awburst(),
    .m_axi_awlock(awlock), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(), .m_axi_awuser(),
    .m_axi_awvalid(awvalid), .m_axi_awready(awready),
    .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
    .m_axi_bid(m_bid_i), .m_axi_bresp(m_bresp_i), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
    .m_db_awaddr(db_awaddr), .m_db_awprot(), .m_db_awuser(), .m_db_awvalid(db_awvalid), .m_db_awready(db_awready),
    .m_db_wdata(db_wdata), .m_db_wstrb(), .m_db_wvalid(db_wvalid), .m_db_wready(db_wready),
    .m_db_bresp(db_bresp), .m_db_bvalid(db_bvalid), .m_db_bready(),
    .m_axi_arid(m_arid_o), .m_axi_araddr(m_araddr_o), .m_axi_arlen(m_arlen_o), .m_axi_arsize(), .m_axi_arburst(),
    .m_axi_arlock(m_arlock_o), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(), .m_axi_aruser(),
    .m_axi_arvalid(m_arvalid_o), .m_axi_arready(m_arready_i),
    .m_axi_rid(m_rid_i), .m_axi_rdata(m_rdata_i), .m_axi_rresp(m_rresp_i), .m_axi_rlast(m_rlast_i),
    .m_axi_rvalid(m_rvalid_i), .m_axi_rready(m_rready_o),
    .s_axil_awaddr(s_addr_i), .s_axil_awprot('0), .s_axil_awvalid(s_awvalid_i), .s_axil_awready(s_awready_o),
    .s_axil_wdata(s_wdata_i), .s_axil_wstrb('1), .s_axil_wvalid(s_wvalid_i), .s_axil_wready(s_wready_o),
    .s_axil_bresp(), .s_axil_bvalid(s_bvalid_o), .s_axil_bready(1'b1),
    .s_axil_araddr('0), .s_axil_arprot('0), .s_axil_arvalid(1'b0), .s_axil_arready(),
    .s_axil_rdata(), .s_axil_rresp(), .s_axil_rvalid(), .s_axil_rready(1'b1)
  );
  assign smu_rsp_valid_o   = smu_rsp_valid;
  assign smu_rsp_id_o      = smu_rsp.id;
  assign smu_rsp_outcome_o = smu_rsp.outcome;
`else
  assign smu_req_ready = smu_req_ready_i;
  assign smu_rsp_valid = smu_rsp_valid_i;
  assign smu_rsp       = {smu_rsp_id_i, smu_rsp_outcome_i, smu_rsp_reason_i, smu_rsp_pte_i};
`endif

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
  assign walks_o   = u_core.ex_stage_i.lsu_i.gen_mmu_sv39.i_cva6_mmu.ptw_active;
  assign trap_o    = u_core.ex_commit.valid;
  assign cause_o   = u_core.ex_commit.cause;
  assign privilege_o = u_core.priv_lvl;
  assign debug_o     = u_core.debug_mode;
  assign enabled_o   = u_core.irq_ctrl_csr_id.mie[11:0];
endmodule
