// SPDX-License-Identifier: Apache-2.0
// Queue pairs (REQ: SMU-9) and quarantine (REQ: SMU-7): where commands are written and which doorbells are rung, what a command
// says, how full the queues are, and that a command keeps its slot and its frame until the device is known to be done with it.
`include "claim.svh"

module unit_queue
  import trapless_smu_pkg::*, trapless_spec_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [1:0] CmdIdle = 2'd0, CmdLoad = 2'd1, CmdWrite = 2'd2, CmdRing = 2'd3;
  localparam logic [2:0] PollIdle = 3'd0, PollAsk = 3'd1, PollWait = 3'd2, PollMatch = 3'd3;

  entry_t [Entries-1:0] e;
  desc_t [Devices-1:0] d;
  logic [1:0] cmd_state;
  logic bell;
  logic [2:0] poll_state, cmd_device, bell_device, poll_device;
  slot_t cmd_slot, bell_slot;

  assign e = `SMU.entry;
  assign d = `SMU.desc;
  assign cmd_state = `SMU.u_nvme.u_submit.cmd_q;
  assign bell = `SMU.u_nvme.u_submit.bell_q;
  assign poll_state = `SMU.u_nvme.u_complete.state_q;
  assign cmd_slot = `SMU.command_slot;
  assign bell_slot = `SMU.u_nvme.u_submit.bell_slot_q;
  assign bell_device = `SMU.u_nvme.u_submit.bell_device_q;
  assign poll_device = `SMU.u_nvme.complete_device;

  function automatic logic [2:0] device_of(logic [63:0] value);
    return value[PTE_DEVICE_MSB:PTE_DEVICE_LSB];
  endfunction

  function automatic logic [16:0] after(logic [16:0] index, logic [16:0] depth);
    return index + 17'd1 == depth ? '0 : index + 17'd1;
  endfunction

  assign cmd_device = device_of(e[cmd_slot].value);

  // ---------------------------------------------------------------- how far the queues are in use
  logic [Devices-1:0] sound, inside_queue, counted, bounded, used;
  logic [Devices-1:0] bells_due;
  logic [7:0] n;

  for (genvar i = 0; i < Devices; i++) begin : g_due
    assign bells_due[i] = `SMU.u_nvme.g_doorbell[i].u_doorbell.tail_due_q || `SMU.u_nvme.g_doorbell[i].u_doorbell.head_due_q;
  end

  always_comb begin
    n = '0;
    for (int unsigned i = 0; i < Devices; i++) begin
      used[i] = d[i].valid || d[i].outstanding || (bell && bell_device == 3'(i))
          || ((poll_state != PollIdle || `SMU.u_nvme.u_complete.ring_q) && poll_device == 3'(i)) || bells_due[i];
      sound[i] = !used[i] || (d[i].sq_base[11:0] == '0 && d[i].cq_base[11:0] == '0 && d[i].sq_base[63:56] == '0
          && d[i].cq_base[63:56] == '0 && d[i].sq_doorbell[1:0] == '0 && d[i].cq_doorbell[1:0] == '0
          && d[i].depth > 17'(Entries) && d[i].depth <= 17'h10000);
      inside_queue[i] = (d[i].sq_tail < d[i].depth || d[i].sq_tail == '0) && (d[i].cq_head < d[i].depth || d[i].cq_head == '0);
      n = 8'(cmd_state == CmdRing && cmd_device == 3'(i));
      for (int unsigned k = 0; k < Entries; k++) n = n + 8'(e[k].command && device_of(e[k].value) == 3'(i));
      counted[i] = `SMU.u_nvme.u_desc.inflight_q[i] == n;
      bounded[i] = !used[i] || 17'(`SMU.u_nvme.u_desc.inflight_q[i]) < d[i].depth;
    end
  end

  `CLAIM(descriptor_sound, used != '0, sound == '1)
  `CLAIM(indices_in_queue, d[0].sq_tail != '0 && d[0].cq_head != '0, inside_queue == '1)
  `CLAIM(outstanding_counted, n > 8'd1, counted == '1)
  `CLAIM(outstanding_below_depth, `SMU.u_nvme.u_desc.inflight_q[0] > 8'd1, bounded == '1)
  `CLAIM_WHEN(completion_queue_read_only_when_owed, `SMU.rd_valid[RdComplete], d[device_t'(poll_device)].outstanding)
  `CLAIM(device_known, bell, (cmd_state inside {CmdIdle, CmdLoad} || cmd_device < 3'(Devices)) && poll_device < 3'(Devices)
      && (!bell || bell_device < 3'(Devices)))

  logic [Entries-1:0] at_known;
  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) at_known[i] = !e[i].command || device_of(e[i].value) < 3'(Devices);
  end
  `CLAIM(command_at_known_device, `SMU.u_requests.u_pmshr.command_q != '0, at_known == '1)

  // ---------------------------------------------------------------- the steps of a command
  // Place in its queue of the command that is written or waits for its doorbell, and of the command whose doorbell is being rung.
  logic [16:0] place_q, bell_place_q;

  always_ff @(posedge clk_i) begin
    if (`SMU.submitted) place_q <= d[device_t'(cmd_device)].sq_tail;
    if (`SMU.command_valid && !`SMU.command_end) bell_place_q <= place_q;
  end

  `CLAIM(submit_works_on_waiting, cmd_state != CmdIdle, (cmd_state == CmdIdle) || (`SMU.u_nvme.u_submit.waiting
      && e[cmd_slot].stage == StCommand))
  `CLAIM(submit_took_it, cmd_state != CmdIdle, cmd_state == CmdIdle || (`SMU.u_nvme.u_submit.slot == cmd_slot
      && `SMU.u_nvme.u_submit.device_q == cmd_device && `SMU.u_nvme.u_submit.dma_q == e[cmd_slot].dma
      && `SMU.u_nvme.u_submit.lba_q == 64'(e[cmd_slot].value[PTE_LBA_MSB:PTE_LBA_LSB])))
  `CLAIM(submit_took_place, cmd_state == CmdWrite, cmd_state != CmdWrite
      || (`SMU.u_nvme.u_submit.nsid_q == d[device_t'(cmd_device)].nsid
      && `SMU.u_nvme.u_submit.blocks_q == d[device_t'(cmd_device)].blocks
      && `SMU.u_nvme.u_submit.address_q == d[device_t'(cmd_device)].sq_base + {41'b0, d[device_t'(cmd_device)].sq_tail,
      6'b0}))
  `CLAIM(written_to_valid, cmd_state == CmdWrite, cmd_state inside {CmdIdle, CmdLoad} || d[device_t'(cmd_device)].valid)
  `CLAIM(states_exist, poll_state == 3'd4, poll_state <= 3'd4)
  // Queues and rings are set up only while no part is in the middle of a step, rings only while there is no miss.
  `CLAIM(set_up_is_quiet, `SMU.hold && `SMU.busy, `SMU.u_registers.u_csr.state_q <= 3'd5
      && (!(`SMU.u_registers.u_csr.state_q inside {3'd2, 3'd3, 3'd4, 3'd5})
      || `SMU.u_registers.u_csr.is_q == `SMU.u_registers.u_csr.is_d) && (!(`SMU.u_registers.u_csr.state_q inside {3'd3, 3'd4,
      3'd5}) || `SMU.hold == `SMU.u_registers.u_csr.hold) && (!(`SMU.u_registers.u_csr.state_q == 3'd5
      && `SMU.u_registers.u_csr.hold) || !`SMU.busy))
  `CLAIM_WHEN(set_up_is_idle, (`SMU.u_registers.u_csr.state_q == 3'd5 && `SMU.u_registers.u_csr.write_q
      && `SMU.u_registers.u_csr.ring_ok_q), !`SMU.enable && `SMU.live == '0
      && (`SMU.u_registers.u_csr.base_write ? `SMU.u_registers.u_csr.base_ok : `SMU.u_registers.u_csr.size_ok))
  `CLAIM_WHEN(written_is_merged, (`SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.state_q inside {3'd4, 3'd5}),
      `SMU.u_registers.u_csr.merged_q == ((`SMU.u_registers.u_csr.rdata_q & ~`SMU.u_registers.u_csr.biten_q) | (`SMU.u_registers.u_csr.data_q & `SMU.u_registers.u_csr.biten_q)))
  `CLAIM(tail_is_behind_command, cmd_state == CmdRing, cmd_state != CmdRing
      || d[device_t'(cmd_device)].sq_tail == after(place_q, d[device_t'(cmd_device)].depth))
  `CLAIM_WHEN(bell_says_tail_behind_command, bell, `SMU.u_nvme.u_submit.bell_tail_q == after(bell_place_q,
      d[device_t'(bell_device)].depth))
  `CLAIM_WHEN(bell_is_of_its_command, bell, e[bell_slot].command && e[bell_slot].stage == StCommand
      && device_of(e[bell_slot].value) == bell_device)
  `CLAIM_WHEN(command_written_in_its_place, (`SMU.m_axi_awvalid && `SMU.m_axi_awid == WrCommand),
      `SMU.m_axi_awaddr == d[device_t'(cmd_device)].sq_base + {41'b0, d[device_t'(cmd_device)].sq_tail, 6'b0}
      && cmd_state == CmdWrite && `SMU.m_axi_awlen == 8'd7 && `SMU.m_axi_awsize == 3'd3)

  generation_t [Entries-1:0] generation;
  assign generation = `SMU.u_nvme.generation;

  // The words of the command as they leave (NVMe, read, one page): identifier and namespace, destination, source, length.
  logic [63:0] word;
  always_comb begin
    word = '0;
    unique case (`SMU.u_bus.beats_q)
      8'd0: word = {d[device_t'(cmd_device)].nsid, generation[cmd_slot], 6'(cmd_slot), 16'h0002};
      8'd3: word = {e[cmd_slot].dma, 12'b0};
      8'd5: word = 64'(e[cmd_slot].value[PTE_LBA_MSB:PTE_LBA_LSB]);
      8'd6: word = (64'd1 << d[device_t'(cmd_device)].blocks) - 64'd1;
      default: ;
    endcase
  end
  `CLAIM_WHEN(command_words, (`SMU.m_axi_wvalid && `SMU.u_axi.u_dma_write.sel == WrCommand), `SMU.m_axi_wdata == word
      && `SMU.m_axi_wstrb == '1)

  // ---------------------------------------------------------------- the completion queue
  logic [Devices-1:0][16:0] head_q, depth_q;
  logic [Devices-1:0] phase_q, moved, reset_q, was_used_q;
  logic found_q, taken_q;
  logic [2:0] found_device_q, taken_device_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Devices; i++) begin
      head_q[i] <= d[i].cq_head;
      phase_q[i] <= d[i].phase;
      depth_q[i] <= d[i].depth;
      reset_q[i] <= !rst_ni || (`SMU.desc_write && `SMU.desc_index == 3'(i));
    end
    // An entry is taken, in the next cycle, when it was read without an error and has the expected phase.
    taken_q <= rst_ni && found_q;
    taken_device_q <= found_device_q;
    found_q <= rst_ni && `SMU.m_axi_rvalid && `SMU.m_axi_rid == RdComplete && !(`SMU.m_axi_rresp inside {RespSlvErr, RespDecErr})
        && `SMU.m_axi_rdata[CQE_PHASE_BIT] == d[device_t'(poll_device)].phase;
    found_device_q <= poll_device;
  end

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) begin
      moved[i] = reset_q[i];
      if (taken_q && taken_device_q == 3'(i)) begin
        if (d[i].cq_head == after(head_q[i], depth_q[i])
            && d[i].phase == (phase_q[i] ^ (head_q[i] + 17'd1 == depth_q[i]))) moved[i] = 1'b1;
      end else begin
        if (d[i].cq_head == head_q[i] && d[i].phase == phase_q[i]) moved[i] = 1'b1;
      end
    end
  end

  `CLAIM(head_and_phase_move_by_entries, taken_q && d[0].phase != phase_q[0], moved == '1)
  `CLAIM_WHEN(completion_read_at_head, (`SMU.m_axi_arvalid && `SMU.m_axi_arid == RdComplete),
      `SMU.m_axi_araddr == d[device_t'(poll_device)].cq_base + {43'b0, d[device_t'(poll_device)].cq_head, 4'b1000})
  `CLAIM(poll_matches_found, found_q, (poll_state == PollMatch) == found_q && (!found_q || found_device_q == poll_device))
  // The doorbell of the entry's device is rung, with the head after the entry.
  `CLAIM(poll_rings, taken_q, `SMU.u_nvme.u_complete.ring_q == taken_q && (!taken_q || (poll_state == PollIdle
      && poll_device == taken_device_q && `SMU.u_nvme.head == d[device_t'(poll_device)].cq_head)))
  `CLAIM_WHEN(poll_works_on_used, (poll_state == PollAsk || poll_state == PollWait || poll_state == PollMatch),
      d[device_t'(poll_device)].outstanding)

  // ---------------------------------------------------------------- quarantine
  entry_t [Entries-1:0] e_q;
  logic [Entries-1:0][15:0] sent_q;
  // `placed`: the PTE has the entry's frame.
  logic [Entries-1:0] placed;

  always_comb begin
    placed = '0;
    for (int unsigned u = 0; u < Updaters; u++) if (`SMU.pte_valid[u]) placed[`SMU.update_slot[u]] = 1'b1;
  end

  logic [Entries-1:0] same, ends, ends_q, gone_q, held, frame_kept, quiet, named;

  always_ff @(posedge clk_i) begin
    e_q <= e;
    ends_q <= ends;
    // The identifier that is written (see command_words).
    if (cmd_state == CmdWrite) sent_q[cmd_slot] <= {generation[cmd_slot], 6'(cmd_slot)};
    for (int unsigned i = 0; i < Entries; i++) begin
      gone_q[i] <= !rst_ni || (`SMU.returned_slot_valid && `SMU.returned_slot == slot_t'(i)) || placed[i];
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      // A command ends by a completion with its identifier from its device, or by RELEASE of its device.
      ends[i] = !rst_ni || (`SMU.completion_matched && `SMU.u_nvme.u_complete.cid == sent_q[i] && device_of(e[i].value) == poll_device)
          || (`SMU.release_desc && device_of(e[i].value) == `SMU.desc_index);
      same[i] = !(e[i].command || (cmd_state == CmdRing && cmd_slot == slot_t'(i))) || sent_q[i] == {generation[i], 6'(i)};
      held[i] = !e_q[i].command || e[i].command || ends_q[i];
      frame_kept[i] = !e_q[i].frame || e[i].frame || (gone_q[i] && !e_q[i].command);
      // A miss that was answered is not installed afterwards.
      quiet[i] = !(e_q[i].stage inside {StAnswer, StOver}) || e[i].stage inside {StAnswer, StOver, StFree} || !rst_ni;
      named[i] = !(e_q[i].command && e[i].command) || (e_q[i].pfn == e[i].pfn && e_q[i].dma == e[i].dma
          && e_q[i].value == e[i].value && e_q[i].pte == e[i].pte && e[i].stage != StFree);
    end
  end

  `CLAIM(command_has_the_identifier_sent, generation[0] > 10'd1, same == '1)
  `CLAIM(command_held_until_over, ends_q != '0, held == '1)
  `CLAIM(frame_held_while_command, gone_q != '0 && rst_ni, frame_kept == '1)
  `CLAIM(answered_is_not_installed, e_q[0].stage == StOver, quiet == '1)
  `CLAIM(command_keeps_slot_and_frame, e_q[0].command && e[0].command, named == '1)

endmodule

bind trapless_smu unit_queue u_queue (.*);
