// SPDX-License-Identifier: Apache-2.0
// Doorbells (REQ: SMU-14): a write that is shown stays until it is taken, the newest value is on its way, and a device that
// does not answer is lost (its descriptor goes out of use) in time. Nothing in the unit waits for a doorbell (REQ: SMU-10):
// commands and completions go on, and registers wait only for memory.
`include "claim.svh"

// One device's doorbells.
module doorbell_view #(
  parameter int unsigned Cycles = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic broken_i,
  input logic renew_i,
  input logic tail_valid_i,
  input logic [16:0] tail_i,
  input logic head_valid_i,
  input logic [16:0] head_i,
  input logic tail_due_q,
  input logic [16:0] tail_q,
  input logic head_due_q,
  input logic [16:0] head_q,
  input logic start,
  input logic head_next,
  input logic busy_q,
  input logic told_q,
  input logic [$clog2(Cycles + 1)-1:0] count_q,
  input logic [63:0] awaddr_o,
  input logic awvalid_o,
  input logic awready_i,
  input logic [31:0] wdata_o,
  input logic wvalid_o,
  input logic wready_i,
  input logic [1:0] bresp_i,
  input logic bvalid_i,
  input logic bready_o,
  input logic lost_o,
  input logic old_o
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // These follow from the port's signals alone: which halves of the write were shown and not taken, which were taken, whether
  // this write has put the descriptor out of use (`said_q`), and how long it has been under way.
  logic aw_q, w_q, took_address_q, took_value_q, said_q, done;
  logic [63:0] awaddr_q;
  logic [31:0] wdata_q;
  logic [15:0] age_q;

  assign done = bvalid_i && bready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_q, w_q, took_address_q, took_value_q, said_q} <= '0;
      age_q <= '0;
    end else begin
      aw_q <= awvalid_o && !awready_i;
      w_q <= wvalid_o && !wready_i;
      took_address_q <= (took_address_q || (awvalid_o && awready_i)) && !done;
      took_value_q <= (took_value_q || (wvalid_o && wready_i)) && !done;
      said_q <= (said_q || lost_o) && busy_q && !done;
      if (!busy_q || done) age_q <= '0;
      else if (age_q != '1) age_q <= age_q + 16'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    awaddr_q <= awaddr_o;
    wdata_q <= wdata_o;
  end

  `CLAIM(bell_held, aw_q && w_q, (!aw_q || (awvalid_o && awaddr_o == awaddr_q)) && (!w_q || (wvalid_o && wdata_o == wdata_q)))
  `CLAIM(bell_one_write, took_address_q && took_value_q, took_address_q == (busy_q && !awvalid_o) && took_value_q == (busy_q
      && !wvalid_o) && bready_o == (took_address_q && took_value_q) && (busy_q || (!awvalid_o && !wvalid_o)))
  `CLAIM(bell_lost_in_time, age_q == 16'(Cycles - 1), age_q < 16'(Cycles) || said_q || old_o)
  `CLAIM(bell_error_loses, done && bresp_i[1] && !said_q, !(done && bresp_i[1]) || lost_o || said_q || old_o || renew_i)
  `CLAIM(bell_said_once, said_q, !busy_q || told_q == said_q)
  `CLAIM_WHEN(bell_lost_for_a_reason, lost_o, age_q == 16'(Cycles - 1) || (done && bresp_i[1]))
  `CLAIM_WHEN(bell_age, busy_q, said_q || old_o || age_q == 16'(count_q))

  // Values since the queue pair was set up: the newest is due, or was the last that was sent.
  logic tail_rung_q, head_rung_q;
  logic [16:0] tail_newest_q, head_newest_q, tail_sent_q, head_sent_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {tail_rung_q, head_rung_q} <= '0;
    end else begin
      tail_rung_q <= (tail_rung_q || tail_valid_i) && !broken_i && !renew_i;
      head_rung_q <= (head_rung_q || head_valid_i) && !broken_i && !renew_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (tail_valid_i) tail_newest_q <= tail_i;
    if (head_valid_i) head_newest_q <= head_i;
    if (start && !head_next) tail_sent_q <= tail_valid_i ? tail_i : tail_newest_q;
    if (start && head_next) head_sent_q <= head_valid_i ? head_i : head_newest_q;
  end

  `CLAIM(bell_newest, tail_due_q && busy_q, (!tail_rung_q
      || (tail_due_q ? tail_q == tail_newest_q : tail_sent_q == tail_newest_q)) && (!head_rung_q
      || (head_due_q ? head_q == head_newest_q : head_sent_q == head_newest_q)) && (!tail_due_q || tail_rung_q)
      && (!head_due_q || head_rung_q))

endmodule

module unit_doorbell
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [1:0] CmdLoad = 2'd1, CmdRing = 2'd3, FetchTake = 2'd3;
  localparam logic [2:0] PollMatch = 3'd3, PollLost = 3'd4;

  logic [Devices-1:0] apart, aligned;

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) begin
      apart[i] = !`SMU.desc[i].valid || !`SMU.u_nvme.old[i];
      aligned[i] = !`SMU.m_db_awvalid[i] || `SMU.m_db_awaddr[i][1:0] == '0;
    end
  end

  // No queue pair is served while a doorbell write for the queue pair before it may still arrive.
  `CLAIM(valid_has_no_old_doorbell, `SMU.u_nvme.old != '0, apart == '1)
  `CLAIM(bell_aligned, `SMU.m_db_awvalid != '0, aligned == '1)

  // ---------------------------------------------------------------- who waits
  logic ring_q;
  always_ff @(posedge clk_i) ring_q <= rst_ni && `SMU.u_nvme.u_submit.cmd_q == CmdRing;
  `CLAIM_WHEN(commands_wait_for_no_doorbell, ring_q, `SMU.u_nvme.u_submit.cmd_q != CmdRing)

  // `still_q`: cycles in a row in which a register write waits but no access to memory is under way. `rest`: how many such cycles
  // can still follow.
  logic memory;
  logic [2:0] still_q, submits, polls, rest;

  assign memory = `SMU.rd_valid[RdFree] || `SMU.rd_valid[RdComplete] || `SMU.u_environment.due_q[RdFree] != '0
      || `SMU.u_environment.due_q[RdComplete] != '0 || `SMU.wr_valid[WrCommand] || `SMU.wr_valid[WrReturn];

  always_comb begin
    submits = '0;
    if (`SMU.u_nvme.u_submit.cmd_q == CmdRing) submits = 3'd2;
    else if (`SMU.u_nvme.u_submit.cmd_q == CmdLoad || `SMU.u_nvme.u_submit.bell_q) submits = 3'd1;
    polls = '0;
    if (`SMU.u_nvme.u_complete.state_q == PollMatch) polls = 3'd2;
    else if (`SMU.u_nvme.u_complete.state_q == PollLost || `SMU.u_nvme.u_complete.ring_q) polls = 3'd1;
    rest = submits > polls ? submits : polls;
    if (rest == '0 && `SMU.u_rings.u_free.state_q == FetchTake) rest = 3'd1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) still_q <= '0;
    else still_q <= `SMU.hold && `SMU.busy && !memory ? still_q + 3'd1 : '0;
  end

  `CLAIM(registers_wait_for_memory_alone, `SMU.hold && `SMU.busy && !memory, (!`SMU.busy || memory || rest != '0)
      && (still_q == '0 || still_q + rest <= 3'd3))

endmodule

bind trapless_smu_doorbell doorbell_view #(.Cycles(Cycles)) u_view (.*);
bind trapless_smu unit_doorbell u_doorbell_claims (.*);
