// SPDX-License-Identifier: Apache-2.0
// Every accepted request is answered within a bound, whatever one device does (REQ: SMU-6, SMU-7, SMU-10). A miss leaves its
// device soon after its time is over. Any other miss goes on, except while the unit waits for memory (which its parts use in
// turn), or while software holds the unit by a register access. The proof takes more than one step: from any state in which all
// claims hold, as many cycles as the bound has.
`include "claim.svh"

module unit_progress
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // ---------------------------------------------------------------- time (REQ: SMU-7)
  // How long an entry has been at its device after its limit, or after EXPIRE. The unit checks entries in turn, one per cycle,
  // in three steps. `turn` is the number of cycles since the last check of this entry. If a check found nothing, the entry's
  // time was not over.
  localparam int unsigned TimeWidth = 48;  // of trapless_smu_complete
  localparam int unsigned Late = Entries + 1;
  logic [Entries-1:0] limited, told, timed, late, timely;
  logic [Entries-1:0][TimeWidth-1:0] past;
  logic [Entries-1:0][7:0] told_q, turn;
  // The three steps have valid entry numbers only some cycles after reset; before that, no entry is at a device.
  logic [1:0] begun_q;
  logic [Entries-1:0] early;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      early[i] = begun_q == '1 || `SMU.entry[i].stage == StFree || (begun_q == 2'd1 && `SMU.entry[i].stage == StLookup);
      past[i] = `SMU.u_nvme.u_complete.now_q - `SMU.u_nvme.u_complete.deadline_q[i];
      limited[i] = `SMU.entry[i].stage == StDevice && `SMU.u_nvme.u_complete.limited_q[i] && !past[i][TimeWidth-1];
      told[i] = `SMU.entry[i].stage == StDevice && `SMU.u_nvme.u_complete.expired_q[i];
      turn[i] = 8'(slot_t'(`SMU.u_nvme.u_complete.scan_q - slot_t'(i) - slot_t'(1)));
      // The second step (`timed`), and the third (`late`).
      timed[i] = turn[i] != 8'd0 || ((!limited[i] || past[i] == '0 || `SMU.u_nvme.u_complete.timed_valid_q)
          && (!`SMU.u_nvme.u_complete.timed_valid_q || `SMU.u_nvme.u_complete.due_time_q == `SMU.u_nvme.u_complete.deadline_q[i])
          && (!told[i] || told_q[i] == '0 || (`SMU.u_nvme.u_complete.timed_valid_q && `SMU.u_nvme.u_complete.timed_expired_q)));
      late[i] = turn[i] != 8'd1 || ((!limited[i] || past[i] <= TimeWidth'(1) || `SMU.u_nvme.u_complete.late_q)
          && (!told[i] || told_q[i] <= 8'd1 || `SMU.u_nvme.u_complete.late_q));
      timely[i] = (!limited[i] || past[i] <= TimeWidth'(turn[i]) || (turn[i] <= 8'd1 && past[i] <= TimeWidth'(Entries) + TimeWidth'(turn[i])))
          && (!told[i] || told_q[i] <= turn[i] || (turn[i] <= 8'd1 && told_q[i] <= 8'(Entries) + turn[i]));
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      told_q <= '0;
      begun_q <= '0;
    end else begin
      for (int unsigned i = 0; i < Entries; i++) told_q[i] <= told[i] ? told_q[i] + 8'd1 : '0;
      begun_q <= {begun_q[0], 1'b1};
    end
  end

  `CLAIM(looks_in_turn, begun_q == '1, early == '1 && begun_q != 2'd2 && (!begun_q[0] || `SMU.u_nvme.u_complete.timed_q == `SMU.u_nvme.u_complete.scan_q - slot_t'(1))
      && (!begun_q[1] || `SMU.u_nvme.u_complete.late_slot_q == `SMU.u_nvme.u_complete.scan_q - slot_t'(2)))
  `CLAIM(looks_see_what_is_over, (limited | told) != '0, begun_q != '1 || (timed == '1 && late == '1))
  `CLAIM(device_left_in_time, (limited | told) != '0, timely == '1)

  // The limit is the TIMEOUT that was set when the device got the command.
  logic [Entries-1:0] known;
  logic [Entries-1:0][TimeWidth-1:0] age_q, limit_q;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      known[i] = `SMU.entry[i].stage != StDevice || past[i] == age_q[i] - limit_q[i];
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++) begin
      age_q[i] <= age_q[i] + 1'b1;
      if (`SMU.u_nvme.device_valid_o && !`SMU.u_nvme.device_end_o && `SMU.u_nvme.device_slot_o == slot_t'(i)) begin
        age_q[i] <= TimeWidth'(1);
        limit_q[i] <= `SMU.timeout[TimeWidth-1:0];
      end
    end
  end

  `CLAIM(limit_is_as_set, limited != '0, known == '1)

  // ---------------------------------------------------------------- all other stages
  // `still_q`: cycles in a row in which a miss is due to go on but none does, although memory has nothing to do for the unit and
  // no updater pauses after a failed pair. Cycles in which a register access holds the unit are not counted.
  localparam int unsigned Still = 6;
  logic [Entries-1:0] due;
  logic memory, pause, moved, still;
  entry_t [Entries-1:0] e_q;
  logic [7:0] still_q = '0;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      due[i] = `SMU.entry[i].stage inside {StLookup, StFrame, StCommand, StInstall, StAnswer};
    end
    pause = 1'b0;
    for (int unsigned u = 0; u < Updaters; u++) pause |= `SMU.u_environment.update_state[u] == 3'd4;
    moved = 1'b0;
    for (int unsigned i = 0; i < Entries; i++) moved |= `SMU.entry[i].stage != e_q[i].stage;
  end

  assign memory = `SMU.rd_valid != '0 || `SMU.wr_valid != '0 || `SMU.u_environment.due_q != '0 || `SMU.u_environment.owed_q != '0;
  assign still = rst_ni && due != '0 && !memory && !pause && !moved;

  always_ff @(posedge clk_i) begin
    e_q <= `SMU.entry;
    if (!still) still_q <= '0;
    else if (!`SMU.hold) still_q <= still_q + 8'd1;
  end

  `CLAIM(misses_go_on, due != '0 && !memory, still_q < 8'(Still))

endmodule

bind trapless_smu unit_progress u_progress (.*);
