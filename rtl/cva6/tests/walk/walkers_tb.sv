// SPDX-License-Identifier: Apache-2.0
// Four page table units of CVA6 (TLBs and walker, with the overlay) on one SMU, without the cores around them: the harness
// (walkers.cpp) says what each hart loads or stores, and answers the reads of the walkers and the SMU's accesses.
module walkers_tb
  import ariane_pkg::*;
#(
  parameter int unsigned Harts = 4
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [7:0]  seeded_i,  // which of the seeded faults is in force (seeded.toml)

  // Loads and stores of each hart. They are held until valid, or until a TLB hit.
  input  logic        access_i  [Harts],
  input  logic        store_i   [Harts],
  input  logic        kernel_i  [Harts],  // in S mode, with SUM
  input  logic [38:0] vaddr_i   [Harts],
  input  logic        fence_i   [Harts],  // sfence.vma: flushes the pipeline and the TLBs
  input  logic        trap_i    [Harts],  // an interrupt would be taken
  output logic        valid_o   [Harts],
  output logic        fault_o   [Harts],
  output logic [63:0] cause_o   [Harts],
  output logic        trapped_o [Harts],
  output logic [55:0] paddr_o   [Harts],

  // Reads of entries.
  output logic        read_o       [Harts],
  output logic [55:0] read_addr_o  [Harts],
  input  logic        read_valid_i [Harts],
  input  logic [63:0] read_data_i  [Harts],

  // Signals between walkers and SMU.
  output logic        smu_req_valid_o [Harts],
  output logic        smu_accepted_o  [Harts],
  output logic [55:0] smu_pte_addr_o  [Harts],
  output logic [63:0] smu_pte_o       [Harts],
  output logic        smu_abandon_o   [Harts],
  output logic        smu_rsp_valid_o [Harts],
  output logic [1:0]  smu_rsp_outcome_o [Harts],
  output logic [63:0] smu_rsp_pte_o   [Harts],

  // The SMU's ports, as in walk_tb.sv.
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
  output logic        s_bvalid_o
);
  localparam logic [riscv::PPNW-1:0] Root = riscv::PPNW'('h80100);
  localparam ariane_cfg_t Config = '{
    RASDepth: 2, BTBEntries: 32, BHTEntries: 128,
    NrNonIdempotentRules: 0, NonIdempotentAddrBase: {64'h0}, NonIdempotentLength: {64'h0},
    NrExecuteRegionRules: 1, ExecuteRegionAddrBase: {64'h8000_0000}, ExecuteRegionLength: {64'h4000_0000},
    NrCachedRegionRules: 1, CachedRegionAddrBase: {64'h8000_0000}, CachedRegionLength: {64'h4000_0000},
    AxiCompliant: 1'b1, SwapEndianess: 1'b0, DmBaseAddress: 64'h0, NrPMPEntries: 0
  };

  logic                       [Harts-1:0] req_valid, req_ready, abandon, rsp_valid;
  trapless_smu_pkg::smu_req_t [Harts-1:0] req;
  trapless_smu_pkg::smu_rsp_t [Harts-1:0] rsp;

  for (genvar h = 0; h < Harts; h++) begin : gen_hart
    shwdp_pkg::to_walker_t   to_walker;
    shwdp_pkg::from_walker_t from_walker;
    dcache_req_i_t           cache_req;
    dcache_req_o_t           cache_rsp;
    exception_t              exception;
    logic                    busy_q;

    // Nothing is older than the access.
    assign to_walker = '{
      en:           1'b1,
      drained:      1'b1,
      fetch_next:   1'b0,
      fetch_killed: 1'b0,
      trap:         trap_i[h],
      req_ready:    req_ready[h],
      rsp_valid:    rsp_valid[h],
      rsp:          rsp[h]
    };

    mmu #(
      .INSTR_TLB_ENTRIES(16),
      .DATA_TLB_ENTRIES (16),
      .ASID_WIDTH       (1),
      .ArianeCfg        (Config),
      .Shwdp            (1'b1)
    ) u_mmu (
      .clk_i, .rst_ni,
      .flush_i               (fence_i[h]),
      .enable_translation_i  (1'b1),
      .en_ld_st_translation_i(1'b1),
      .icache_areq_i         ('0),
      .icache_areq_o         (),
      .misaligned_ex_i       ('0),
      .lsu_req_i             (access_i[h]),
      .lsu_vaddr_i           (vaddr_i[h]),
      .lsu_is_store_i        (store_i[h]),
      .lsu_dtlb_hit_o        (),
      .lsu_dtlb_ppn_o        (),
      .lsu_valid_o           (valid_o[h]),
      .lsu_paddr_o           (paddr_o[h]),
      .lsu_exception_o       (exception),
      .priv_lvl_i            (kernel_i[h] ? riscv::PRIV_LVL_S : riscv::PRIV_LVL_U),
      .ld_st_priv_lvl_i      (kernel_i[h] ? riscv::PRIV_LVL_S : riscv::PRIV_LVL_U),
      .sum_i                 (1'b1),
      .mxr_i                 (1'b0),
      .satp_ppn_i            (Root),
      .asid_i                ('0),
      .asid_to_be_flushed_i  ('0),
      .vaddr_to_be_flushed_i ('0),
      .flush_tlb_i           (fence_i[h]),
      .itlb_miss_o           (),
      .dtlb_miss_o           (),
      .req_port_i            (cache_rsp),
      .req_port_o            (cache_req),
      .pmpcfg_i              ('0),
      .pmpaddr_i             ('0),
      .lsu_next_i            (access_i[h]),
      .shwdp_i               (to_walker),
      .shwdp_o               (from_walker)
    );

    // One read at a time.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni)                 busy_q <= 1'b0;
      else if (read_valid_i[h])    busy_q <= 1'b0;
      else if (cache_req.data_req) busy_q <= 1'b1;
    end
    always_comb begin
      cache_rsp             = '0;
      cache_rsp.data_gnt    = cache_req.data_req && !busy_q;
      cache_rsp.data_rvalid = read_valid_i[h];
      cache_rsp.data_rdata  = read_data_i[h];
    end
    assign read_o[h]      = cache_req.tag_valid;
    assign read_addr_o[h] = {cache_req.address_tag, cache_req.address_index};

    assign fault_o[h]   = exception.valid;
    assign cause_o[h]   = exception.cause;
    assign trapped_o[h] = from_walker.trapped;

    assign req_valid[h]         = from_walker.req_valid;
    assign req[h]               = from_walker.req;
    assign abandon[h]           = from_walker.abandon;
    assign smu_req_valid_o[h]   = req_valid[h];
    assign smu_accepted_o[h]    = req_valid[h] && req_ready[h];
    assign smu_pte_addr_o[h]    = req[h].pte_addr;
    assign smu_pte_o[h]         = req[h].pte;
    assign smu_abandon_o[h]     = abandon[h];
    assign smu_rsp_valid_o[h]   = rsp_valid[h];
    assign smu_rsp_outcome_o[h] = rsp[h].outcome;
    assign smu_rsp_pte_o[h]     = rsp[h].pte;
  end

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
    .Harts(Harts)
  ) u_smu (
    .clk_i, .rst_ni,
    .req_valid_i   (req_valid),
    .req_ready_o   (req_ready),
    .req_i         (req),
    .abandon_i     (abandon),
    .rsp_valid_o   (rsp_valid),
    .rsp_o         (rsp),
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
endmodule
