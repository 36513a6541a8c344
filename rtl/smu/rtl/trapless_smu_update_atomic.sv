// SPDX-License-Identifier: Apache-2.0
// Page table updater for a fabric with the atomic accesses of AXI5: exchanges the PTE by AtomicCompare, then sets the marks of
// PMD and PUD by AtomicStore, each visible before the next (REQ: SMU-3).
//
// A bus error on the PTE's exchange does not tell whether the PTE was written, so it is read back once (REQ: SMU-13).
//
// The first updater also tests the fabric at two words, one in each half of 16 bytes, and restores them (REQ: SMU-16). It fills a
// word, sets the mark in it, makes an AtomicCompare that must not succeed and one that must, and reads the result. A fabric that
// takes an atomic access for a plain write, or drops it, returns no data, and an AtomicCompare would wait for them for ever. So
// the AtomicStore goes first, and the AtomicCompares follow only if the AtomicStore has left the right value.
`include "trapless_smu_ff.svh"

module trapless_smu_update_atomic
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,

  input logic start_i,
  // The entry that starts, and its number.
  input entry_t start_entry_i,
  input logic [SlotWidth-1:0] start_slot_i,
  output logic ready_o,

  // Try the atomic accesses here. Keep the request until the one cycle in which the result is reported.
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

  typedef enum logic [2:0] { UpIdle, UpAsk, UpWait, UpJudge, UpWrite, UpTell } up_e;
  // An install goes through the first three steps. A test reads the word and goes through the others. It reads the word again
  // after StepSet and StepExchange. It restores the word even if one of these went wrong.
  typedef enum logic [2:0] { StepPte, StepPmd, StepPud, StepFill, StepSet, StepRefuse, StepExchange, StepRestore } step_e;

  localparam logic [63:0] Mark = 64'd1 << PTE_L_BIT;

  up_e state_q, state_d;
  step_e step_q, step_d;
  logic [SlotWidth-1:0] slot_q;
  entry_addr_t pte_q, pmd_q, pud_q, addr;
  logic [63:0] seen_q, new_q, found_q;
  reason_t reason_d, reason_q;
  back_e back;
  // `answered_q`: the write was answered. `data_q`: an AtomicCompare's data have come. `failed_q`: one of them was a bus error.
  logic answered_q, data_q, failed_q, compare, done;
  // `lost_q`: the last read failed. `doubt_q`: whether the PTE was written is unknown.
  logic lost_q, doubt_q, doubt, pte_done, pte_done_q;
  logic bus_error;

  assign ready_o = state_q == UpIdle && !try_i;
  assign slot_o = slot_q;

  always_comb begin
    unique case (step_q)
      StepPte: addr = pte_q;
      StepPmd: addr = pmd_q;
      default: addr = pud_q;
    endcase
  end

  assign read_valid_o = state_q == UpAsk;
  assign read_soon_o = 1'b0;
  assign read_o = '{addr: 64'({addr, 3'b0}), wide: 1'b0, exclusive: 1'b0};

  // ---------------------------------------------------------------- writes
  logic [63:0] expected, swap;

  always_comb begin
    unique case (step_q)
      StepRefuse: {expected, swap} = {Mark, 64'd0};
      StepExchange: {expected, swap} = {~64'd0, Mark};
      default: {expected, swap} = {seen_q, new_q};
    endcase
  end

  assign write_valid_o = state_q == UpWrite && !answered_q;
  assign write_soon_o = next_i || answered_q || state_q == UpJudge;

  always_comb begin
    write_o = '{addr: 64'({addr, 3'b0}), size: 3'd3, exclusive: 1'b0, atop: AtopSet, data: {8{Mark}}};
    if (compare) begin
      write_o.size = 3'd4;
      write_o.atop = AtopCompare;
      // At an odd multiple of 8 the burst wraps, and the value to be written comes first (AXI5, data of AtomicCompare).
      write_o.data = {4{addr[0] ? {expected, swap} : {swap, expected}}};
    end else if (step_q inside {StepFill, StepRestore}) begin
      write_o.atop = AtopNone;
      write_o.data = {8{step_q == StepFill ? ~Mark : seen_q}};
    end
  end

  assign compare = step_q inside {StepPte, StepRefuse, StepExchange};
  assign bus_error = (done_valid_i && done_resp_i inside {RespSlvErr, RespDecErr})
      || (data_valid_i && data_resp_i inside {RespSlvErr, RespDecErr});
  assign done = answered_q && (!compare || data_q);

  // ---------------------------------------------------------------- what follows
  // `full`: the last value has all bits set. `again`: the second word comes next. `bad`: an access failed or found a wrong value.
  logic full, again, bad;

  assign full = found_q == ~64'd0;
  assign back = read_back(lost_q, found_q, seen_q, new_q[PTE_PFN_MSB:PTE_PFN_LSB]);

  always_comb begin
    state_d = state_q;
    step_d = step_q;
    reason_d = reason_q;
    doubt = 1'b0;
    pte_done = 1'b0;
    bad = 1'b0;
    again = 1'b0;
    unique case (state_q)
      UpIdle: begin
        step_d = start_i ? StepPte : StepFill;
        reason_d = '0;
        if (start_i) state_d = UpWrite;
        else if (try_i) state_d = UpAsk;
      end
      UpAsk: if (read_ready_i) state_d = UpWait;
      UpWait: if (data_valid_i) state_d = UpJudge;
      UpJudge: begin
        state_d = UpWrite;
        unique case (step_q)
          StepFill: bad = lost_q;
          StepSet: begin
            bad = lost_q || !full;
            step_d = bad ? StepRestore : StepRefuse;
          end
          StepExchange: begin
            bad = lost_q || found_q != Mark;
            step_d = StepRestore;
          end
          default: begin
            bad = back != BackOurs;
            doubt = back == BackUnknown;
            pte_done = back == BackOurs;
            if (back != BackUnwritten) step_d = StepPmd;
          end
        endcase
        if (bad && step_d inside {StepFill, StepPte}) state_d = UpTell;
        if (bad) reason_d = reason_t'(REASON_BUS);
      end
      UpWrite: if (done) begin
        bad = failed_q;
        unique case (step_q)
          StepPte: begin
            bad = 1'b0;
            if (failed_q) begin
              state_d = UpAsk;
            end else if (found_q != seen_q) begin
              state_d = UpTell;
              reason_d = reason_t'(REASON_CHANGED);
            end else begin
              step_d = StepPmd;
              pte_done = 1'b1;
            end
          end
          StepPmd: if (failed_q) state_d = UpTell; else step_d = StepPud;
          StepFill: step_d = failed_q ? StepRestore : StepSet;
          StepSet: if (failed_q) step_d = StepRestore; else state_d = UpAsk;
          StepRefuse, StepExchange: begin
            bad = failed_q || !full;
            if (bad) step_d = StepRestore;
            else if (step_q == StepRefuse) step_d = StepExchange;
            else state_d = UpAsk;
          end
          StepRestore: begin
            again = !failed_q && reason_q == '0 && !pud_q[0];
            step_d = again ? StepFill : StepRestore;
            state_d = again ? UpAsk : UpTell;
          end
          default: state_d = UpTell;
        endcase
        if (bad) reason_d = reason_t'(REASON_BUS);
      end
      default: state_d = UpIdle;
    endcase
  end

  assign pte_valid_o = pte_done_q;
  assign error_o = done && failed_q;
  assign valid_o = state_q == UpTell && step_q inside {StepPte, StepPmd, StepPud};
  assign tried_o = state_q == UpTell && !valid_o;
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

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= UpIdle;
      {answered_q, data_q, failed_q, doubt_q, pte_done_q} <= '0;
    end else begin
      state_q <= state_d;
      answered_q <= state_q == UpWrite && !done && (answered_q || done_valid_i);
      data_q <= state_q == UpWrite && !done && (data_q || data_valid_i);
      failed_q <= state_q == UpWrite && !done && (failed_q || bus_error);
      if (state_q == UpIdle) doubt_q <= 1'b0;
      else if (doubt) doubt_q <= 1'b1;
      pte_done_q <= pte_done;
    end
  end

  always_ff @(posedge clk_i) begin
    step_q <= step_d;
    reason_q <= reason_d;
    if (state_q == UpIdle) begin
      slot_q <= start_slot_i;
      pte_q <= start_entry_i.pte;
      pmd_q <= start_entry_i.pmd;
      pud_q <= try_i ? try_addr_i : start_entry_i.pud;
      seen_q <= start_entry_i.value;
      new_q <= installed(start_entry_i.value, start_entry_i.pfn);
    end else begin
      if (state_q == UpJudge && step_q == StepFill) seen_q <= found_q;
      if (again) pud_q[0] <= 1'b1;
    end
    if (data_valid_i) found_q <= data_i;
    if (data_valid_i) lost_q <= data_resp_i inside {RespSlvErr, RespDecErr};
  end

endmodule
