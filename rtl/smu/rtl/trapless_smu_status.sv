// SPDX-License-Identifier: Apache-2.0
// The fields of STATUS, and a counter for every outcome (REQ: SMU-10).

module trapless_smu_status
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned PmshrEntries = 32,
  parameter int unsigned Harts = 4,
  parameter int unsigned Ports = 4,
  parameter int unsigned SlotWidth = $clog2(PmshrEntries),
  parameter int unsigned Sources = Harts + Ports
) (
  input logic clk_i,
  input logic rst_ni,
  output logic [7:0] live_count_o,
  output logic [7:0] quarantined_count_o,
  input entry_t [PmshrEntries-1:0] entry_i,
  input logic [PmshrEntries-1:0] live_i,
  output logic [PmshrEntries-1:0] pending_o,
  output logic idle_o,
  input logic [Sources-1:0] refused_i,
  input logic [Sources-1:0] answer_i,
  output logic no_dma_o,
  output logic no_frames_o,
  input logic free_empty_i,
  input logic ret_empty_i,
  input logic [SlotWidth-1:0] answer_slot_i,
  output logic failed_o,
  input logic refuse_i,
  input logic answer_valid_i,
  output reason_t failed_reason_o,
  input reason_t refuse_reason_i,
  output logic error_o,
  input logic free_error_i,
  input logic ret_error_i,
  input logic lost_i,
  input logic desc_refused_i,
  input logic port_refused_i,
  input logic update_error_i,
  input logic accepted_i,
  input logic join_entry_i,
  input logic [Ports-1:0] port_accepted_i,
  input logic full_i,
  input logic stray_i,
  input logic returned_i,
  input logic submitted_i,
  input logic completion_matched_i,
  output logic [CNT_COUNT-1:0][63:0] count_o
);

  logic [PmshrEntries-1:0] with_command, with_frame;
  reason_t ended_reason;
  logic [CNT_COUNT-1:0][1:0] events;
  logic [31:0] ended, given_up;

  always_comb begin
    live_count_o = '0;
    quarantined_count_o = '0;
    for (int unsigned i = 0; i < PmshrEntries; i++) begin
      with_command[i] = entry_i[i].command;
      with_frame[i] = entry_i[i].frame;
      live_count_o = live_count_o + 8'(live_i[i]);
      quarantined_count_o = quarantined_count_o + 8'(entry_i[i].command && entry_i[i].stage inside {StAnswer, StOver});
    end
  end

  assign pending_o = live_i | with_command;
  assign idle_o = live_i == '0 && refused_i == '0 && answer_i == '0;
  assign no_dma_o = with_command == '0;
  assign no_frames_o = with_frame == '0 && free_empty_i && ret_empty_i;

  assign ended_reason = entry_i[answer_slot_i].reason;
  assign failed_o = refuse_i || (answer_valid_i && outcome_of(ended_reason) == OutcomeFailed);
  assign failed_reason_o = refuse_i ? refuse_reason_i : ended_reason;
  assign error_o = free_error_i || ret_error_i || lost_i || desc_refused_i || port_refused_i || update_error_i
      || (answer_valid_i && ended_reason == reason_t'(REASON_BUS)) || (refuse_i && refuse_reason_i == reason_t'(REASON_BUS));

  always_comb begin
    events = '0;
    // A miss and a refused request may end in one cycle.
    ended = answer_valid_i ? 32'(ended_reason) : '0;
    given_up = refuse_i ? 32'(refuse_reason_i) : '0;
    events[CNT_REQUESTS] = 2'(accepted_i);
    events[CNT_COALESCED] = 2'(join_entry_i);
    events[CNT_PORT_REQUESTS] = 2'(accepted_i && port_accepted_i != '0);
    events[CNT_PMSHR_FULL] = 2'(full_i);
    events[CNT_STRAY_CQE] = 2'(stray_i);
    events[CNT_RETURNED] = 2'(returned_i);
    events[CNT_COMMANDS] = 2'(submitted_i);
    events[CNT_COMPLETIONS] = 2'(completion_matched_i);
    events[CNT_INSTALLED] = 2'(answer_valid_i && outcome_of(ended_reason) == OutcomeDone);
    events[CNT_CHANGED] = 2'(answer_valid_i && outcome_of(ended_reason) == OutcomeChanged);
    events[CNT_FAIL_NO_FRAME] = 2'(ended == REASON_NO_FRAME) + 2'(given_up == REASON_NO_FRAME);
    events[CNT_FAIL_DEVICE] = 2'(ended == REASON_DEVICE) + 2'(given_up == REASON_DEVICE);
    events[CNT_FAIL_BUS] = 2'(ended == REASON_BUS) + 2'(given_up == REASON_BUS);
    events[CNT_FAIL_DISABLED] = 2'(ended == REASON_DISABLED) + 2'(given_up == REASON_DISABLED);
    events[CNT_FAIL_DESCRIPTOR] = 2'(ended == REASON_DESCRIPTOR) + 2'(given_up == REASON_DESCRIPTOR);
    events[CNT_FAIL_TIMEOUT] = 2'(ended == REASON_TIMEOUT) + 2'(given_up == REASON_TIMEOUT);
  end

  trapless_smu_counters u_counters (
    .clk_i,
    .rst_ni,
    .event_i(events),
    .count_o
  );

endmodule
