// SPDX-License-Identifier: Apache-2.0
// Queue descriptors: registers and queue state of the NVMe queue pairs (REQ: SMU-9).
`include "trapless_smu_ff.svh"

module trapless_smu_desc
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Devices = 8
) (
  input logic clk_i,
  input logic rst_ni,
  input entry_t [Entries-1:0] entry_i,
  output desc_t [Devices-1:0] desc_o,

  // register access: `field` is the offset in the descriptor, divided by 8
  input logic [2:0] index_i,
  input logic [3:0] field_i,
  input logic write_i,
  input logic [63:0] wdata_i,
  output logic [63:0] rdata_o,
  // The descriptor that is addressed, and whether its queues and doorbells lie in windows (REQ: SMU-15).
  output desc_t selected_o,
  input logic inside_i,
  output logic refused_o,
  output logic release_o,
  // `renew_o`: a queue pair is set up anew. `old_i`: a doorbell write for an old queue pair is still under way.
  output logic renew_o,
  input logic [Devices-1:0] old_i,

  input logic submitted_i,
  input logic [2:0] submitted_device_i,
  input logic taken_i,
  input logic matched_i,
  input logic [2:0] device_i,
  input logic [Devices-1:0] lost_i
);

  function automatic logic [3:0] field(int unsigned offset);
    return 4'(offset >> 3);
  endfunction

  localparam logic [3:0] Ctrl = field(DESC_CTRL);
  localparam logic [3:0] Release = field(DESC_RELEASE);

  desc_t [Devices-1:0] desc_q, desc_d;
  logic [Devices-1:0][63:0] submitted_q;
  logic [Devices-1:0][7:0] inflight_q;
  desc_t d, w;
  logic known, old, sound, fixed, resets;
  logic [7:0] quarantined;

  // An absent descriptor reads zero and ignores writes.
  assign known = 32'(index_i) < Devices;
  assign d = known ? desc_q[index_i] : '0;
  assign selected_o = d;
  assign old = 1'(8'(old_i) >> index_i);

  always_comb begin
    quarantined = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      if (entry_i[i].command && entry_i[i].stage inside {StAnswer, StOver}
          && entry_i[i].value[PTE_DEVICE_MSB:PTE_DEVICE_LSB] == index_i) begin
        quarantined = quarantined + 8'd1;
      end
    end
  end

  always_comb begin
    rdata_o = '0;
    if (known) begin
      unique case (field_i)
        Ctrl: begin
          rdata_o[DESC_CTRL_VALID_BIT] = d.valid;
          rdata_o[DESC_CTRL_RINGING_BIT] = old;
        end
        field(DESC_SQ_BASE): rdata_o = d.sq_base;
        field(DESC_CQ_BASE): rdata_o = d.cq_base;
        field(DESC_SQ_DB): rdata_o = d.sq_doorbell;
        field(DESC_CQ_DB): rdata_o = d.cq_doorbell;
        field(DESC_DEPTH): rdata_o = 64'(d.depth);
        field(DESC_NSID): rdata_o = 64'(d.nsid);
        field(DESC_BLOCKS): rdata_o = 64'(d.blocks);
        field(DESC_SQ_TAIL): rdata_o = 64'(d.sq_tail);
        field(DESC_CQ_HEAD): begin
          rdata_o[DESC_CQ_HEAD_INDEX_MSB:DESC_CQ_HEAD_INDEX_LSB] = d.cq_head;
          rdata_o[DESC_CQ_HEAD_PHASE_BIT] = d.phase;
        end
        field(DESC_N_SUBMITTED): rdata_o = submitted_q[index_i];
        field(DESC_N_COMPLETED): rdata_o = submitted_q[index_i] - 64'(inflight_q[index_i]);
        field(DESC_QUARANTINED): rdata_o = 64'(quarantined);
        default: rdata_o = '0;
      endcase
    end
  end

  // A queue whose base is beyond 2^56 could wrap around.
  assign sound = d.sq_base[11:0] == '0 && d.sq_base[63:56] == '0 && d.cq_base[11:0] == '0 && d.cq_base[63:56] == '0
      && d.sq_doorbell[1:0] == '0 && d.cq_doorbell[1:0] == '0
      && 32'(d.depth) > Entries && (!d.depth[16] || d.depth[15:0] == '0) && d.blocks <= 4'd3 && !d.broken && !old;
  assign fixed = d.valid || (known && inflight_q[index_i] != '0);

  // The descriptor after a write.
  always_comb begin
    w = d;
    refused_o = 1'b0;
    release_o = 1'b0;
    renew_o = 1'b0;
    resets = 1'b0;
    if (write_i && known) begin
      unique case (field_i)
        Ctrl: begin
          refused_o = wdata_i[DESC_CTRL_VALID_BIT] && !d.valid && !(sound && inside_i);
          w.valid = wdata_i[DESC_CTRL_VALID_BIT] && !refused_o;
        end
        Release: begin
          refused_o = d.valid;
          release_o = !d.valid;
          renew_o = release_o;
          resets = release_o;
        end
        field(DESC_SQ_BASE), field(DESC_CQ_BASE), field(DESC_SQ_DB), field(DESC_CQ_DB), field(DESC_DEPTH),
            field(DESC_NSID), field(DESC_BLOCKS): begin
          refused_o = fixed;
          renew_o = !fixed;
          if (!fixed) begin
            if (field_i == field(DESC_SQ_BASE)) w.sq_base = wdata_i;
            if (field_i == field(DESC_CQ_BASE)) w.cq_base = wdata_i;
            if (field_i == field(DESC_SQ_DB)) w.sq_doorbell = wdata_i;
            if (field_i == field(DESC_CQ_DB)) w.cq_doorbell = wdata_i;
            if (field_i == field(DESC_DEPTH)) w.depth = wdata_i[DESC_DEPTH_ENTRIES_MSB:DESC_DEPTH_ENTRIES_LSB];
            if (field_i == field(DESC_NSID)) w.nsid = wdata_i[DESC_NSID_ID_MSB:DESC_NSID_ID_LSB];
            if (field_i == field(DESC_BLOCKS)) w.blocks = wdata_i[DESC_BLOCKS_LOG2_MSB:DESC_BLOCKS_LOG2_LSB];
            resets = field_i == field(DESC_SQ_BASE) || field_i == field(DESC_CQ_BASE) || field_i == field(DESC_DEPTH);
          end
        end
        default: ;
      endcase
    end
    if (resets) begin
      w.sq_tail = '0;
      w.cq_head = '0;
      w.phase = 1'b1;
    end
    if (release_o) w.broken = 1'b0;
  end

  always_comb begin
    desc_d = desc_q;
    for (int unsigned i = 0; i < Devices; i++) begin
      if (submitted_i && submitted_device_i == 3'(i)) begin
        desc_d[i].sq_tail = desc_q[i].sq_tail + 17'd1 == desc_q[i].depth ? '0 : desc_q[i].sq_tail + 17'd1;
      end
      if (taken_i && device_i == 3'(i)) begin
        desc_d[i].cq_head = desc_q[i].cq_head + 17'd1 == desc_q[i].depth ? '0 : desc_q[i].cq_head + 17'd1;
        if (desc_q[i].cq_head + 17'd1 == desc_q[i].depth) desc_d[i].phase = !desc_q[i].phase;
      end
      if (write_i && index_i == 3'(i)) desc_d[i] = w;
      if (lost_i[i]) desc_d[i].broken = 1'b1;
      desc_d[i].outstanding = 1'b0;  // see below
    end
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Devices; i++) begin
        desc_q[i] <= '0;
        desc_q[i].phase <= 1'b1;
      end
      submitted_q <= '0;
      inflight_q <= '0;
    end else begin
      desc_q <= desc_d;
      for (int unsigned i = 0; i < Devices; i++) begin
        if (submitted_i && submitted_device_i == 3'(i)) submitted_q[i] <= submitted_q[i] + 64'd1;
        if (release_o && index_i == 3'(i)) begin
          inflight_q[i] <= '0;
        end else begin
          inflight_q[i] <= inflight_q[i] + 8'(submitted_i && submitted_device_i == 3'(i))
              - 8'(matched_i && device_i == 3'(i));
        end
      end
    end
  end

  always_comb begin
    desc_o = desc_q;
    for (int unsigned i = 0; i < Devices; i++) desc_o[i].outstanding = inflight_q[i] != '0;
  end

endmodule
