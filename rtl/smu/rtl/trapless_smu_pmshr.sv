// SPDX-License-Identifier: Apache-2.0
// Page miss status holding registers: fully associative by the PTE's address, each with its waiters (REQ: SMU-1).
//
// An entry belongs to one part of the unit at a time, and its stage says which. Each part reports the result of its step here.
// Only an entry at a device can be changed from several sides: by `kill_i`, the timeout and the completion unit.
`include "trapless_smu_ff.svh"

module trapless_smu_pmshr
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Sources = 8,
  parameter int unsigned Updaters = 2,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  output entry_t [Entries-1:0] entry_o,
  output logic [Entries-1:0] live_o,

  // search for the PTE's address `search_i`; the result is reported and used in the next cycle. Searches
  // are never in adjacent cycles.
  input entry_addr_t search_i,
  input smu_req_t req_i,
  output logic hit_o,
  output logic free_o,
  // no entry can be allocated, perhaps for ever: misses that are over keep every entry, or misses that nobody waits for keep too
  // many entries and one of these misses is at the device of this request (REQ: SMU-10)
  output logic stuck_o,
  input logic act_i,
  input logic join_i,
  input logic allocate_i,
  input logic [Sources-1:0] source_i,
  input logic [Sources-1:0] abandon_i,
  output logic [SlotWidth-1:0] allocated_o,

  // lookup: the miss goes on to wait for a frame, or ends
  input logic lookup_valid_i,
  input logic lookup_end_i,
  input logic [SlotWidth-1:0] lookup_slot_i,
  input reason_t lookup_reason_i,
  input logic [63:0] lookup_value_i,

  // frame given, or no frame available
  input logic frame_valid_i,
  input logic frame_end_i,
  input logic [SlotWidth-1:0] frame_slot_i,
  input logic [43:0] frame_pfn_i,
  input logic [51:0] frame_dma_i,

  // command written, or not
  input logic command_valid_i,
  input logic command_end_i,
  input logic [SlotWidth-1:0] command_slot_i,
  input reason_t command_reason_i,

  // the write of the doorbell begins; with `device_end_i` the device is out of use instead
  input logic device_valid_i,
  input logic device_end_i,
  input logic [SlotWidth-1:0] device_slot_i,
  input reason_t device_reason_i,

  // completion found: the command is over
  input logic completion_valid_i,
  input logic completion_error_i,
  input logic [SlotWidth-1:0] completion_slot_i,
  // no completion in time
  input logic timeout_valid_i,
  input logic [SlotWidth-1:0] timeout_slot_i,
  // all misses at this device end; with `release_i` its commands are over, too
  input logic kill_i,
  input logic release_i,
  input logic [2:0] kill_device_i,

  // install
  input logic [Updaters-1:0] pte_valid_i,
  input logic [Updaters-1:0] update_valid_i,
  input logic [Updaters-1:0][SlotWidth-1:0] update_slot_i,
  input reason_t [Updaters-1:0] update_reason_i,
  input logic [Updaters-1:0] update_mapped_i,
  input logic [Updaters-1:0][63:0] update_value_i,

  // entry whose answer leaves, as a number and as one bit per entry; entry whose frame has gone back
  input logic [SlotWidth-1:0] answer_slot_i,
  input logic [Entries-1:0] answer_leaves_i,
  output logic [Sources-1:0] waiters_o,
  input logic returned_valid_i,
  input logic [SlotWidth-1:0] returned_slot_i
);

  stage_e [Entries-1:0] stage_q, stage_d;
  logic [Entries-1:0] command_q, command_d, frame_q, frame_d, mapped_q, mapped_d;
  reason_t [Entries-1:0] reason_q, reason_d;
  logic [Entries-1:0][Sources-1:0] waiters_q, waiters_d;
  entry_addr_t [Entries-1:0] pte_q, pmd_q, pud_q;
  logic [Entries-1:0][63:0] value_q;
  logic [Entries-1:0][43:0] pfn_q;
  logic [Entries-1:0][51:0] dma_q;

  // Limit of entries whose misses nobody waits for. A unit with fewer than 8 entries has no limit.
  localparam int unsigned Forgotten = Entries - Entries / 4;
  localparam bit Spares = Entries >= 8;

  logic [Entries-1:0] same_q, match, free, kept, forgotten, take_q;
  logic crowded, mine;
  logic [SlotWidth-1:0] free_slot, free_slot_q;
  logic free_q, stuck_q;

  function automatic logic [2:0] device_of(logic [63:0] value);
    return value[PTE_DEVICE_MSB:PTE_DEVICE_LSB];
  endfunction

  always_comb begin
    free_slot = '0;
    for (int unsigned i = Entries; i > 0; i--) begin
      live_o[i-1] = stage_q[i-1] != StFree && stage_q[i-1] != StOver;
      kept[i-1] = stage_q[i-1] == StOver && (command_q[i-1] || frame_q[i-1]);
      forgotten[i-1] = command_q[i-1] && waiters_q[i-1] == '0;
      free[i-1] = stage_q[i-1] == StFree;
      // An entry whose answer leaves in this cycle takes no more waiters.
      match[i-1] = same_q[i-1] && live_o[i-1] && !answer_leaves_i[i-1];
      if (free[i-1]) free_slot = SlotWidth'(i - 1);
    end
    mine = 1'b0;
    for (int unsigned i = 0; i < Entries; i++) mine |= forgotten[i] && device_of(value_q[i]) == device_of(req_i.pte);
    crowded = Spares && mine && unsigned'($countones(forgotten)) >= Forgotten;
  end

  // Nothing is allocated between search and act, so tags do not change, and free entries stay free.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++) same_q[i] <= pte_q[i] == search_i;
    free_q <= free != '0 && !crowded;
    free_slot_q <= free_slot;
    take_q <= free & (~free + 1'b1);
    stuck_q <= kept == '1 || crowded;
  end

  assign hit_o = match != '0;
  assign free_o = free_q;
  assign stuck_o = stuck_q;
  assign allocated_o = free_slot_q;
  assign waiters_o = waiters_q[answer_slot_i] & ~abandon_i;

  for (genvar i = 0; i < Entries; i++) begin : g_entry
    assign entry_o[i] = '{
      stage: stage_q[i],
      command: command_q[i],
      frame: frame_q[i],
      mapped: mapped_q[i],
      reason: reason_q[i],
      pte: pte_q[i],
      pmd: pmd_q[i],
      pud: pud_q[i],
      value: value_q[i],
      pfn: pfn_q[i],
      dma: dma_q[i]
    };
  end

  always_comb begin
    stage_d = stage_q;
    command_d = command_q;
    frame_d = frame_q;
    mapped_d = mapped_q;
    reason_d = reason_q;
    waiters_d = waiters_q;

    for (int unsigned i = 0; i < Entries; i++) begin
      waiters_d[i] = waiters_q[i] & ~abandon_i;
      if (stage_q[i] == StOver && !command_q[i] && !frame_q[i]) stage_d[i] = StFree;
    end
    // Signals that are known late in the cycle come last. A command that is completed, or goes to the device, in the cycle of the
    // kill does not end here.
    if (kill_i) begin
      for (int unsigned i = 0; i < Entries; i++) begin
        if (device_of(value_q[i]) == kill_device_i && command_q[i]) begin
          if (stage_q[i] == StDevice) begin
            stage_d[i] = StAnswer;
            reason_d[i] = release_i ? reason_t'(REASON_DESCRIPTOR) : reason_t'(REASON_BUS);
          end
          if (release_i) command_d[i] = 1'b0;
        end
      end
    end
    if (frame_valid_i) begin
      stage_d[frame_slot_i] = frame_end_i ? StAnswer : StCommand;
      frame_d[frame_slot_i] = !frame_end_i;
      mapped_d[frame_slot_i] = 1'b0;
      reason_d[frame_slot_i] = reason_t'(REASON_NO_FRAME);
    end
    if (command_valid_i) begin
      if (command_end_i) stage_d[command_slot_i] = StAnswer;
      else command_d[command_slot_i] = 1'b1;
      reason_d[command_slot_i] = command_reason_i;
    end
    if (device_valid_i) begin
      stage_d[device_slot_i] = device_end_i ? StAnswer : StDevice;
      reason_d[device_slot_i] = device_reason_i;
    end
    for (int unsigned u = 0; u < Updaters; u++) begin
      if (pte_valid_i[u]) frame_d[update_slot_i[u]] = 1'b0;
      if (update_valid_i[u]) begin
        stage_d[update_slot_i[u]] = StAnswer;
        reason_d[update_slot_i[u]] = update_reason_i[u];
        mapped_d[update_slot_i[u]] = update_mapped_i[u];
      end
    end
    if (timeout_valid_i) begin
      stage_d[timeout_slot_i] = StAnswer;
      reason_d[timeout_slot_i] = reason_t'(REASON_TIMEOUT);
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      if (answer_leaves_i[i]) begin
        stage_d[i] = StOver;
        waiters_d[i] = '0;
      end
    end
    if (returned_valid_i) frame_d[returned_slot_i] = 1'b0;
    if (lookup_valid_i) begin
      stage_d[lookup_slot_i] = lookup_end_i ? StAnswer : StFrame;
      reason_d[lookup_slot_i] = lookup_reason_i;
    end
    if (completion_valid_i) begin
      command_d[completion_slot_i] = 1'b0;
      if (stage_q[completion_slot_i] == StDevice) begin
        stage_d[completion_slot_i] = completion_error_i ? StAnswer : StInstall;
        reason_d[completion_slot_i] = reason_t'(REASON_DEVICE);
      end
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      if (join_i && match[i]) waiters_d[i] = waiters_d[i] | source_i;
      if (allocate_i && take_q[i]) begin
        stage_d[i] = StLookup;
        waiters_d[i] = source_i;
      end
    end
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      stage_q <= {Entries{StFree}};
      command_q <= '0;
      frame_q <= '0;
      mapped_q <= '0;
      reason_q <= '0;
      waiters_q <= '0;
    end else begin
      stage_q <= stage_d;
      command_q <= command_d;
      frame_q <= frame_d;
      mapped_q <= mapped_d;
      reason_q <= reason_d;
      waiters_q <= waiters_d;
    end
  end

  // The contents of a free entry have no meaning, so the entry that may be allocated is written in any case.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++) begin
      if (act_i && take_q[i]) begin
        pte_q[i] <= req_i.pte_addr[PAddrWidth-1:3];
        pmd_q[i] <= req_i.pmd_addr[PAddrWidth-1:3];
        pud_q[i] <= req_i.pud_addr[PAddrWidth-1:3];
        value_q[i] <= req_i.pte;
      end
    end
    // The device number in `value` is needed as long as the entry has a command. In these two cases it has none.
    if (lookup_valid_i && lookup_end_i) value_q[lookup_slot_i] <= lookup_value_i;
    for (int unsigned u = 0; u < Updaters; u++) begin
      if (update_valid_i[u]) value_q[update_slot_i[u]] <= update_value_i[u];
    end
    if (frame_valid_i) begin
      pfn_q[frame_slot_i] <= frame_pfn_i;
      dma_q[frame_slot_i] <= frame_dma_i;
    end
  end

endmodule
