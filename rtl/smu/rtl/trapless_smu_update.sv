// SPDX-License-Identifier: Apache-2.0
// Page table updater: exchanges the PTE, then marks the PMD, then the PUD, each visible before the next (REQ: SMU-3). The updates
// are AXI exclusive pairs. An entry that already has its mark is not written: software that clears the mark later finds the PTE
// (REQ: OS-6). The result is reported in a separate cycle.
//
// A bus error on the PTE's write does not tell whether the PTE was written, so it is read back once (REQ: SMU-13).
//
// The first updater also tests the fabric: it reads a word and writes it back unchanged, by an exclusive pair (REQ: SMU-16).
`include "trapless_smu_ff.svh"

module trapless_smu_update
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  // Pairs that may fail before the unit gives up: `Attempts` for one entry, `Tries` for the test (a register access waits).
  parameter int unsigned Attempts = 256,
  parameter int unsigned Tries = 16,
  // Gives each updater different pauses, so that two updaters do not make each other's pairs fail for ever.
  parameter int unsigned Index = 0,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,

  input logic start_i,
  // The entry that starts, and its number.
  input entry_t start_entry_i,
  input logic [SlotWidth-1:0] start_slot_i,
  output logic ready_o,

  // Try an exclusive pair here. Keep the request until the one cycle in which the result is reported.
  input logic try_i,
  input entry_addr_t try_addr_i,
  output logic tried_o,
  output logic try_ok_o,

  // This updater may be the next to start.
  input logic next_i,
  output logic read_valid_o,
  output logic read_soon_o,
  input logic read_ready_i,
  output dma_read_t read_o,
  input logic data_valid_i,
  input axi_resp_e data_resp_i,
  input logic [63:0] data_i,
  output logic write_valid_o,
  output logic write_soon_o,
  output dma_write_t write_o,
  input logic done_valid_i,
  input axi_resp_e done_resp_i,

  // The PTE is installed: the frame now belongs to the page table.
  output logic pte_valid_o,
  // A write met a bus error.
  output logic error_o,
  output logic valid_o,
  output logic [SlotWidth-1:0] slot_o,
  output reason_t reason_o,
  // It is unknown whether the PTE maps the frame.
  output logic mapped_o,
  output logic [63:0] value_o
);

  typedef enum logic [2:0] { UpIdle, UpAsk, UpWait, UpWrite, UpPause, UpTell, UpJudge } up_e;
  typedef enum logic [1:0] { LevelPte, LevelPmd, LevelPud } level_e;
  localparam int unsigned AttemptWidth = $clog2(Attempts + 1);

  up_e state_q, state_d;
  level_e level_q;
  logic [SlotWidth-1:0] slot_q;
  entry_addr_t pte_q, pmd_q, pud_q, addr;
  logic [63:0] seen_q, new_q, found_q;
  logic [AttemptWidth-1:0] attempt_q;
  logic [3:0] pause_q;
  logic exclusive, read_error, differs, marked, refused, write_error, spent, level_done, over, pte_done_q;
  // `check_q`: the PTE is being read back. `lost_q`: the last read failed. `doubt_q`: whether the PTE was written is unknown.
  logic check_q, lost_q, doubt_q;
  // The fabric is being tested: its word is handled like an entry that lacks its mark, but is written as it was read.
  logic try_start, try_q;
  logic judged, unwritten, ours, doubt;
  back_e back;
  reason_t reason_d, reason_q;

  assign ready_o = state_q == UpIdle && !try_i;
  assign try_start = state_q == UpIdle && try_i;
  assign slot_o = slot_q;

  always_comb begin
    unique case (level_q)
      LevelPmd: addr = pmd_q;
      LevelPud: addr = pud_q;
      default: addr = pte_q;
    endcase
  end

  assign read_valid_o = state_q == UpAsk;
  assign read_soon_o = state_q == UpWrite || next_i;
  assign read_o = '{addr: 64'({addr, 3'b0}), wide: 1'b0, exclusive: !check_q};
  assign write_valid_o = state_q == UpWrite;
  assign write_soon_o = state_q == UpWait;
  assign write_o = '{
    addr: 64'({addr, 3'b0}),
    size: 3'd3,
    exclusive: 1'b1,
    atop: AtopNone,
    data: {8{level_q == LevelPte ? new_q : found_q | (64'(!try_q) << PTE_L_BIT)}}
  };

  // A fabric that does not support exclusive accesses answers the read with a plain OKAY. Then nothing may be written.
  assign exclusive = data_resp_i == RespExOkay;
  assign read_error = state_q == UpWait && data_valid_i && !check_q && !exclusive;
  assign differs = state_q == UpWait && data_valid_i && !check_q && exclusive && level_q == LevelPte && data_i != seen_q;
  assign marked = state_q == UpWait && data_valid_i && exclusive && level_q != LevelPte && data_i[PTE_L_BIT] && !try_q;
  assign refused = state_q == UpWrite && done_valid_i && done_resp_i == RespOkay;
  assign write_error = state_q == UpWrite && done_valid_i && done_resp_i inside {RespSlvErr, RespDecErr};
  assign spent = refused && (attempt_q == AttemptWidth'(Attempts - 1) || (try_q && attempt_q == AttemptWidth'(Tries - 1)));
  assign back = read_back(lost_q, found_q, seen_q, new_q[PTE_PFN_MSB:PTE_PFN_LSB]);
  assign judged = state_q == UpJudge;
  assign unwritten = judged && back == BackUnwritten;
  assign ours = judged && back == BackOurs;
  assign doubt = judged && back == BackUnknown;
  assign level_done = marked || ours || doubt || (state_q == UpWrite && done_valid_i && done_resp_i == RespExOkay);

  always_comb begin
    over = read_error || differs || unwritten || spent || (write_error && level_q != LevelPte)
        || (level_done && level_q == LevelPud);
    reason_d = '0;
    if (doubt_q || unwritten) reason_d = reason_t'(REASON_BUS);
    else if (differs) reason_d = reason_t'(REASON_CHANGED);
    else if (read_error || write_error) reason_d = reason_t'(REASON_BUS);
    // For a PTE the outcome is changed: the walker may try again. A mark that cannot be set is an error.
    else if (spent) reason_d = level_q == LevelPte ? reason_t'(REASON_CHANGED) : reason_t'(REASON_BUS);
  end

  assign pte_valid_o = pte_done_q;
  assign error_o = write_error;
  assign valid_o = state_q == UpTell && !try_q;
  assign tried_o = state_q == UpTell && try_q;
  assign try_ok_o = reason_q == '0;
  assign reason_o = reason_q;
  assign mapped_o = doubt_q;

  always_comb begin
    unique case (outcome_of(reason_q))
      OutcomeDone: value_o = new_q;
      OutcomeChanged: value_o = found_q;
      default: value_o = seen_q;
    endcase
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      UpIdle: if (start_i || try_i) state_d = UpAsk;
      UpAsk: if (read_ready_i) state_d = UpWait;
      UpWait: if (data_valid_i) state_d = check_q ? UpJudge : marked ? UpAsk : UpWrite;
      UpWrite: if (done_valid_i) state_d = refused ? UpPause : UpAsk;
      UpPause: if (pause_q == '0) state_d = UpAsk;
      UpJudge: state_d = UpAsk;
      default: state_d = UpIdle;
    endcase
    if (over) state_d = UpTell;
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= UpIdle;
      level_q <= LevelPte;
      attempt_q <= '0;
      pause_q <= '0;
      pte_done_q <= 1'b0;
      check_q <= 1'b0;
      doubt_q <= 1'b0;
      try_q <= 1'b0;
    end else begin
      state_q <= state_d;
      if (start_i) level_q <= LevelPte;
      else if (try_start) level_q <= LevelPud;
      else if (level_done) level_q <= level_q == LevelPte ? LevelPmd : LevelPud;
      if (start_i || try_start || level_done) attempt_q <= '0;
      else if (refused) attempt_q <= attempt_q + 1'b1;
      if (refused) pause_q <= {attempt_q[2:0], 1'(Index)};
      else if (pause_q != '0) pause_q <= pause_q - 1'b1;
      pte_done_q <= level_done && level_q == LevelPte && !doubt;
      if (judged) check_q <= 1'b0;
      else if (write_error && level_q == LevelPte) check_q <= 1'b1;
      if (start_i || try_start) doubt_q <= 1'b0;
      else if (doubt) doubt_q <= 1'b1;
      if (state_q == UpIdle) try_q <= try_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == UpIdle) begin
      slot_q <= start_slot_i;
      pte_q <= start_entry_i.pte;
      pmd_q <= start_entry_i.pmd;
      pud_q <= try_i ? try_addr_i : start_entry_i.pud;
      seen_q <= start_entry_i.value;
      new_q <= installed(start_entry_i.value, start_entry_i.pfn);
    end
    if (data_valid_i) found_q <= data_i;
    if (data_valid_i) lost_q <= data_resp_i inside {RespSlvErr, RespDecErr};
    if (over) reason_q <= reason_d;
  end

endmodule
