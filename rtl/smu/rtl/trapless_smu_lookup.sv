// SPDX-License-Identifier: Apache-2.0
// Reads the PTE again before anything else is done (REQ: SMU-2). Several reads can be under way; they are answered in order. The
// PTE is compared in the cycle after its data, and the result is reported in the next cycle.
`include "trapless_smu_ff.svh"

module trapless_smu_lookup
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Devices = 8,
  parameter logic [2:0] Socket = 3'd0,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  input entry_t [Entries-1:0] entry_i,
  input desc_t [Devices-1:0] desc_i,

  // a request is looked at; it may need an entry
  input logic look_i,
  input logic allocate_i,
  input logic [SlotWidth-1:0] allocated_i,

  output logic read_valid_o,
  output logic read_soon_o,
  input logic read_ready_i,
  output dma_read_t read_o,
  output logic [5:0] lane_o,
  input logic data_valid_i,
  input logic data_error_i,
  input logic [63:0] data_i,

  output logic valid_o,
  output logic end_o,
  output logic [SlotWidth-1:0] slot_o,
  output reason_t reason_o,
  output logic [63:0] value_o
);

  logic [SlotWidth-1:0] asked, due, slot_q, told_slot_q;
  logic valid_q, error_q, told_valid_q, told_error_q, changed_q, sound_q;
  logic [63:0] seen_q, data_q, value_q;
  desc_t [7:0] desc;
  logic [2:0] device;
  logic serves;

  // u_ask: entries whose read is still to be sent. u_wait: entries whose answer is still to come.
  trapless_smu_fifo #(.Width(SlotWidth), .Depth(Entries)) u_ask (
    .clk_i,
    .rst_ni,
    .push_i(allocate_i),
    .data_i(allocated_i),
    .valid_o(read_valid_o),
    .data_o(asked),
    .pop_i(read_valid_o && read_ready_i)
  );

  trapless_smu_fifo #(.Width(SlotWidth), .Depth(Entries)) u_wait (
    .clk_i,
    .rst_ni,
    .push_i(read_valid_o && read_ready_i),
    .data_i(asked),
    .valid_o(),
    .data_o(due),
    .pop_i(data_valid_i)
  );

  assign read_soon_o = read_valid_o || look_i;
  assign read_o = '{addr: 64'({entry_i[asked].pte, 3'b0}), wide: 1'b0, exclusive: 1'b0};

  always_comb begin
    desc = '0;
    for (int unsigned i = 0; i < Devices; i++) desc[i] = desc_i[i];
  end

  assign lane_o = {entry_i[due].pte[2:0], 3'b0};

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      told_valid_q <= 1'b0;
    end else begin
      valid_q <= data_valid_i;
      told_valid_q <= valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    slot_q <= due;
    seen_q <= entry_i[due].value;
    data_q <= data_i;
    error_q <= data_error_i;
    told_slot_q <= slot_q;
    told_error_q <= error_q;
    changed_q <= data_q != seen_q;
    sound_q <= names_block(seen_q) && seen_q[PTE_SOCKET_MSB:PTE_SOCKET_LSB] == Socket && serves;
    value_q <= error_q ? seen_q : data_q;
  end

  assign device = seen_q[PTE_DEVICE_MSB:PTE_DEVICE_LSB];
  assign serves = desc[device].valid && !desc[device].broken;
  assign valid_o = told_valid_q;
  assign slot_o = told_slot_q;
  assign value_o = value_q;

  always_comb begin
    end_o = 1'b1;
    reason_o = '0;
    if (told_error_q) begin
      reason_o = reason_t'(REASON_BUS);
    end else if (changed_q) begin
      reason_o = reason_t'(REASON_CHANGED);
    end else if (!sound_q) begin
      reason_o = reason_t'(REASON_DESCRIPTOR);
    end else begin
      end_o = 1'b0;
    end
  end

endmodule
