// SPDX-License-Identifier: Apache-2.0
// Gives installs to the first idle updater, in the order of completion (REQ: SMU-3). Updater 0 tests the fabric before the unit
// is enabled (REQ: SMU-16).

module trapless_smu_updaters
  import trapless_smu_pkg::*;
#(
  parameter int unsigned PmshrEntries = 32,
  parameter int unsigned Updaters = 2,
  parameter bit Atomics = 1'b0,
  parameter int unsigned SlotWidth = $clog2(PmshrEntries)
) (
  input logic clk_i,
  input logic rst_ni,
  input logic install_i,
  input logic [SlotWidth-1:0] completion_slot_i,
  input entry_t [PmshrEntries-1:0] entry_i,
  input logic install_soon_i,
  input logic try_i,
  input entry_addr_t try_addr_i,
  output logic tried_o,
  output logic try_ok_o,
  output logic [Updaters-1:0] read_valid_o,
  output logic [Updaters-1:0] read_soon_o,
  input logic [Updaters-1:0] read_ready_i,
  output dma_read_t [Updaters-1:0] read_o,
  input logic [Updaters-1:0] data_valid_i,
  input axi_resp_e rd_resp_i,
  input logic [63:0] rd_data_i,
  output logic [Updaters-1:0] write_valid_o,
  output logic [Updaters-1:0] write_soon_o,
  output dma_write_t [Updaters-1:0] write_o,
  input logic [Updaters-1:0] write_done_i,
  input axi_resp_e wr_resp_i,
  output logic [Updaters-1:0] pte_valid_o,
  output logic [Updaters-1:0] update_valid_o,
  output logic [Updaters-1:0][SlotWidth-1:0] update_slot_o,
  output reason_t [Updaters-1:0] update_reason_o,
  output logic [Updaters-1:0] update_mapped_o,
  output logic update_error_o,
  output logic [Updaters-1:0][63:0] update_value_o
);

  if (Updaters < 1 || Updaters > 4) begin : g_bad_updaters
    $error("Updaters must be from 1 to 4");
  end

  logic install_waiting, install_start, install_any;
  entry_t install_entry;
  logic [SlotWidth-1:0] install_first, install_slot;
  logic [Updaters-1:0] update_start, update_next, update_ready, update_error, tried, try_ok;

  trapless_smu_fifo #(.Width(SlotWidth), .Depth(PmshrEntries)) u_installs (
    .clk_i,
    .rst_ni,
    .push_i(install_i && (install_waiting || !install_start)),
    .data_i(completion_slot_i),
    .valid_o(install_waiting),
    .data_o(install_first),
    .pop_i(install_waiting && install_start)
  );

  // An install that finds the queue empty does not wait in it.
  assign install_any = install_waiting || install_i;
  assign install_slot = install_waiting ? install_first : completion_slot_i;
  // The fields of the entry that an install needs, selected once for all updaters.
  always_comb begin
    install_entry = '0;
    for (int unsigned i = 0; i < PmshrEntries; i++) begin
      if (install_slot == SlotWidth'(i)) begin
        install_entry.pte |= entry_i[i].pte;
        install_entry.pmd |= entry_i[i].pmd;
        install_entry.pud |= entry_i[i].pud;
        install_entry.value |= entry_i[i].value;
        install_entry.pfn |= entry_i[i].pfn;
      end
    end
  end
  assign install_start = update_start != '0;
  assign update_next = update_ready & (~update_ready + 1'b1);
  assign update_start = install_any ? update_next : '0;

  assign update_error_o = update_error != '0;
  assign tried_o = tried != '0;
  assign try_ok_o = (tried & try_ok) != '0;

  for (genvar u = 0; u < Updaters; u++) begin : g_update
    if (Atomics) begin : g_atomic
      trapless_smu_update_atomic #(.Entries(PmshrEntries)) u_update (
        .clk_i,
        .rst_ni,
        .start_i(update_start[u]),
        .start_entry_i(install_entry),
        .start_slot_i(install_slot),
        .ready_o(update_ready[u]),
        .try_i(u == 0 && try_i),
        .try_addr_i,
        .tried_o(tried[u]),
        .try_ok_o(try_ok[u]),
        .next_i(update_next[u] && (install_waiting || install_soon_i)),
        .read_valid_o(read_valid_o[u]),
        .read_soon_o(read_soon_o[u]),
        .read_ready_i(read_ready_i[u]),
        .read_o(read_o[u]),
        .data_valid_i(data_valid_i[u]),
        .data_resp_i(rd_resp_i),
        .data_i(rd_data_i),
        .write_valid_o(write_valid_o[u]),
        .write_soon_o(write_soon_o[u]),
        .write_o(write_o[u]),
        .done_valid_i(write_done_i[u]),
        .done_resp_i(wr_resp_i),
        .pte_valid_o(pte_valid_o[u]),
        .error_o(update_error[u]),
        .valid_o(update_valid_o[u]),
        .slot_o(update_slot_o[u]),
        .reason_o(update_reason_o[u]),
        .mapped_o(update_mapped_o[u]),
        .value_o(update_value_o[u])
      );
    end else begin : g_pair
      trapless_smu_update #(.Entries(PmshrEntries), .Index(u)) u_update (
        .clk_i,
        .rst_ni,
        .start_i(update_start[u]),
        .start_entry_i(install_entry),
        .start_slot_i(install_slot),
        .ready_o(update_ready[u]),
        .try_i(u == 0 && try_i),
        .try_addr_i,
        .tried_o(tried[u]),
        .try_ok_o(try_ok[u]),
        .next_i(update_next[u] && (install_waiting || install_soon_i)),
        .read_valid_o(read_valid_o[u]),
        .read_soon_o(read_soon_o[u]),
        .read_ready_i(read_ready_i[u]),
        .read_o(read_o[u]),
        .data_valid_i(data_valid_i[u]),
        .data_resp_i(rd_resp_i),
        .data_i(rd_data_i),
        .write_valid_o(write_valid_o[u]),
        .write_soon_o(write_soon_o[u]),
        .write_o(write_o[u]),
        .done_valid_i(write_done_i[u]),
        .done_resp_i(wr_resp_i),
        .pte_valid_o(pte_valid_o[u]),
        .error_o(update_error[u]),
        .valid_o(update_valid_o[u]),
        .slot_o(update_slot_o[u]),
        .reason_o(update_reason_o[u]),
        .mapped_o(update_mapped_o[u]),
        .value_o(update_value_o[u])
      );
    end
  end

endmodule
