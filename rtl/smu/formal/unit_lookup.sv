// SPDX-License-Identifier: Apache-2.0
// A miss goes on only if its PTE is read again with the value seen, is armed, and names this unit (REQ: SMU-2, SMU-6). A free
// ring entry is used only if it is well formed (REQ: SMU-10). A queue pair is used only if it is valid and not out of use
// (REQ: SMU-7, SMU-13). The claims judge by what came over the bus.
`include "claim.svh"

module unit_lookup
  import trapless_smu_pkg::*, trapless_spec_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [1:0] CmdLoad = 2'd1, CmdWrite = 2'd2;
  localparam logic [2:0] PollAsk = 3'd1;

  entry_t [Entries-1:0] e;
  desc_t [Devices-1:0] d;
  assign e = `SMU.entry;
  assign d = `SMU.desc;

  // ---------------------------------------------------------------- the second read of the PTE
  // The entry whose data come, the data, and whether its device's queue pair was in use in the cycle of the comparison.
  slot_t slot_q, slot_q2;
  logic [63:0] data_q, data_q2;
  logic failed_q, failed_q2, told_q, told_q2, serves_q2;
  logic [2:0] device;

  assign device = e[slot_q].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB];

  always_ff @(posedge clk_i) begin
    told_q <= rst_ni && `SMU.m_axi_rvalid && `SMU.m_axi_rid == RdLookup;
    slot_q <= `SMU.u_requests.u_lookup.due;
    data_q <= `SMU.m_axi_rdata;
    failed_q <= `SMU.m_axi_rresp inside {RespSlvErr, RespDecErr};
    told_q2 <= told_q && rst_ni;
    slot_q2 <= slot_q;
    data_q2 <= data_q;
    failed_q2 <= failed_q;
    serves_q2 <= 32'(device) < Devices && d[device_t'(device)].valid && !d[device_t'(device)].broken;
  end

  // REQ: ISA-1. Whether an entry is armed, for the socket of this unit.
  function automatic logic is_ours(logic [63:0] pte);
    return !pte[PTE_V_BIT] && pte[PTE_L_BIT] && pte[PTE_U_BIT] && !pte[PTE_G_BIT] && !pte[PTE_D_BIT]
        && (pte[PTE_R_BIT] || (pte[PTE_X_BIT] && !pte[PTE_W_BIT])) && pte[PTE_HIGH_MSB:PTE_HIGH_LSB] == '0
        && pte[PTE_SOCKET_MSB:PTE_SOCKET_LSB] == '0;
  endfunction

  // An entry that is being looked up keeps the values of its request until the result of the lookup comes.
  reason_t reason;
  always_comb begin
    reason = '0;
    if (failed_q2) reason = reason_t'(REASON_BUS);
    else if (data_q2 != e[slot_q2].value) reason = reason_t'(REASON_CHANGED);
    else if (!is_ours(data_q2) || !serves_q2) reason = reason_t'(REASON_DESCRIPTOR);
  end

  `CLAIM_WHEN(lookup_reads_its_pte, `SMU.m_axi_arvalid && `SMU.m_axi_arid == RdLookup,
      `SMU.m_axi_araddr == 64'({e[`SMU.u_requests.u_lookup.asked].pte, 3'b0}))
  `CLAIM(lookup_told_as_read, told_q2 && reason == '0, `SMU.lookup_valid == told_q2 && `SMU.u_requests.u_lookup.valid_q == told_q
      && (!told_q || (`SMU.u_requests.u_lookup.slot_q == slot_q && `SMU.u_requests.u_lookup.data_q == data_q
        && `SMU.u_requests.u_lookup.error_q == failed_q && `SMU.u_requests.u_lookup.seen_q == e[slot_q].value)))
  `CLAIM_WHEN(lookup_lets_the_seen_through, told_q2, `SMU.lookup_slot == slot_q2 && `SMU.lookup_end == (reason != '0)
      && `SMU.u_requests.u_lookup.reason_o == reason && (failed_q2 || `SMU.u_requests.u_lookup.value_o == data_q2))

  // ---------------------------------------------------------------- entries of the free ring
  logic [63:0] low_q, high_q;
  logic half_q, wrong_q, sound;

  always_ff @(posedge clk_i) begin
    if (`SMU.m_axi_rvalid && `SMU.m_axi_rid == RdFree) begin
      if (`SMU.m_axi_rlast) high_q <= `SMU.m_axi_rdata;
      else low_q <= `SMU.m_axi_rdata;
      half_q <= `SMU.m_axi_rresp inside {RespSlvErr, RespDecErr};
      wrong_q <= `SMU.m_axi_rresp inside {RespSlvErr, RespDecErr} || half_q;
    end
  end

  assign sound = low_q[63:44] == '0 && high_q[11:0] == '0;

  `CLAIM_WHEN(fetched_as_read, `SMU.u_rings.u_free.state_q == 2'd3, `SMU.u_rings.u_free.read_q == {high_q, low_q}
      && `SMU.u_rings.u_free.read_error_q == wrong_q)
  `CLAIM(fetched_second_half, `SMU.u_environment.beat_q[RdFree],
      !`SMU.u_environment.beat_q[RdFree] || `SMU.u_axi.u_dma_read.g_narrow.first_q == low_q
      && `SMU.u_axi.u_dma_read.g_narrow.first_error_q == half_q)
  `CLAIM_WHEN(fetched_is_a_frame, `SMU.u_rings.u_free.push, sound && !wrong_q)
  `CLAIM_WHEN(malformed_is_kept_apart, `SMU.u_rings.u_free.took && !sound, !`SMU.u_rings.u_free.push && !wrong_q)

  // ---------------------------------------------------------------- queue pairs that are lost
  logic [Devices-1:0] broken, broken_q, lost_q, released_q, stays, starts;
  logic [Entries-1:0] ending;
  logic [1:0] cmd_q;
  logic [2:0] poll_q;
  logic serves_q, polled_q;

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) begin
      broken[i] = d[i].broken;
      stays[i] = !(broken_q[i] || lost_q[i]) || broken[i] || (released_q[i] && !lost_q[i]);
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      ending[i] = !(e[i].stage == StDevice && 32'(e[i].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB]) < Devices
          && broken[device_t'(e[i].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB])])
          || `SMU.u_nvme.kill_q[device_t'(e[i].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB])];
    end
  end

  for (genvar i = 0; i < Devices; i++) begin : g_start
    assign starts[i] = `SMU.u_nvme.g_doorbell[i].u_doorbell.start;
  end

  always_ff @(posedge clk_i) begin
    broken_q <= rst_ni ? broken : '0;
    lost_q <= rst_ni ? `SMU.u_nvme.lost : '0;
    for (int unsigned i = 0; i < Devices; i++) released_q[i] <= `SMU.release_desc && `SMU.desc_index == 3'(i);
    cmd_q <= rst_ni ? `SMU.u_nvme.u_submit.cmd_q : '0;
    serves_q <= d[device_t'(`SMU.u_nvme.u_submit.device_q)].valid && !d[device_t'(`SMU.u_nvme.u_submit.device_q)].broken;
    poll_q <= rst_ni ? `SMU.u_nvme.u_complete.state_q : '0;
    polled_q <= d[device_t'(`SMU.u_nvme.u_complete.pick)].outstanding && !d[device_t'(`SMU.u_nvme.u_complete.pick)].broken;
  end

  `CLAIM(lost_until_release, lost_q != '0, stays == '1)
  `CLAIM_WHEN(lost_is_not_rung, starts != '0, (starts & broken) == '0)
  `CLAIM_WHEN(command_for_a_queue_in_use, cmd_q == CmdLoad && `SMU.u_nvme.u_submit.cmd_q == CmdWrite, serves_q)
  `CLAIM_WHEN(poll_of_a_queue_in_use, poll_q != PollAsk && `SMU.u_nvme.u_complete.state_q == PollAsk, polled_q)
  `CLAIM(lost_ends_misses, `SMU.u_nvme.kill_q != '0, ending == '1)

endmodule

bind trapless_smu unit_lookup u_lookup_claims (.*);
