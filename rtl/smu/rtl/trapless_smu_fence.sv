// SPDX-License-Identifier: Apache-2.0
// Fences and drains of the descriptors (REQ: SMU-8). An entry has one descriptor, so one bit an entry tells that the latest fence of its
// descriptor waits for it, and another the same of drains.
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

  // misses not over; those and commands that may still write
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
      // An entry is not pending for a cycle at least before it may be taken again, so the new miss is never waited for.
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
