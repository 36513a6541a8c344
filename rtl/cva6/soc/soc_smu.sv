// SPDX-License-Identifier: Apache-2.0
// The SMU with the SoC's types: one hart, one software port, registers behind an AXI4-Lite bridge.
module soc_smu
  import trapless_soc_pkg::*;
  import trapless_smu_pkg::smu_req_t;
  import trapless_smu_pkg::smu_rsp_t;
(
  input  logic      clk_i,
  input  logic      rst_ni,
  // walker
  input  logic      req_valid_i,
  output logic      req_ready_o,
  input  smu_req_t  req_i,
  input  logic      abandon_i,
  output logic      rsp_valid_o,
  output smu_rsp_t  rsp_o,
  // memory and doorbells
  output mst_req_t  mem_req_o,
  input  mst_resp_t mem_rsp_i,
  // registers
  input  slv_req_t  reg_req_i,
  output slv_resp_t reg_rsp_o
);
  lite_req_t  lite_req;
  lite_resp_t lite_rsp;

  axi_to_axi_lite #(
    .AxiAddrWidth   (AddrWidth),
    .AxiDataWidth   (DataWidth),
    .AxiIdWidth     (SlaveIdWidth),
    .AxiUserWidth   (UserWidth),
    .AxiMaxWriteTxns(1),
    .AxiMaxReadTxns (1),
    .full_req_t     (slv_req_t),
    .full_resp_t    (slv_resp_t),
    .lite_req_t     (lite_req_t),
    .lite_resp_t    (lite_resp_t)
  ) u_lite (
    .clk_i,
    .rst_ni,
    .test_i    (1'b0),
    .slv_req_i (reg_req_i),
    .slv_resp_o(reg_rsp_o),
    .mst_req_o (lite_req),
    .mst_resp_i(lite_rsp)
  );

  always_comb begin
    mem_req_o.aw.region = '0;
    mem_req_o.aw.user   = '0;
    mem_req_o.w.user    = '0;
    mem_req_o.ar.region = '0;
    mem_req_o.ar.user   = '0;
  end

  localparam int unsigned Devices = 8;

  mst_req_t                 unit_req;  // the write half of its master
  mst_resp_t                unit_rsp;
  logic [Devices-1:0][63:0] db_awaddr;
  logic [Devices-1:0][31:0] db_wdata;
  logic [Devices-1:0][1:0]  db_bresp;
  logic [Devices-1:0]       db_awvalid, db_awready, db_wvalid, db_wready, db_bvalid;

  join_doorbells #(
    .Devices(Devices),
    .IdWidth(MasterIdWidth)
  ) u_join (
    .clk_i,
    .rst_ni,
    .awid_i      (unit_req.aw.id),
    .awaddr_i    (unit_req.aw.addr),
    .awlen_i     (unit_req.aw.len),
    .awsize_i    (unit_req.aw.size),
    .awlock_i    (unit_req.aw.lock),
    .awcache_i   (unit_req.aw.cache),
    .awvalid_i   (unit_req.aw_valid),
    .awready_o   (unit_rsp.aw_ready),
    .wdata_i     (unit_req.w.data),
    .wstrb_i     (unit_req.w.strb),
    .wlast_i     (unit_req.w.last),
    .wvalid_i    (unit_req.w_valid),
    .wready_o    (unit_rsp.w_ready),
    .bvalid_o    (unit_rsp.b_valid),
    .bready_i    (unit_req.b_ready),
    .db_awaddr_i (db_awaddr),
    .db_awvalid_i(db_awvalid),
    .db_awready_o(db_awready),
    .db_wdata_i  (db_wdata),
    .db_wvalid_i (db_wvalid),
    .db_wready_o (db_wready),
    .db_bresp_o  (db_bresp),
    .db_bvalid_o (db_bvalid),
    .awid_o      (mem_req_o.aw.id),
    .awaddr_o    (mem_req_o.aw.addr),
    .awlen_o     (mem_req_o.aw.len),
    .awsize_o    (mem_req_o.aw.size),
    .awlock_o    (mem_req_o.aw.lock),
    .awcache_o   (mem_req_o.aw.cache),
    .awvalid_o   (mem_req_o.aw_valid),
    .awready_i   (mem_rsp_i.aw_ready),
    .wdata_o     (mem_req_o.w.data),
    .wstrb_o     (mem_req_o.w.strb),
    .wlast_o     (mem_req_o.w.last),
    .wvalid_o    (mem_req_o.w_valid),
    .wready_i    (mem_rsp_i.w_ready),
    .bid_i       (mem_rsp_i.b.id),
    .bresp_i     (mem_rsp_i.b.resp),
    .bvalid_i    (mem_rsp_i.b_valid),
    .bready_o    (mem_req_o.b_ready)
  );

  trapless_smu #(
    .Harts     (1),
    .Devices   (Devices),
    .Ports     (1),
    .DataWidth (DataWidth),
    .AxiIdWidth(MasterIdWidth)
  ) u_smu (
    .clk_i,
    .rst_ni,
    .req_valid_i,
    .req_ready_o,
    .req_i,
    .abandon_i,
    .rsp_valid_o,
    .rsp_o,
    .snoop_valid_i (1'b0),
    .snoop_addr_i  ('0),
    .irq_o         (),
    .idle_o        (),
    .m_axi_awid    (unit_req.aw.id),
    .m_axi_awaddr  (unit_req.aw.addr),
    .m_axi_awlen   (unit_req.aw.len),
    .m_axi_awsize  (unit_req.aw.size),
    .m_axi_awburst (mem_req_o.aw.burst),
    .m_axi_awlock  (unit_req.aw.lock),
    .m_axi_awcache (unit_req.aw.cache),
    .m_axi_awprot  (mem_req_o.aw.prot),
    .m_axi_awqos   (mem_req_o.aw.qos),
    .m_axi_awuser  (),
    .m_axi_awatop  (mem_req_o.aw.atop),
    .m_axi_awvalid (unit_req.aw_valid),
    .m_axi_awready (unit_rsp.aw_ready),
    .m_axi_wdata   (unit_req.w.data),
    .m_axi_wstrb   (unit_req.w.strb),
    .m_axi_wlast   (unit_req.w.last),
    .m_axi_wvalid  (unit_req.w_valid),
    .m_axi_wready  (unit_rsp.w_ready),
    .m_axi_bid     (mem_rsp_i.b.id),
    .m_axi_bresp   (mem_rsp_i.b.resp),
    .m_axi_bvalid  (unit_rsp.b_valid),
    .m_axi_bready  (unit_req.b_ready),
    .m_axi_arid    (mem_req_o.ar.id),
    .m_axi_araddr  (mem_req_o.ar.addr),
    .m_axi_arlen   (mem_req_o.ar.len),
    .m_axi_arsize  (mem_req_o.ar.size),
    .m_axi_arburst (mem_req_o.ar.burst),
    .m_axi_arlock  (mem_req_o.ar.lock),
    .m_axi_arcache (mem_req_o.ar.cache),
    .m_axi_arprot  (mem_req_o.ar.prot),
    .m_axi_arqos   (mem_req_o.ar.qos),
    .m_axi_aruser  (),
    .m_axi_arvalid (mem_req_o.ar_valid),
    .m_axi_arready (mem_rsp_i.ar_ready),
    .m_axi_rid     (mem_rsp_i.r.id),
    .m_axi_rdata   (mem_rsp_i.r.data),
    .m_axi_rresp   (mem_rsp_i.r.resp),
    .m_axi_rlast   (mem_rsp_i.r.last),
    .m_axi_rvalid  (mem_rsp_i.r_valid),
    .m_axi_rready  (mem_req_o.r_ready),
    .m_db_awaddr   (db_awaddr),
    .m_db_awprot   (),
    .m_db_awuser   (),
    .m_db_awvalid  (db_awvalid),
    .m_db_awready  (db_awready),
    .m_db_wdata    (db_wdata),
    .m_db_wstrb    (),
    .m_db_wvalid   (db_wvalid),
    .m_db_wready   (db_wready),
    .m_db_bresp    (db_bresp),
    .m_db_bvalid   (db_bvalid),
    .m_db_bready   (),
    .s_axil_awaddr (lite_req.aw.addr[11:0]),
    .s_axil_awprot (lite_req.aw.prot),
    .s_axil_awvalid(lite_req.aw_valid),
    .s_axil_awready(lite_rsp.aw_ready),
    .s_axil_wdata  (lite_req.w.data),
    .s_axil_wstrb  (lite_req.w.strb),
    .s_axil_wvalid (lite_req.w_valid),
    .s_axil_wready (lite_rsp.w_ready),
    .s_axil_bresp  (lite_rsp.b.resp),
    .s_axil_bvalid (lite_rsp.b_valid),
    .s_axil_bready (lite_req.b_ready),
    .s_axil_araddr (lite_req.ar.addr[11:0]),
    .s_axil_arprot (lite_req.ar.prot),
    .s_axil_arvalid(lite_req.ar_valid),
    .s_axil_arready(lite_rsp.ar_ready),
    .s_axil_rdata  (lite_rsp.r.data),
    .s_axil_rresp  (lite_rsp.r.resp),
    .s_axil_rvalid (lite_rsp.r_valid),
    .s_axil_rready (lite_req.r_ready)
  );
endmodule
