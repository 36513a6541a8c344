// SPDX-License-Identifier: Apache-2.0
// NVMe host controller, submission side (REQ: SMU-9): writes the command, then requests the write of its device's doorbell and
// does not wait for it.
`include "trapless_smu_ff.svh"

module trapless_smu_submit
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Devices = 8,
  parameter int unsigned SlotWidth = $clog2(Entries)
) (
  input logic clk_i,
  input logic rst_ni,
  // Nothing begins while this is set: a descriptor is being set up.
  input logic hold_i,
  output logic busy_o,
  input entry_t [Entries-1:0] entry_i,
  input desc_t [Devices-1:0] desc_i,

  input logic frame_valid_i,
  input logic [SlotWidth-1:0] frame_slot_i,

  output logic sqe_valid_o,
  output logic sqe_soon_o,
  output dma_write_t sqe_o,
  input logic sqe_done_i,
  input logic sqe_error_i,
  // Ring the doorbell of this device.
  output logic ring_o,
  output logic [2:0] ring_device_o,
  output logic [16:0] ring_tail_o,

  // The command was written into the queue of this device.
  output logic submitted_o,
  output logic [2:0] submitted_device_o,

  output logic command_valid_o,
  output logic command_end_o,
  output logic [SlotWidth-1:0] command_slot_o,
  output reason_t command_reason_o,
  output logic device_valid_o,
  output logic device_end_o,
  output logic [SlotWidth-1:0] device_slot_o,
  output reason_t device_reason_o,
  // Generation of each entry's latest command.
  output generation_t [Entries-1:0] generation_o
);

  typedef enum logic [1:0] { CmdIdle, CmdLoad, CmdWrite, CmdRing } cmd_e;

  cmd_e cmd_q, cmd_d;
  logic waiting;
  logic [SlotWidth-1:0] slot, slot_q, bell_slot_q;
  logic [2:0] device_q, bell_device_q;
  logic [16:0] bell_tail_q;
  desc_t [7:0] desc;
  desc_t d;
  entry_t entry;
  logic serves, hand_over, bell_q, bell_broken;
  logic [63:0] lba_q, address_q;
  logic [51:0] dma_q;
  logic [31:0] nsid_q;
  logic [3:0] blocks_q;
  logic [511:0] sqe;
  generation_t [Entries-1:0] generation_q;

  trapless_smu_fifo #(.Width(SlotWidth), .Depth(Entries)) u_waiters (
    .clk_i,
    .rst_ni,
    .push_i(frame_valid_i),
    .data_i(frame_slot_i),
    .valid_o(waiting),
    .data_o(slot),
    .pop_i(command_valid_o)
  );

  always_comb begin
    desc = '0;
    for (int unsigned i = 0; i < Devices; i++) desc[i] = desc_i[i];
  end

  assign entry = entry_i[slot];
  assign d = desc[device_q];
  assign serves = d.valid && !d.broken;

  // A 4 KiB read with one PRP entry. The generation in its identifier tells it from the entry's earlier commands.
  always_comb begin
    sqe = '0;
    sqe[8*NVME_SQE_CDW0+:32] = {generation_q[slot_q], CidIndexWidth'(slot_q), 16'(NVME_OPC_READ)};
    sqe[8*NVME_SQE_NSID+:32] = nsid_q;
    sqe[8*NVME_SQE_PRP1+:64] = {dma_q, 12'b0};
    sqe[8*NVME_SQE_SLBA+:64] = lba_q;
    sqe[8*NVME_SQE_CDW12+:32] = (32'd1 << blocks_q) - 32'd1;
  end

  assign generation_o = generation_q;
  assign sqe_valid_o = cmd_q == CmdWrite;
  assign sqe_soon_o = cmd_q == CmdLoad;
  assign sqe_o = '{addr: address_q, size: 3'd6, exclusive: 1'b0, atop: AtopNone, data: sqe};
  assign hand_over = cmd_q == CmdRing;
  assign submitted_o = sqe_valid_o && sqe_done_i && !sqe_error_i;
  assign submitted_device_o = device_q;
  assign busy_o = cmd_q != CmdIdle || bell_q;

  // The slot leaves the queue when its command is handed to the doorbell, or ends here.
  always_comb begin
    cmd_d = cmd_q;
    command_valid_o = 1'b0;
    command_end_o = 1'b0;
    command_reason_o = '0;
    unique case (cmd_q)
      CmdIdle: if (waiting && !hold_i) cmd_d = CmdLoad;
      CmdLoad: begin
        if (serves) begin
          cmd_d = CmdWrite;
        end else begin
          cmd_d = CmdIdle;
          command_valid_o = 1'b1;
          command_end_o = 1'b1;
          command_reason_o = reason_t'(REASON_DESCRIPTOR);
        end
      end
      CmdWrite: begin
        if (sqe_done_i) begin
          cmd_d = sqe_error_i ? CmdIdle : CmdRing;
          command_valid_o = sqe_error_i;
          command_end_o = 1'b1;
          command_reason_o = reason_t'(REASON_BUS);
        end
      end
      CmdRing: begin
        cmd_d = CmdIdle;
        command_valid_o = 1'b1;
      end
      default: cmd_d = CmdIdle;
    endcase
  end
  assign command_slot_o = slot_q;

  // The device may answer as soon as the write of the doorbell has begun, so the miss counts as handed over one cycle earlier. If
  // the device is out of use by then, the command is already in the queue, and a later doorbell would start it. Therefore the
  // frame goes into quarantine (REQ: SMU-7).
  assign bell_broken = desc[bell_device_q].broken;
  assign ring_o = bell_q;
  assign ring_device_o = bell_device_q;
  assign ring_tail_o = bell_tail_q;
  assign device_valid_o = bell_q;
  assign device_end_o = bell_broken;
  assign device_reason_o = reason_t'(REASON_BUS);
  assign device_slot_o = bell_slot_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      cmd_q <= CmdIdle;
      bell_q <= 1'b0;
      generation_q <= '0;
    end else begin
      cmd_q <= cmd_d;
      bell_q <= hand_over;
      if (cmd_q == CmdLoad && serves) generation_q[slot_q] <= generation_q[slot_q] + 1'b1;
    end
  end

  // The first cycle reads the entry's part of the command, the second the device's part, because selecting an entry and selecting
  // a device take one cycle each.
  always_ff @(posedge clk_i) begin
    if (cmd_q == CmdIdle) begin
      slot_q <= slot;
      device_q <= entry.value[PTE_DEVICE_MSB:PTE_DEVICE_LSB];
      lba_q <= 64'(entry.value[PTE_LBA_MSB:PTE_LBA_LSB]);
      dma_q <= entry.dma;
    end
    if (cmd_q == CmdLoad) begin
      address_q <= d.sq_base + {41'b0, d.sq_tail, 6'b0};
      nsid_q <= d.nsid;
      blocks_q <= d.blocks;
    end
    if (hand_over) begin
      bell_slot_q <= slot_q;
      bell_device_q <= device_q;
      bell_tail_q <= d.sq_tail;  // advanced when the command was written
    end
  end

endmodule
