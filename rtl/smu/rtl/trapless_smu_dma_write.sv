// SPDX-License-Identifier: Apache-2.0
// Write half of the AXI4 master: one burst at a time on the address and data channels. Parts take turns, chosen a cycle ahead.
// Several responses may be due. A part holds its request until the response. The AXI identifier names the part.
`include "trapless_smu_ff.svh"

module trapless_smu_dma_write
  import trapless_smu_pkg::*;
#(
  parameter int unsigned Clients = 6,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned AxiIdWidth = 4
) (
  input logic clk_i,
  input logic rst_ni,

  input logic [Clients-1:0] valid_i,
  // The part may ask in the next cycle, or soon after.
  input logic [Clients-1:0] soon_i,
  input dma_write_t [Clients-1:0] write_i,
  output logic [Clients-1:0] done_o,
  output axi_resp_e done_resp_o,

  output logic [AxiIdWidth-1:0] awid_o,
  output logic [63:0] awaddr_o,
  output logic [7:0] awlen_o,
  output logic [2:0] awsize_o,
  output logic awlock_o,
  output logic [3:0] awcache_o,
  output logic [1:0] awburst_o,
  output logic [5:0] awatop_o,
  output logic awvalid_o,
  input logic awready_i,
  output logic [DataWidth-1:0] wdata_o,
  output logic [DataWidth/8-1:0] wstrb_o,
  output logic wlast_o,
  output logic wvalid_o,
  input logic wready_i,
  input logic [AxiIdWidth-1:0] bid_i,
  input logic [1:0] bresp_i,
  input logic bvalid_i
);

  localparam int unsigned ClientWidth = $clog2(Clients);
  localparam int unsigned Bytes = DataWidth / 8;
  localparam int unsigned LaneBits = $clog2(Bytes);

  logic [ClientWidth-1:0] sel;
  // `sent_q`: the request was sent and waits for its response.
  logic [Clients-1:0] sent_q, ask;
  logic any, address_sent_q, data_sent_q, finish;
  logic [2:0] beat_q;
  logic [3:0] beats;
  dma_write_t write;
  logic [Clients-1:0][DataWidth-1:0] slice;
  logic [Bytes-1:0] strobe;

  assign ask = valid_i & ~sent_q;

  trapless_smu_ahead #(.Count(Clients)) u_ahead (
    .clk_i,
    .rst_ni,
    .ask_i(ask),
    .soon_i,
    .keep_i(any && !finish),
    .sel_o(sel)
  );

  assign any = ask[sel];
  assign write = write_i[sel];
  assign beats = write.size > 3'(LaneBits) ? 4'd1 << (write.size - 3'(LaneBits)) : 4'd1;

  assign awvalid_o = any && !address_sent_q;
  assign awid_o = AxiIdWidth'(sel);
  assign awaddr_o = write.addr;
  assign awlen_o = 8'(beats) - 8'd1;
  assign awsize_o = write.size > 3'(LaneBits) ? 3'(LaneBits) : write.size;
  assign awlock_o = write.exclusive;
  assign awcache_o = 4'b0010;
  assign awatop_o = write.atop;
  // An AtomicCompare exchanges the 8 bytes at its address. If these are the upper half of 16 bytes, the burst wraps.
  assign awburst_o = write.atop == AtopCompare && write.addr[3] ? 2'b10 : 2'b01;

  for (genvar c = 0; c < Clients; c++) begin : g_slice
    assign slice[c] = write_i[c].data[beat_q*DataWidth+:DataWidth];
  end

  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++) begin
      strobe[i] = LaneBits'(i) >> write.size == write.addr[LaneBits-1:0] >> write.size;
    end
  end

  assign wvalid_o = any && !data_sent_q;
  assign wdata_o = slice[sel];
  assign wstrb_o = write.size >= 3'(LaneBits) ? '1 : strobe;
  assign wlast_o = 4'(beat_q) == beats - 4'd1;

  assign finish = any && (address_sent_q || awready_i) && (data_sent_q || (wready_i && wlast_o));

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      sent_q <= '0;
      address_sent_q <= 1'b0;
      data_sent_q <= 1'b0;
      beat_q <= '0;
    end else begin
      address_sent_q <= !finish && (address_sent_q || (awvalid_o && awready_i));
      data_sent_q <= !finish && (data_sent_q || (wvalid_o && wready_i && wlast_o));
      if (finish || data_sent_q) beat_q <= '0;
      else if (wvalid_o && wready_i && !wlast_o) beat_q <= beat_q + 3'd1;
      if (wvalid_o && wready_i && wlast_o) beat_q <= '0;
      sent_q <= sent_q & ~done_o;
      if (finish) sent_q[sel] <= 1'b1;
    end
  end

  always_comb begin
    for (int unsigned c = 0; c < Clients; c++) done_o[c] = bvalid_i && bid_i == AxiIdWidth'(c);
  end
  assign done_resp_o = axi_resp_e'(bresp_i);

endmodule
