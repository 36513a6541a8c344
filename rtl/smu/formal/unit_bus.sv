// SPDX-License-Identifier: Apache-2.0
// The AXI4 master keeps the rules of AXI. Each part except lookup has at most one burst under way. Every answer that comes
// belongs to a burst for which a part waits.
`include "claim.svh"

module unit_bus
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [1:0] FetchAsk = 2'd1, FetchWait = 2'd2, RetWrite = 2'd2;
  localparam logic [2:0] PollAsk = 3'd1, PollWait = 3'd2, UpAsk = 3'd1, UpWait = 3'd2, UpWrite = 3'd3;

  // ---------------------------------------------------------------- who waits for what
  logic [Readers-1:0][3:0] due;
  logic [Readers-1:0] long;
  logic [Writers-1:0] owed, sent;
  logic [2:0] id;
  logic begun;

  assign due = `SMU.u_environment.due_q;
  assign long = `SMU.u_environment.long_q;
  assign owed = `SMU.u_environment.owed_q;
  assign sent = `SMU.u_axi.u_dma_write.sent_q;
  assign id = `SMU.u_axi.u_dma_write.sel;
  assign begun = `SMU.u_axi.u_dma_write.address_sent_q || `SMU.u_axi.u_dma_write.data_sent_q || `SMU.u_axi.u_dma_write.beat_q != '0;

  logic [Readers-1:0] lengths;
  logic [Updaters-1:0] update_due;
  always_comb begin
    for (int unsigned u = 0; u < Updaters; u++) update_due[u] = due[u] == 4'(`SMU.u_environment.update_state[u] == UpWait);
  end
  always_comb begin
    for (int unsigned c = 0; c < Readers; c++) lengths[c] = due[c] == '0 || long[c] == (3'(c) == RdFree);
  end

  `CLAIM(reads_due, due[RdLookup] > 4'd1 && due[RdComplete] != '0,
      due[RdLookup] == 4'(`SMU.u_requests.u_lookup.u_wait.count_q)
      && due[RdFree] == 4'(`SMU.u_rings.u_free.state_q == FetchWait)
      && due[RdComplete] == 4'(`SMU.u_nvme.u_complete.state_q == PollWait) && update_due == '1)
  `CLAIM(reads_long, long != '0, lengths == '1)
  `CLAIM(read_half, `SMU.u_environment.beat_q != '0, (`SMU.u_environment.beat_q & ~(Readers'(1) << RdFree)) == '0
      && (`SMU.u_environment.beat_q == '0 || due[RdFree] != '0))
  `CLAIM(writes_owed, $countones(owed) > 1, sent == owed && (owed & ~`SMU.wr_valid) == '0)
  `CLAIM(write_halves, `SMU.u_environment.addr_q || `SMU.u_environment.data_q,
      `SMU.u_axi.u_dma_write.address_sent_q == `SMU.u_environment.addr_q
      && `SMU.u_axi.u_dma_write.data_sent_q == `SMU.u_environment.data_q && !(`SMU.u_environment.addr_q
      && `SMU.u_environment.data_q))
  `CLAIM(write_in_hand, begun && `SMU.u_environment.addr_q, id < 3'(Writers) && (!begun || (`SMU.wr_valid[id] && !sent[id]
      && (!`SMU.u_environment.addr_q || `SMU.u_environment.addr_id_q == id))))
  `CLAIM(read_in_hand, `SMU.m_axi_arvalid && !`SMU.m_axi_arready, `SMU.u_axi.u_dma_read.sel < 3'(Readers))

  // ---------------------------------------------------------------- rules of AXI4
  logic aw_q, w_q, ar_q;
  logic [95:0] aw_payload, aw_payload_q, ar_payload, ar_payload_q;
  logic [72:0] w_payload, w_payload_q;
  logic [7:0] beats_q, len, awlen_q;

  assign aw_payload = 96'({`SMU.m_axi_awid, `SMU.m_axi_awaddr, `SMU.m_axi_awlen, `SMU.m_axi_awsize, `SMU.m_axi_awburst,
      `SMU.m_axi_awlock, `SMU.m_axi_awcache, `SMU.m_axi_awprot, `SMU.m_axi_awqos});
  assign ar_payload = 96'({`SMU.m_axi_arid, `SMU.m_axi_araddr, `SMU.m_axi_arlen, `SMU.m_axi_arsize, `SMU.m_axi_arburst,
      `SMU.m_axi_arlock, `SMU.m_axi_arcache, `SMU.m_axi_arprot, `SMU.m_axi_arqos});
  assign w_payload = {`SMU.m_axi_wdata, `SMU.m_axi_wstrb, `SMU.m_axi_wlast};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_q, w_q, ar_q} <= '0;
      beats_q <= '0;
    end else begin
      aw_q <= `SMU.m_axi_awvalid && !`SMU.m_axi_awready;
      w_q <= `SMU.m_axi_wvalid && !`SMU.m_axi_wready;
      ar_q <= `SMU.m_axi_arvalid && !`SMU.m_axi_arready;
      if (`SMU.m_axi_wvalid && `SMU.m_axi_wready) beats_q <= `SMU.m_axi_wlast ? '0 : beats_q + 8'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    aw_payload_q <= aw_payload;
    w_payload_q <= w_payload;
    ar_payload_q <= ar_payload;
    if (`SMU.m_axi_awvalid) awlen_q <= `SMU.m_axi_awlen;
  end

  // Length of the burst whose data are being sent; its address is shown or was taken.
  assign len = `SMU.m_axi_awvalid ? `SMU.m_axi_awlen : awlen_q;

  function automatic logic fits(logic [11:0] addr, logic [7:0] len, logic [2:0] size);
    return 16'(addr) + ((16'(len) + 16'd1) << size) <= 16'd4096 && size <= 3'd3
        && (addr & 12'((13'd1 << size) - 13'd1)) == '0;
  endfunction

  `CLAIM_WHEN(aw_stable, aw_q, `SMU.m_axi_awvalid && aw_payload == aw_payload_q)
  `CLAIM_WHEN(w_stable, w_q, `SMU.m_axi_wvalid && w_payload == w_payload_q)
  `CLAIM_WHEN(ar_stable, ar_q, `SMU.m_axi_arvalid && ar_payload == ar_payload_q)
  `CLAIM_WHEN(w_last_right, `SMU.m_axi_wvalid, `SMU.m_axi_wlast == (beats_q == len))
  `CLAIM(w_beats, beats_q == 8'd7, beats_q == 8'(`SMU.u_axi.u_dma_write.beat_q) && (!`SMU.u_axi.u_dma_write.data_sent_q
      || beats_q == '0) && (beats_q == '0 || beats_q <= len) && (!`SMU.u_environment.addr_q
      || awlen_q == 8'(`SMU.u_axi.u_dma_write.beats) - 8'd1))
  `CLAIM(w_behind_no_other, `SMU.u_environment.addr_q && `SMU.u_environment.w, !(`SMU.u_environment.aw
      && `SMU.u_environment.addr_q) && !(`SMU.u_environment.w && `SMU.u_environment.data_q))
  `CLAIM_WHEN(aw_one_of_an_id, `SMU.m_axi_awvalid, `SMU.m_axi_awid < 3'(Writers) && !owed[`SMU.m_axi_awid])
  `CLAIM_WHEN(ar_one_of_an_id, `SMU.m_axi_arvalid, `SMU.m_axi_arid < 3'(Readers) && (due[`SMU.m_axi_arid] == '0
      || (`SMU.m_axi_arid == RdLookup && due[RdLookup] < 4'(Entries))))
  `CLAIM_WHEN(aw_in_4k, `SMU.m_axi_awvalid, fits(`SMU.m_axi_awaddr[11:0], `SMU.m_axi_awlen, `SMU.m_axi_awsize))
  `CLAIM_WHEN(ar_in_4k, `SMU.m_axi_arvalid, fits(`SMU.m_axi_araddr[11:0], `SMU.m_axi_arlen, `SMU.m_axi_arsize))
  `CLAIM(lock_is_entry_sized, `SMU.m_axi_awvalid && `SMU.m_axi_awlock, (!`SMU.m_axi_awvalid || !`SMU.m_axi_awlock
      || (`SMU.m_axi_awlen == '0 && `SMU.m_axi_awsize == 3'd3)) && (!`SMU.m_axi_arvalid || !`SMU.m_axi_arlock
      || (`SMU.m_axi_arlen == '0 && `SMU.m_axi_arsize == 3'd3)))

  // An exclusive write ends a pair: the last read of its identifier was exclusive, of the same address, and answered EXOKAY.
  logic [Updaters-1:0] pair_q;
  logic [Updaters-1:0][63:0] pair_addr_q;
  logic paired;

  always_comb begin
    paired = 1'b0;
    for (int unsigned u = 0; u < Updaters; u++) begin
      if (`SMU.m_axi_awid == 3'(u)) paired = pair_q[u] && pair_addr_q[u] == `SMU.m_axi_awaddr;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned u = 0; u < Updaters; u++) begin
      if (`SMU.u_environment.ar && `SMU.m_axi_arid == 3'(u)) pair_addr_q[u] <= `SMU.m_axi_araddr;
      if (`SMU.m_axi_rvalid && `SMU.m_axi_rid == 3'(u)) pair_q[u] <= `SMU.m_axi_rresp == RespExOkay;
    end
  end

  `CLAIM_WHEN(lock_ends_pair, `SMU.m_axi_awvalid && `SMU.m_axi_awlock, paired)

  logic [Updaters-1:0] pairs;
  always_comb begin
    for (int unsigned u = 0; u < Updaters; u++) begin
      pairs[u] = !(`SMU.u_environment.update_state[u] inside {UpWait, UpWrite})
          || (pair_addr_q[u] == 64'({`SMU.u_environment.update_addr[u], 3'b0})
              && (`SMU.u_environment.update_state[u] == UpWait || pair_q[u]));
    end
  end
  `CLAIM(pairs_kept, `SMU.u_environment.update_state[0] == UpWrite, pairs == '1)

endmodule

bind trapless_smu unit_bus u_bus (.*);
