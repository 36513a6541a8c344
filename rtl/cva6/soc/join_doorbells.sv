// SPDX-License-Identifier: Apache-2.0
// Joins the SMU's doorbell ports and the write half of its AXI4 master into one AXI4 port. One burst is sent at a time, and one
// doorbell write can wait for its answer. Doorbells have an AXI identifier that no part of the unit has. Use this only on a bus
// on which every device answers: a device that takes no doorbell stops all others. A chip keeps the ports apart
// (rtl/smu/doc/integration.md).
module join_doorbells #(
  parameter int unsigned Devices    = 8,
  parameter int unsigned IdWidth    = 4,
  parameter int unsigned DoorbellId = 2 ** IdWidth - 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // the unit's AXI4 master
  input  logic [IdWidth-1:0]       awid_i,
  input  logic [63:0]              awaddr_i,
  input  logic [7:0]               awlen_i,
  input  logic [2:0]               awsize_i,
  input  logic                     awlock_i,
  input  logic [3:0]               awcache_i,
  input  logic                     awvalid_i,
  output logic                     awready_o,
  input  logic [63:0]              wdata_i,
  input  logic [7:0]               wstrb_i,
  input  logic                     wlast_i,
  input  logic                     wvalid_i,
  output logic                     wready_o,
  output logic                     bvalid_o,
  input  logic                     bready_i,
  // its doorbells
  input  logic [Devices-1:0][63:0] db_awaddr_i,
  input  logic [Devices-1:0]       db_awvalid_i,
  output logic [Devices-1:0]       db_awready_o,
  input  logic [Devices-1:0][31:0] db_wdata_i,
  input  logic [Devices-1:0]       db_wvalid_i,
  output logic [Devices-1:0]       db_wready_o,
  output logic [Devices-1:0][1:0]  db_bresp_o,
  output logic [Devices-1:0]       db_bvalid_o,
  // the bus
  output logic [IdWidth-1:0]       awid_o,
  output logic [63:0]              awaddr_o,
  output logic [7:0]               awlen_o,
  output logic [2:0]               awsize_o,
  output logic                     awlock_o,
  output logic [3:0]               awcache_o,
  output logic                     awvalid_o,
  input  logic                     awready_i,
  output logic [63:0]              wdata_o,
  output logic [7:0]               wstrb_o,
  output logic                     wlast_o,
  output logic                     wvalid_o,
  input  logic                     wready_i,
  input  logic [IdWidth-1:0]       bid_i,
  input  logic [1:0]               bresp_i,
  input  logic                     bvalid_i,
  output logic                     bready_o
);
  localparam int unsigned Width = Devices > 1 ? $clog2(Devices) : 1;

  logic             busy_q, bell_q, bell, rung_q, address_q, data_q, any, finish, answered;
  logic [Width-1:0] device_q, device, first, rung_device_q;

  // Which port sends: the one that has begun; else a doorbell, if none waits for an answer; else memory.
  always_comb begin
    first = '0;
    for (int unsigned i = Devices; i > 0; i--) if (db_awvalid_i[i-1]) first = Width'(i - 1);
  end
  assign bell   = busy_q ? bell_q : db_awvalid_i != '0 && !rung_q;
  assign device = busy_q ? device_q : first;

  assign awvalid_o = bell ? db_awvalid_i[device] : awvalid_i;
  assign awid_o    = bell ? IdWidth'(DoorbellId) : awid_i;
  assign awaddr_o  = bell ? db_awaddr_i[device] : awaddr_i;
  assign awlen_o   = bell ? '0 : awlen_i;
  assign awsize_o  = bell ? 3'd2 : awsize_i;
  assign awlock_o  = !bell && awlock_i;
  assign awcache_o = bell ? '0 : awcache_i;
  assign wvalid_o  = bell ? db_wvalid_i[device] : wvalid_i;
  assign wdata_o   = bell ? {2{db_wdata_i[device]}} : wdata_i;
  assign wstrb_o   = bell ? (db_awaddr_i[device][2] ? 8'hf0 : 8'h0f) : wstrb_i;
  assign wlast_o   = bell || wlast_i;
  assign awready_o = !bell && awready_i;
  assign wready_o  = !bell && wready_i;

  assign any    = awvalid_o || wvalid_o;
  assign finish = (address_q || (awvalid_o && awready_i)) && (data_q || (wvalid_o && wready_i && wlast_o));

  // Answers.
  assign answered = bvalid_i && bid_i == IdWidth'(DoorbellId);
  assign bvalid_o = bvalid_i && !answered;
  assign bready_o = answered || bready_i;
  always_comb begin
    db_awready_o = '0;
    db_wready_o  = '0;
    db_bvalid_o  = '0;
    db_awready_o[device]       = bell && awready_i;
    db_wready_o[device]        = bell && wready_i;
    db_bvalid_o[rung_device_q] = answered;
    db_bresp_o = {Devices{bresp_i}};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {busy_q, bell_q, rung_q, address_q, data_q} <= '0;
      device_q      <= '0;
      rung_device_q <= '0;
    end else begin
      busy_q    <= (busy_q || any) && !finish;
      bell_q    <= bell;
      device_q  <= device;
      address_q <= (address_q || (awvalid_o && awready_i)) && !finish;
      data_q    <= (data_q || (wvalid_o && wready_i && wlast_o)) && !finish;
      rung_q    <= (rung_q && !answered) || (finish && bell);
      if (finish && bell) rung_device_q <= device;
    end
  end
endmodule
