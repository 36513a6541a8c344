// SPDX-License-Identifier: Apache-2.0
// Read half of the AXI4 master: one request a cycle, in turn; the AXI identifier is the part that asked.
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
  output logic [Clients-1:0] ready_o,
  input dma_read_t [Clients-1:0] read_i,
  // Where on a wide bus the data lie that a client waits for: low bits of their address.
  input logic [Clients-1:0][5:0] lane_i,
  output logic [Clients-1:0] data_valid_o,
  output axi_resp_e data_resp_o,
  output logic [127:0] data_o,

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

  logic [ClientWidth-1:0] pick, sel, last_q;
  logic locked_q, any;
  dma_read_t read;

  trapless_smu_rr #(.Count(Clients)) u_pick (
    .req_i(valid_i),
    .last_i(last_q),
    .valid_o(any),
    .sel_o(pick)
  );

  // A request that was shown and not taken stays.
  assign sel = locked_q ? last_q : pick;
  assign read = read_i[sel];
  assign arvalid_o = any;
  assign arid_o = AxiIdWidth'(sel);
  assign araddr_o = read.addr;
  assign arlen_o = read.wide && DataWidth < 128 ? 8'd1 : 8'd0;
  assign arsize_o = read.wide && DataWidth >= 128 ? 3'd4 : 3'd3;
  assign arlock_o = read.exclusive;

  always_comb begin
    ready_o = '0;
    ready_o[sel] = any && arready_i;
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
      last_q <= '0;
    end else begin
      locked_q <= any && !arready_i;
      if (any) last_q <= sel;
    end
  end

  // Responses. Only one client asks for 16 bytes: on a narrow bus its first half waits here for the second.
  axi_resp_e resp;
  assign resp = axi_resp_e'(rresp_i);

  always_comb begin
    for (int unsigned c = 0; c < Clients; c++) data_valid_o[c] = rvalid_i && rlast_i && rid_i == AxiIdWidth'(c);
  end

  if (DataWidth == 64) begin : g_narrow
    logic [63:0] first_q;
    logic [AxiIdWidth-1:0] first_id_q;
    logic first_valid_q, first_error_q, second;

    assign second = first_valid_q && rvalid_i && rlast_i && rid_i == first_id_q;
    assign data_o = second ? {rdata_i, first_q} : {64'b0, rdata_i};
    assign data_resp_o = second && first_error_q ? RespSlvErr : resp;

    `TRAPLESS_FF begin
      if (!rst_ni) first_valid_q <= 1'b0;
      else if (rvalid_i && !rlast_i) first_valid_q <= 1'b1;
      else if (second) first_valid_q <= 1'b0;
    end

    always_ff @(posedge clk_i) begin
      if (rvalid_i && !rlast_i) begin
        first_q <= rdata_i;
        first_id_q <= rid_i;
        first_error_q <= resp inside {RespSlvErr, RespDecErr};
      end
    end
  end else begin : g_wide
    assign data_o = 128'(rdata_i >> {lane_i[ClientWidth'(rid_i)][LaneBits-1:0], 3'b0});
    assign data_resp_o = resp;
  end

endmodule
