// SPDX-License-Identifier: Apache-2.0
// Read half of the AXI4 master: one request per cycle. Parts take turns, chosen a cycle ahead. The AXI identifier names the part.
`include "trapless_smu_ff.svh"

module trapless_smu_dma_read
  import trapless_smu_pkg::*;
#(
  parameter int unsigned Clients = 5,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned AxiIdWidth = 4
) (
  input logic clk_i,
  input logic rst_ni,

  input logic [Clients-1:0] valid_i,
  // The part may ask in the next cycle, or soon after.
  input logic [Clients-1:0] soon_i,
  output logic [Clients-1:0] ready_o,
  input dma_read_t [Clients-1:0] read_i,
  // Low bits of the address of the data that a client waits for. They give the place of the data on a wide bus.
  input logic [Clients-1:0][5:0] lane_i,
  output logic [Clients-1:0] data_valid_o,
  output axi_resp_e data_resp_o,
  output logic [63:0] data_o,
  // for the part that reads 16 bytes
  output logic [127:0] wide_o,
  output logic wide_error_o,

  output logic [AxiIdWidth-1:0] arid_o,
  output logic [63:0] araddr_o,
  output logic [7:0] arlen_o,
  output logic [2:0] arsize_o,
  output logic arlock_o,
  output logic arvalid_o,
  input logic arready_i,
  input logic [AxiIdWidth-1:0] rid_i,
  input logic [DataWidth-1:0] rdata_i,
  input logic [1:0] rresp_i,
  input logic rlast_i,
  input logic rvalid_i
);

  localparam int unsigned ClientWidth = $clog2(Clients);
  localparam int unsigned Bytes = DataWidth / 8;
  localparam int unsigned LaneBits = $clog2(Bytes);

  logic [ClientWidth-1:0] sel;
  dma_read_t read;

  // A request that was shown stays until it is taken.
  trapless_smu_ahead #(.Count(Clients)) u_ahead (
    .clk_i,
    .rst_ni,
    .ask_i(valid_i),
    .soon_i,
    .keep_i(arvalid_o && !arready_i),
    .sel_o(sel)
  );

  assign read = read_i[sel];
  assign arvalid_o = valid_i[sel];
  assign arid_o = AxiIdWidth'(sel);
  assign araddr_o = read.addr;
  assign arlen_o = read.wide && DataWidth < 128 ? 8'd1 : 8'd0;
  assign arsize_o = read.wide && DataWidth >= 128 ? 3'd4 : 3'd3;
  assign arlock_o = read.exclusive;

  always_comb begin
    ready_o = '0;
    ready_o[sel] = arvalid_o && arready_i;
  end

  // Responses. Only one part asks for 16 bytes. On a 64-bit bus the first half of its data waits here for the second.
  logic error;
  assign data_resp_o = axi_resp_e'(rresp_i);
  assign error = data_resp_o inside {RespSlvErr, RespDecErr};

  always_comb begin
    for (int unsigned c = 0; c < Clients; c++) data_valid_o[c] = rvalid_i && rlast_i && rid_i == AxiIdWidth'(c);
  end

  if (DataWidth == 64) begin : g_narrow
    logic [63:0] first_q;
    logic first_error_q;

    assign data_o = rdata_i;
    assign wide_o = {rdata_i, first_q};
    assign wide_error_o = error || first_error_q;

    always_ff @(posedge clk_i) begin
      if (rvalid_i && !rlast_i) begin
        first_q <= rdata_i;
        first_error_q <= error;
      end
    end
  end else begin : g_wide
    assign wide_o = 128'(rdata_i >> {lane_i[ClientWidth'(rid_i)][LaneBits-1:0], 3'b0});
    assign data_o = wide_o[63:0];
    assign wide_error_o = error;
  end

endmodule
