// SPDX-License-Identifier: Apache-2.0
// Completion unit: looks at the completion queues of devices that owe a completion (REQ: SMU-9), finds the command's entry by its
// identifier, and notices commands that take too long (REQ: SMU-7).
`include "trapless_smu_ff.svh"

module trapless_smu_complete
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Devices = 8,
  // Cycles between two looks at an empty queue. With 0 one look follows the other.
  parameter int unsigned PollInterval = 0,
  parameter int unsigned TimeWidth = 48,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic hold_i,
  output logic busy_o,
  input entry_t [Entries-1:0] entry_i,
  input desc_t [Devices-1:0] desc_i,
  input generation_t [Entries-1:0] generation_i,
  input logic [63:0] timeout_i,
  // The time of all commands at this device has run out (REQ: SMU-12).
  input logic expire_i,
  input logic [2:0] expire_device_i,

  // a write that may be a completion
  input logic snoop_valid_i,
  input logic [63:0] snoop_addr_i,

  output logic read_valid_o,
  output logic read_soon_o,
  input logic read_ready_i,
  output dma_read_t read_o,
  input logic data_valid_i,
  input logic data_error_i,
  input logic [63:0] data_i,
  // Ring the device's doorbell with this head.
  output logic ring_o,
  output logic [16:0] ring_head_o,

  // The write of the command's doorbell begins: its time runs from this cycle.
  input logic device_valid_i,
  input logic device_end_i,
  input logic [SlotWidth-1:0] device_slot_i,

  // `taken_o`: the entry at the head of the completion queue of `device_o` is taken. `lost_o`: a read of this queue met a bus
  // error, so the device goes out of use.
  output logic [2:0] device_o,
  output logic taken_o,
  output logic lost_o,

  output logic matched_o,
  output logic stray_o,
  output logic error_o,
  output logic [SlotWidth-1:0] slot_o,
  output logic [14:0] status_o,
  // `install_soon_o`: an entry was found, which may go on to the install. `install_o`: it goes on.
  output logic install_soon_o,
  output logic install_o,

  output logic timeout_valid_o,
  output logic [SlotWidth-1:0] timeout_slot_o
);

  localparam int unsigned DeviceWidth = Devices > 1 ? $clog2(Devices) : 1;
  typedef enum logic [2:0] { PollIdle, PollAsk, PollWait, PollMatch, PollLost } poll_e;

  poll_e state_q, state_d;
  logic [DeviceWidth-1:0] device_q, pick;
  logic [Devices-1:0] due_q, owed;
  logic [Devices-1:0][59:0] expected_q;
  logic [31:0] tick_q;
  logic tick, any;
  logic [63:0] cqe_q;
  desc_t d;
  logic [15:0] cid;
  logic [CidIndexWidth-1:0] index;
  entry_t entry;
  logic fresh, found, nothing, known, ring_q;

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) owed[i] = desc_i[i].outstanding && !desc_i[i].broken;
  end

  trapless_smu_rr #(.Count(Devices)) u_pick (
    .req_i(owed & due_q),
    .last_i(device_q),
    .valid_o(any),
    .sel_o(pick)
  );

  assign d = desc_i[device_q];
  assign device_o = 3'(device_q);
  assign tick = tick_q == '0;

  // Status and identifier are in the upper half of the entry; the device writes that half last or with the rest.
  assign read_valid_o = state_q == PollAsk;
  assign read_soon_o = state_q == PollWait || (state_q == PollIdle && any && !hold_i);
  assign read_o = '{
    addr: d.cq_base + {43'b0, d.cq_head, 4'b0} + 64'(NVME_CQE_DW2),
    wide: 1'b0,
    exclusive: 1'b0
  };
  assign fresh = data_i[CQE_PHASE_BIT] == d.phase;
  assign found = state_q == PollWait && data_valid_i && !data_error_i && fresh;
  assign nothing = state_q == PollWait && data_valid_i && !data_error_i && !fresh;

  // An identifier counts only if a command with it, generation included, is in flight at this device (REQ: SMU-10).
  assign cid = cqe_q[CQE_CID_MSB:CQE_CID_LSB];
  assign slot_o = cid[SlotWidth-1:0];
  assign index = cid[CID_INDEX_MSB:CID_INDEX_LSB];
  assign entry = entry_i[slot_o];
  assign known = 32'(index) < Entries && cid[CID_GENERATION_MSB:CID_GENERATION_LSB] == generation_i[slot_o]
      && entry.command && entry.stage inside {StDevice, StAnswer, StOver}
      && entry.value[PTE_DEVICE_MSB:PTE_DEVICE_LSB] == device_o;
  assign taken_o = state_q == PollMatch;
  assign install_soon_o = state_q == PollMatch;
  assign matched_o = state_q == PollMatch && known;
  assign stray_o = state_q == PollMatch && !known;
  assign status_o = cqe_q[CQE_STATUS_MSB:CQE_STATUS_LSB];
  assign error_o = status_o != '0;
  assign install_o = matched_o && !error_o && entry.stage == StDevice;

  // The doorbell is rung for each entry, one cycle after the match: the head has moved on, and `device_q` is still the same.
  assign ring_o = ring_q;
  assign ring_head_o = d.cq_head;
  assign lost_o = state_q == PollLost;
  assign busy_o = state_q != PollIdle || ring_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      PollIdle: if (any && !hold_i) state_d = PollAsk;
      PollAsk: if (read_ready_i) state_d = PollWait;
      PollWait: begin
        if (found) state_d = PollMatch;
        else if (nothing) state_d = any && !hold_i ? PollAsk : PollIdle;
        else if (data_valid_i) state_d = PollLost;
      end
      default: state_d = PollIdle;
    endcase
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= PollIdle;
      ring_q <= 1'b0;
      device_q <= '0;
      due_q <= '0;
      tick_q <= '0;
    end else begin
      state_q <= state_d;
      ring_q <= taken_o;
      tick_q <= tick ? PollInterval : tick_q - 32'd1;
      if ((state_q == PollIdle || nothing) && any && !hold_i) begin
        device_q <= pick;
        due_q[pick] <= 1'b0;
      end
      if (taken_o) due_q[device_q] <= 1'b1;
      if (tick) due_q <= '1;
      for (int unsigned i = 0; i < Devices; i++) begin
        if (snoop_valid_i && snoop_addr_i[63:4] == expected_q[i]) due_q[i] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (data_valid_i) cqe_q <= data_i;
    // `expected_q` is one cycle old, which suffices: when the head of a queue has moved, the unit looks at the queue in any case.
    for (int unsigned i = 0; i < Devices; i++) expected_q[i] <= desc_i[i].cq_base[63:4] + {43'b0, desc_i[i].cq_head};
  end

  // Time: the unit checks one entry per cycle, in three steps, so it notices a timeout at most `Entries` + 2 cycles late,
  // whatever completions come meanwhile. If the same command completes in the cycle of its timeout, the PMSHR prefers the
  // completion. A limit beyond half of the counter's range is never reached. An entry that is at its device in the first step and
  // in the last one has been there with the same command.
  logic [TimeWidth-1:0] now_q;
  logic [Entries-1:0][TimeWidth-1:0] deadline_q;
  logic [Entries-1:0] limited_q, expired_q;
  logic [SlotWidth-1:0] scan_q, timed_q, late_slot_q;
  logic [TimeWidth-1:0] due_time_q, past;
  logic limit, timed_valid_q, timed_expired_q, late_q;

  assign limit = timeout_i != '0 && timeout_i[63:TimeWidth-1] == '0;
  assign past = now_q - due_time_q;
  assign timeout_valid_o = late_q && entry_i[late_slot_q].stage == StDevice
      && !(device_valid_i && device_slot_i == late_slot_q);
  assign timeout_slot_o = late_slot_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      now_q <= '0;
      scan_q <= '0;
      timed_valid_q <= 1'b0;
      late_q <= 1'b0;
    end else begin
      now_q <= now_q + 1'b1;
      scan_q <= scan_q == SlotWidth'(Entries - 1) ? '0 : scan_q + 1'b1;
      timed_valid_q <= entry_i[scan_q].stage == StDevice && (limited_q[scan_q] || expired_q[scan_q]);
      late_q <= timed_valid_q && (timed_expired_q || !past[TimeWidth-1]);
    end
  end

  always_ff @(posedge clk_i) begin
    timed_q <= scan_q;
    timed_expired_q <= expired_q[scan_q];
    due_time_q <= deadline_q[scan_q];
    late_slot_q <= timed_q;
    if (device_valid_i && !device_end_i) begin
      deadline_q[device_slot_i] <= now_q + timeout_i[TimeWidth-1:0];
      limited_q[device_slot_i] <= limit;
      expired_q[device_slot_i] <= 1'b0;
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      if (expire_i && entry_i[i].stage == StDevice && entry_i[i].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB] == expire_device_i) begin
        expired_q[i] <= 1'b1;
      end
    end
  end

endmodule
