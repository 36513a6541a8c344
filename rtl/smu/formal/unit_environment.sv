// SPDX-License-Identifier: Apache-2.0
// Assumptions of the proofs of the whole unit. All are about the other side of its ports: reset, walkers that have one wait at a
// time, and an AXI memory that answers only what it was asked. Registers are written with any value at any time.
`include "claim.svh"

module unit_environment
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;
`ifdef FORMAL_STEP
  always_comb assume (rst_ni);
`elsif CLAIMS_SIMULATED
`else
  always_comb assume (rst_ni == !first);
`endif

  // ---------------------------------------------------------------- the updaters, by their number
  logic [Updaters-1:0][2:0] update_state;
  logic [Updaters-1:0][1:0] update_level;
  logic [Updaters-1:0] update_tries, update_doubts;
  entry_addr_t [Updaters-1:0] update_addr;

  for (genvar u = 0; u < Updaters; u++) begin : g_update
    assign update_state[u] = `SMU.u_updaters.g_update[u].g_pair.u_update.state_q;
    assign update_level[u] = `SMU.u_updaters.g_update[u].g_pair.u_update.level_q;
    assign update_tries[u] = `SMU.u_updaters.g_update[u].g_pair.u_update.try_q;
    assign update_doubts[u] = `SMU.u_updaters.g_update[u].g_pair.u_update.doubt_q;
    assign update_addr[u] = `SMU.u_updaters.g_update[u].g_pair.u_update.addr;
  end

  // ---------------------------------------------------------------- walkers
  // `wait_q`: a request was accepted, and is neither answered nor abandoned.
  logic [Harts-1:0] wait_q, accept, valid_q, ready_q;
  smu_req_t [Harts-1:0] req_q;
  logic [Harts-1:0] stable, free;

  assign accept = `SMU.req_valid_i & `SMU.req_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_q <= '0;
      valid_q <= '0;
    end else begin
      wait_q <= ((wait_q & ~`SMU.rsp_valid_o) | accept) & ~`SMU.abandon_i;
      valid_q <= `SMU.req_valid_i & ~accept;
    end
  end
  always_ff @(posedge clk_i) req_q <= `SMU.req_i;

  always_comb begin
    for (int unsigned h = 0; h < Harts; h++) begin
      stable[h] = !(valid_q[h] && `SMU.req_valid_i[h]) || `SMU.req_i[h] == req_q[h];
      free[h] = !`SMU.req_valid_i[h] || !wait_q[h] || `SMU.rsp_valid_o[h] || `SMU.abandon_i[h];
    end
  end
  `ASSUME(stable == '1)
  `ASSUME(free == '1)

  // ---------------------------------------------------------------- memory, reads
  // Per identifier. `due_q`: bursts to be answered. `long_q`: they have two beats. `beat_q`: one beat of the first burst has
  // come.
  logic [Readers-1:0][3:0] due_q;
  logic [Readers-1:0] long_q, beat_q, lock_q;
  logic ar, r;
  logic [2:0] arid, rid;

  assign ar = `SMU.m_axi_arvalid && `SMU.m_axi_arready;
  assign r = `SMU.m_axi_rvalid && `SMU.m_axi_rready;
  assign arid = `SMU.m_axi_arid;
  assign rid = `SMU.m_axi_rid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      due_q <= '0;
      beat_q <= '0;
    end else begin
      for (int unsigned c = 0; c < Readers; c++) begin
        due_q[c] <= due_q[c] + 4'(ar && arid == 3'(c)) - 4'(r && `SMU.m_axi_rlast && rid == 3'(c));
        if (r && rid == 3'(c)) beat_q[c] <= !`SMU.m_axi_rlast;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (ar) begin
      long_q[arid] <= `SMU.m_axi_arlen == 8'd1;
      lock_q[arid] <= `SMU.m_axi_arlock;
    end
  end

  `ASSUME(!`SMU.m_axi_rvalid || rid < 3'(Readers))
  `ASSUME(!`SMU.m_axi_rvalid || due_q[rid] != '0)
  `ASSUME(!`SMU.m_axi_rvalid || `SMU.m_axi_rlast == (!long_q[rid] || beat_q[rid]))
  `ASSUME(!`SMU.m_axi_rvalid || `SMU.m_axi_rresp != RespExOkay || lock_q[rid])

  // ---------------------------------------------------------------- memory, writes
  // `addr_q`, `data_q`: address and last data of the burst that is being sent were taken. `owed_q`: an identifier's burst is to
  // be answered.
  logic addr_q, data_q, addr_lock_q, finish;
  logic [2:0] addr_id_q, finish_id;
  logic [Writers-1:0] owed_q, owed_lock_q;
  logic aw, w, b;

  assign aw = `SMU.m_axi_awvalid && `SMU.m_axi_awready;
  assign w = `SMU.m_axi_wvalid && `SMU.m_axi_wready && `SMU.m_axi_wlast;
  assign b = `SMU.m_axi_bvalid && `SMU.m_axi_bready;
  assign finish = (aw || addr_q) && (w || data_q);
  assign finish_id = addr_q ? addr_id_q : `SMU.m_axi_awid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      addr_q <= 1'b0;
      data_q <= 1'b0;
      owed_q <= '0;
    end else begin
      addr_q <= (addr_q || aw) && !finish;
      data_q <= (data_q || w) && !finish;
      for (int unsigned c = 0; c < Writers; c++) begin
        if (b && `SMU.m_axi_bid == 3'(c)) owed_q[c] <= 1'b0;
        if (finish && finish_id == 3'(c)) owed_q[c] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (finish) owed_lock_q[finish_id] <= addr_q ? addr_lock_q : `SMU.m_axi_awlock;
    if (aw) begin
      addr_id_q <= `SMU.m_axi_awid;
      addr_lock_q <= `SMU.m_axi_awlock;
    end
  end

  `ASSUME(!`SMU.m_axi_bvalid || `SMU.m_axi_bid < 3'(Writers))
  `ASSUME(!`SMU.m_axi_bvalid || owed_q[`SMU.m_axi_bid])
  `ASSUME(!`SMU.m_axi_bvalid || `SMU.m_axi_bresp != RespExOkay || owed_lock_q[`SMU.m_axi_bid])

  // ---------------------------------------------------------------- doorbells: one answer for each write, at any time
  logic [Devices-1:0] bell_addr_q, bell_data_q, bell_owed;

  assign bell_owed = bell_addr_q & bell_data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {bell_addr_q, bell_data_q} <= '0;
    end else begin
      bell_addr_q <= (bell_addr_q | (`SMU.m_db_awvalid & `SMU.m_db_awready)) & ~(`SMU.m_db_bvalid & `SMU.m_db_bready);
      bell_data_q <= (bell_data_q | (`SMU.m_db_wvalid & `SMU.m_db_wready)) & ~(`SMU.m_db_bvalid & `SMU.m_db_bready);
    end
  end
  `ASSUME((`SMU.m_db_bvalid & ~bell_owed) == '0)

  // ---------------------------------------------------------------- registers: the other side keeps the rules of AXI4-Lite
  logic aw_held_q, w_held_q, ar_held_q;
  logic [11:0] awaddr_q, araddr_q;
  logic [63:0] wdata_q;
  logic [7:0] wstrb_q;

  always_ff @(posedge clk_i) begin
    aw_held_q <= rst_ni && `SMU.s_axil_awvalid && !`SMU.s_axil_awready;
    w_held_q <= rst_ni && `SMU.s_axil_wvalid && !`SMU.s_axil_wready;
    ar_held_q <= rst_ni && `SMU.s_axil_arvalid && !`SMU.s_axil_arready;
    awaddr_q <= `SMU.s_axil_awaddr;
    araddr_q <= `SMU.s_axil_araddr;
    wdata_q <= `SMU.s_axil_wdata;
    wstrb_q <= `SMU.s_axil_wstrb;
  end

  `ASSUME(!(rst_ni && aw_held_q) || (`SMU.s_axil_awvalid && `SMU.s_axil_awaddr == awaddr_q))
  `ASSUME(!(rst_ni && w_held_q) || (`SMU.s_axil_wvalid && {`SMU.s_axil_wdata, `SMU.s_axil_wstrb} == {wdata_q, wstrb_q}))
  `ASSUME(!(rst_ni && ar_held_q) || (`SMU.s_axil_arvalid && `SMU.s_axil_araddr == araddr_q))

endmodule

bind trapless_smu unit_environment u_environment (.*);
