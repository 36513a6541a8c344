// SPDX-License-Identifier: Apache-2.0
// Fences and drains of the descriptors (REQ: SMU-8). An entry has one descriptor, so two bits per entry suffice: one says that
// the latest fence of its descriptor waits for it, the other says the same of the latest drain.
`include "trapless_smu_ff.svh"

module trapless_smu_fence #(
  parameter int unsigned Entries = 32,
  parameter int unsigned Devices = 8,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,

  // A miss begins, at this device.
  input logic allocate_i,
  input logic [SlotWidth-1:0] slot_i,
  input logic [2:0] device_i,

  // `live_i`: misses that are not over. `pending_i`: these, and commands that may still write.
  input logic [Entries-1:0] live_i,
  input logic [Entries-1:0] pending_i,

  // register access
  input logic [2:0] index_i,
  input logic fence_i,
  input logic drain_i,
  output logic fence_busy_o,
  output logic drain_busy_o
);

  logic [Entries-1:0][2:0] device_q;
  logic [Entries-1:0] fence_q, drain_q, mine;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) mine[i] = device_q[i] == index_i && 32'(index_i) < Devices;
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      fence_q <= '0;
      drain_q <= '0;
    end else begin
      // Before an entry is taken again, it is not pending for at least one cycle. So no fence waits for the new miss.
      fence_q <= (fence_q | (fence_i ? mine : '0)) & live_i;
      drain_q <= (drain_q | (drain_i ? mine : '0)) & pending_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (allocate_i) device_q[slot_i] <= device_i;
  end

  assign fence_busy_o = (fence_q & live_i & mine) != '0;
  assign drain_busy_o = (drain_q & pending_i & mine) != '0;

endmodule
