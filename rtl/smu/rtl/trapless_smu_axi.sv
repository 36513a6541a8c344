// SPDX-License-Identifier: Apache-2.0
// The AXI4 master: its read and write halves, and its constant signals.

module trapless_smu_axi
  import trapless_smu_pkg::*;
#(
  parameter int unsigned Readers = 5,
  parameter int unsigned Writers = 6,
  // Number of the reader whose lane is `lookup_lane_i`. The lanes of the others come from the addresses that they show.
  parameter int unsigned Lookup = 2,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned AxiIdWidth = 4,
  parameter logic [2:0] AxiProt = 3'b010,
  parameter int unsigned StreamIdWidth = 1,
  parameter logic [StreamIdWidth-1:0] StreamId = '0
) (
  input logic clk_i,
  input logic rst_ni,
  input dma_read_t [Readers-1:0] rd_i,
  input logic [5:0] lookup_lane_i,
  input logic [Readers-1:0] rd_valid_i,
  input logic [Readers-1:0] rd_soon_i,
  output logic [Readers-1:0] rd_ready_o,
  output logic [Readers-1:0] rd_data_valid_o,
  output axi_resp_e rd_resp_o,
  output logic [63:0] rd_data_o,
  output logic [127:0] rd_wide_o,
  output logic rd_wide_error_o,
  output logic [AxiIdWidth-1:0] m_axi_arid,
  output logic [63:0] m_axi_araddr,
  output logic [7:0] m_axi_arlen,
  output logic [2:0] m_axi_arsize,
  output logic m_axi_arlock,
  output logic m_axi_arvalid,
  input logic m_axi_arready,
  input logic [AxiIdWidth-1:0] m_axi_rid,
  input logic [DataWidth-1:0] m_axi_rdata,
  input logic [1:0] m_axi_rresp,
  input logic m_axi_rlast,
  input logic m_axi_rvalid,
  input logic [Writers-1:0] wr_valid_i,
  input logic [Writers-1:0] wr_soon_i,
  input dma_write_t [Writers-1:0] wr_i,
  output logic [Writers-1:0] wr_done_o,
  output axi_resp_e wr_resp_o,
  output logic [AxiIdWidth-1:0] m_axi_awid,
  output logic [63:0] m_axi_awaddr,
  output logic [7:0] m_axi_awlen,
  output logic [2:0] m_axi_awsize,
  output logic m_axi_awlock,
  output logic [3:0] m_axi_awcache,
  output logic [1:0] m_axi_awburst,
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
  output logic m_axi_rready,
  output logic [2:0] m_axi_awprot,
  output logic [3:0] m_axi_awqos,
  output logic [StreamIdWidth-1:0] m_axi_awuser,
  output logic [1:0] m_axi_arburst,
  output logic [3:0] m_axi_arcache,
  output logic [2:0] m_axi_arprot,
  output logic [3:0] m_axi_arqos,
  output logic [StreamIdWidth-1:0] m_axi_aruser
);

  if (!(DataWidth inside {64, 128, 256, 512})) begin : g_bad_width
    $error("DataWidth must be 64, 128, 256 or 512");
  end
  if (StreamIdWidth < 1) begin : g_bad_stream
    $error("StreamIdWidth must be at least 1");
  end
  if (AxiIdWidth < unsigned'($clog2(Readers))) begin : g_bad_id
    $error("AxiIdWidth must be at least 3");
  end

  logic [Readers-1:0][5:0] lane;

  for (genvar r = 0; r < Readers; r++) begin : g_lane
    if (r != Lookup) begin : g_own
      assign lane[r] = rd_i[r].addr[5:0];
    end else begin : g_named
      assign lane[r] = lookup_lane_i;
    end
  end

  trapless_smu_dma_read #(.Clients(Readers), .DataWidth(DataWidth), .AxiIdWidth(AxiIdWidth)) u_dma_read (
    .clk_i,
    .rst_ni,
    .valid_i(rd_valid_i),
    .soon_i(rd_soon_i),
    .ready_o(rd_ready_o),
    .read_i(rd_i),
    .lane_i(lane),
    .data_valid_o(rd_data_valid_o),
    .data_resp_o(rd_resp_o),
    .data_o(rd_data_o),
    .wide_o(rd_wide_o),
    .wide_error_o(rd_wide_error_o),
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
    .valid_i(wr_valid_i),
    .soon_i(wr_soon_i),
    .write_i(wr_i),
    .done_o(wr_done_o),
    .done_resp_o(wr_resp_o),
    .awid_o(m_axi_awid),
    .awaddr_o(m_axi_awaddr),
    .awlen_o(m_axi_awlen),
    .awsize_o(m_axi_awsize),
    .awlock_o(m_axi_awlock),
    .awcache_o(m_axi_awcache),
    .awburst_o(m_axi_awburst),
    .awatop_o(m_axi_awatop),
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
  assign m_axi_awprot = AxiProt;
  assign m_axi_awqos = '0;
  assign m_axi_awuser = StreamId;
  assign m_axi_arburst = 2'b01;
  assign m_axi_arcache = 4'b0010;
  assign m_axi_arprot = AxiProt;
  assign m_axi_arqos = '0;
  assign m_axi_aruser = StreamId;

endmodule
