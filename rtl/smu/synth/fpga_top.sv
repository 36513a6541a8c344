// SPDX-License-Identifier: Apache-2.0
// The SMU between shift registers, so that it is placed and timed with few pins: all its inputs come from one register, which is
// filled bit by bit, and all its outputs go to another. Only for measuring.
module fpga_top
  import trapless_smu_pkg::*;
#(
  parameter int unsigned PmshrEntries = 8,
  parameter int unsigned Harts = 2,
  parameter int unsigned Ports = 1,
  parameter int unsigned Devices = 2,
  parameter int unsigned PrefetchDepth = 4,
  parameter int unsigned Updaters = 1,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned AxiIdWidth = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic shift_i,
  input logic capture_i,
  output logic shift_o
);

  typedef struct packed {
    logic [Harts-1:0] req_valid;
    smu_req_t [Harts-1:0] req;
    logic [Harts-1:0] abandon;
    logic snoop_valid;
    logic [63:0] snoop_addr;
    logic awready;
    logic wready;
    logic [AxiIdWidth-1:0] bid;
    logic [1:0] bresp;
    logic bvalid;
    logic arready;
    logic [AxiIdWidth-1:0] rid;
    logic [DataWidth-1:0] rdata;
    logic [1:0] rresp;
    logic rlast;
    logic rvalid;
    logic [Devices-1:0] db_awready;
    logic [Devices-1:0] db_wready;
    logic [Devices-1:0][1:0] db_bresp;
    logic [Devices-1:0] db_bvalid;
    logic [11:0] s_awaddr;
    logic s_awvalid;
    logic [63:0] s_wdata;
    logic [7:0] s_wstrb;
    logic s_wvalid;
    logic s_bready;
    logic [11:0] s_araddr;
    logic s_arvalid;
    logic s_rready;
  } in_t;

  typedef struct packed {
    logic [Harts-1:0] req_ready;
    logic [Harts-1:0] rsp_valid;
    smu_rsp_t [Harts-1:0] rsp;
    logic [AxiIdWidth-1:0] awid;
    logic [63:0] awaddr;
    logic [7:0] awlen;
    logic [2:0] awsize;
    logic awlock;
    logic [3:0] awcache;
    logic awvalid;
    logic [DataWidth-1:0] wdata;
    logic [DataWidth/8-1:0] wstrb;
    logic wlast;
    logic wvalid;
    logic [AxiIdWidth-1:0] arid;
    logic [63:0] araddr;
    logic [7:0] arlen;
    logic [2:0] arsize;
    logic arlock;
    logic arvalid;
    logic [Devices-1:0][63:0] db_awaddr;
    logic irq;
    logic idle;
    logic [Devices-1:0] db_awvalid;
    logic [Devices-1:0][31:0] db_wdata;
    logic [Devices-1:0] db_wvalid;
    logic [Devices-1:0] db_bready;
    logic s_awready;
    logic s_wready;
    logic [1:0] s_bresp;
    logic s_bvalid;
    logic s_arready;
    logic [63:0] s_rdata;
    logic [1:0] s_rresp;
    logic s_rvalid;
  } out_t;

  in_t in_q;
  out_t out, out_q;

  always_ff @(posedge clk_i) begin
    in_q <= {in_q[$bits(in_t)-2:0], shift_i};
    out_q <= capture_i ? out : {out_q[$bits(out_t)-2:0], 1'b0};
  end

  assign shift_o = out_q[$bits(out_t)-1];

  trapless_smu #(
    .PmshrEntries(PmshrEntries),
    .Harts(Harts),
    .Ports(Ports),
    .Devices(Devices),
    .PrefetchDepth(PrefetchDepth),
    .Updaters(Updaters),
    .DataWidth(DataWidth),
    .AxiIdWidth(AxiIdWidth)
  ) u_smu (
    .clk_i,
    .rst_ni,
    .req_valid_i(in_q.req_valid),
    .req_ready_o(out.req_ready),
    .req_i(in_q.req),
    .abandon_i(in_q.abandon),
    .rsp_valid_o(out.rsp_valid),
    .rsp_o(out.rsp),
    .snoop_valid_i(in_q.snoop_valid),
    .snoop_addr_i(in_q.snoop_addr),
    .irq_o(out.irq),
    .idle_o(out.idle),
    .m_axi_awid(out.awid),
    .m_axi_awaddr(out.awaddr),
    .m_axi_awlen(out.awlen),
    .m_axi_awsize(out.awsize),
    .m_axi_awburst(),
    .m_axi_awlock(out.awlock),
    .m_axi_awcache(out.awcache),
    .m_axi_awprot(),
    .m_axi_awqos(),
    .m_axi_awuser(),
    .m_axi_awatop(),
    .m_axi_awvalid(out.awvalid),
    .m_axi_awready(in_q.awready),
    .m_axi_wdata(out.wdata),
    .m_axi_wstrb(out.wstrb),
    .m_axi_wlast(out.wlast),
    .m_axi_wvalid(out.wvalid),
    .m_axi_wready(in_q.wready),
    .m_axi_bid(in_q.bid),
    .m_axi_bresp(in_q.bresp),
    .m_axi_bvalid(in_q.bvalid),
    .m_axi_bready(),
    .m_axi_arid(out.arid),
    .m_axi_araddr(out.araddr),
    .m_axi_arlen(out.arlen),
    .m_axi_arsize(out.arsize),
    .m_axi_arburst(),
    .m_axi_arlock(out.arlock),
    .m_axi_arcache(),
    .m_axi_arprot(),
    .m_axi_arqos(),
    .m_axi_aruser(),
    .m_axi_arvalid(out.arvalid),
    .m_axi_arready(in_q.arready),
    .m_axi_rid(in_q.rid),
    .m_axi_rdata(in_q.rdata),
    .m_axi_rresp(in_q.rresp),
    .m_axi_rlast(in_q.rlast),
    .m_axi_rvalid(in_q.rvalid),
    .m_axi_rready(),
    .m_db_awaddr(out.db_awaddr),
    .m_db_awprot(),
    .m_db_awuser(),
    .m_db_awvalid(out.db_awvalid),
    .m_db_awready(in_q.db_awready),
    .m_db_wdata(out.db_wdata),
    .m_db_wstrb(),
    .m_db_wvalid(out.db_wvalid),
    .m_db_wready(in_q.db_wready),
    .m_db_bresp(in_q.db_bresp),
    .m_db_bvalid(in_q.db_bvalid),
    .m_db_bready(out.db_bready),
    .s_axil_awaddr(in_q.s_awaddr),
    .s_axil_awprot('0),
    .s_axil_awvalid(in_q.s_awvalid),
    .s_axil_awready(out.s_awready),
    .s_axil_wdata(in_q.s_wdata),
    .s_axil_wstrb(in_q.s_wstrb),
    .s_axil_wvalid(in_q.s_wvalid),
    .s_axil_wready(out.s_wready),
    .s_axil_bresp(out.s_bresp),
    .s_axil_bvalid(out.s_bvalid),
    .s_axil_bready(in_q.s_bready),
    .s_axil_araddr(in_q.s_araddr),
    .s_axil_arprot('0),
    .s_axil_arvalid(in_q.s_arvalid),
    .s_axil_arready(out.s_arready),
    .s_axil_rdata(out.s_rdata),
    .s_axil_rresp(out.s_rresp),
    .s_axil_rvalid(out.s_rvalid),
    .s_axil_rready(in_q.s_rready)
  );

endmodule
