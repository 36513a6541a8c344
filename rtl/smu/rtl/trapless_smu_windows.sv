// SPDX-License-Identifier: Apache-2.0
// Windows: the physical addresses that the unit may use (REQ: SMU-15). Addresses are compared where they come in, never on their
// way to memory: those of a request during the search for its PTE, those of a queue pair while its CTRL is accessed, those of the
// rings in the background. An address that is not known to be inside is not used.
`include "trapless_smu_ff.svh"

module trapless_smu_windows
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Windows = 3
) (
  input logic clk_i,
  input logic rst_ni,

  // register access: `field` is the offset in the window, divided by 8
  input logic [2:0] index_i,
  input logic [1:0] field_i,
  input logic write_i,
  input logic lock_i,
  input logic [63:0] wdata_i,
  output logic [63:0] rdata_o,
  output logic locked_o,

  // the three entries of the request that is looked at; the result comes in the next cycle
  input entry_addr_t pte_i,
  input entry_addr_t pmd_i,
  input entry_addr_t pud_i,
  output logic entries_inside_o,

  // a descriptor's four addresses, one per step; the result comes in the cycle after the last step
  input logic look_i,
  input logic [1:0] step_i,
  input desc_t desc_i,
  output logic desc_inside_o,

  input logic free_set_i,
  input logic [63:0] free_base_i,
  input logic [31:0] free_size_i,
  output logic free_inside_o,
  input logic ret_set_i,
  input logic [63:0] ret_base_i,
  input logic [31:0] ret_size_i,
  output logic ret_inside_o
);

  if (Windows > 8) begin : g_bad_windows
    $error("Windows must be from 0 to 8");
  end

  localparam int unsigned Count = Windows == 0 ? 1 : Windows;
  localparam logic [1:0] First = 2'(WINDOW_FIRST >> 3), Last = 2'(WINDOW_LAST >> 3), Ctrl = 2'(WINDOW_CTRL >> 3);
  localparam logic [7:0] Known = 8'((9'd1 << Windows) - 9'd1);
  localparam int unsigned EntryShift = 12 - 3;  // from an entry's address to its granule

  typedef enum logic [2:0] { ItemSq, ItemCq, ItemSqBell, ItemCqBell, ItemFree, ItemReturn } item_e;

  granule_t [Count-1:0] first_q, last_q;
  logic [Count-1:0] memory_q, bell_q;
  logic locked_q, known, in_force;

  assign known = Known[index_i];
  assign in_force = locked_q || memory_q != '0 || bell_q != '0;

  always_comb begin
    rdata_o = '0;
    for (int unsigned w = 0; w < Count; w++) begin
      if (known && index_i == 3'(w)) begin
        unique case (field_i)
          First: rdata_o[WINDOW_FIRST_GRANULE_MSB:WINDOW_FIRST_GRANULE_LSB] = first_q[w];
          Last: rdata_o[WINDOW_LAST_GRANULE_MSB:WINDOW_LAST_GRANULE_LSB] = last_q[w];
          Ctrl: begin
            rdata_o[WINDOW_CTRL_MEMORY_BIT] = memory_q[w];
            rdata_o[WINDOW_CTRL_DOORBELL_BIT] = bell_q[w];
          end
          default: ;
        endcase
      end
    end
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      first_q <= '0;
      last_q <= '0;
      memory_q <= '0;
      bell_q <= '0;
      locked_q <= 1'b0;
    end else begin
      for (int unsigned w = 0; w < Count; w++) begin
        if (write_i && known && index_i == 3'(w)) begin
          if (field_i == First) first_q[w] <= wdata_i[WINDOW_FIRST_GRANULE_MSB:WINDOW_FIRST_GRANULE_LSB];
          if (field_i == Last) last_q[w] <= wdata_i[WINDOW_LAST_GRANULE_MSB:WINDOW_LAST_GRANULE_LSB];
          if (field_i == Ctrl) begin
            memory_q[w] <= wdata_i[WINDOW_CTRL_MEMORY_BIT];
            bell_q[w] <= wdata_i[WINDOW_CTRL_DOORBELL_BIT];
          end
        end
      end
      if (lock_i && Windows != 0) locked_q <= 1'b1;
    end
  end

  assign locked_o = locked_q;

  // Whether all granules from `from` to `to` lie in one window of `among`. `to` is never before `from`.
  function automatic logic inside_one(granule_t from, granule_t to, granule_t [Count-1:0] first, granule_t [Count-1:0] last,
                                      logic [Count-1:0] among);
    logic found;
    found = 1'b0;
    for (int unsigned w = 0; w < Count; w++) found |= among[w] && first[w] <= from && to <= last[w];
    return found;
  endfunction

  // ---------------------------------------------------------------- requests
  granule_t [2:0] entries;
  logic [2:0] entry_inside;
  logic entries_q;

  assign entries = {granule_t'(pte_i >> EntryShift), granule_t'(pmd_i >> EntryShift), granule_t'(pud_i >> EntryShift)};

  always_comb begin
    for (int unsigned i = 0; i < 3; i++) begin
      entry_inside[i] = inside_one(entries[i], entries[i], first_q, last_q, memory_q);
    end
  end

  // A result from before the windows came into force does no harm: the unit is disabled at that time.
  always_ff @(posedge clk_i) entries_q <= !in_force || entry_inside == '1;

  assign entries_inside_o = entries_q;

  // ---------------------------------------------------------------- queues and rings
  // The first cycle takes the address and finds the last granule, the second compares. `more` counts units of 16 bytes.
  item_e item, item_q;
  logic [63:0] at;
  logic [31:0] more;
  logic [52:0] end_at;
  granule_t from_q, to_q;
  logic far_q, fresh_q, turn_q, here, set, free_q, ret_q;
  logic [2:0] desc_q;

  always_comb begin
    item = turn_q ? ItemReturn : ItemFree;
    at = turn_q ? ret_base_i : free_base_i;
    more = (turn_q ? ret_size_i : free_size_i) - 32'd1;
    if (look_i) begin
      item = item_e'({1'b0, step_i});
      more = '0;
      unique case (step_i)
        2'd0: begin
          at = desc_i.sq_base;
          more = {13'b0, desc_i.depth - 17'd1, 2'b11};
        end
        2'd1: begin
          at = desc_i.cq_base;
          more = {15'b0, desc_i.depth - 17'd1};
        end
        2'd2: at = desc_i.sq_doorbell;
        default: at = desc_i.cq_doorbell;
      endcase
    end
    end_at = 53'(at[PAddrWidth-1:4]) + 53'(more);
  end

  assign here = !far_q && inside_one(from_q, to_q, first_q, last_q, item_q inside {ItemSqBell, ItemCqBell} ? bell_q : memory_q);
  assign set = write_i || lock_i;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      {free_q, ret_q, fresh_q, turn_q} <= '0;
    end else begin
      turn_q <= !turn_q;
      // An address that was read while it was being set is the old one.
      fresh_q <= !(free_set_i || ret_set_i);
      if (free_set_i || set) free_q <= 1'b0;
      else if (fresh_q && item_q == ItemFree) free_q <= here;
      if (ret_set_i || set) ret_q <= 1'b0;
      else if (fresh_q && item_q == ItemReturn) ret_q <= here;
    end
  end

  always_ff @(posedge clk_i) begin
    from_q <= at[PAddrWidth-1:12];
    to_q <= end_at[51:8];
    far_q <= at[63:PAddrWidth] != '0 || end_at[52];
    item_q <= item;
    if (item_q == ItemSq) desc_q[0] <= here;
    if (item_q == ItemCq) desc_q[1] <= here;
    if (item_q == ItemSqBell) desc_q[2] <= here;
  end

  assign desc_inside_o = !in_force || (desc_q == '1 && here);
  // `free_inside_o` is used only while the unit is being enabled, when no ring or window is being set.
  assign free_inside_o = !in_force || free_q;
  assign ret_inside_o = !(ret_set_i || set) && (!in_force || ret_q);

endmodule
