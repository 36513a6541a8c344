// SPDX-License-Identifier: Apache-2.0
// Installs as memory sees them (REQ: SMU-3, SMU-4). The PTE is written only over the value seen, and only as ISA-6 says. The PMD
// is written only after the PTE, the PUD only when the PMD has its mark. A miss is answered as done only after all three. After a
// bus error on its write, the PTE is read back, and the value decides what is known (REQ: SMU-13). A test of the fabric writes
// back what it has read (REQ: SMU-16).
`include "claim.svh"

module install_view
  import trapless_smu_pkg::*, trapless_spec_pkg::*;
#(
  parameter int unsigned Index = 0
) (
  input logic clk_i,
  input logic rst_ni,
  input logic start_i,
  input unit_pkg::slot_t slot_q,
  input logic [2:0] state_q,
  input logic [1:0] level_q,
  input logic [8:0] attempt_q,
  input logic [63:0] found_q,
  input logic [63:0] seen_q,
  input logic [63:0] new_q,
  input logic check_q,
  input logic lost_q,
  input logic doubt_q,
  input logic try_q,
  input entry_addr_t pte_q,
  input entry_addr_t pmd_q,
  input entry_addr_t pud_q,
  input logic pte_valid_o,
  input logic valid_o,
  input reason_t reason_o,
  input logic mapped_o,
  input logic [63:0] value_o
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  localparam logic [2:0] UpIdle = 3'd0, UpAsk = 3'd1, UpWait = 3'd2, UpWrite = 3'd3, UpTell = 3'd5, UpJudge = 3'd6;
  localparam logic [2:0] Id = 3'(Index);

  // These follow from the bus alone. `step_q`: how many of the three entries are done. `read_q`: what the last read found.
  logic [1:0] step_q;
  logic [63:0] read_q, want;
  logic read_done, write_done, failed, marked;
  logic [63:0] addr;
  entry_t e;

  assign e = `SMU.entry[slot_q];
  assign read_done = `SMU.m_axi_rvalid && `SMU.m_axi_rid == Id && `SMU.m_axi_rresp == RespExOkay;
  assign write_done = `SMU.m_axi_bvalid && `SMU.m_axi_bid == Id && `SMU.m_axi_bresp == RespExOkay;
  assign failed = `SMU.m_axi_bvalid && `SMU.m_axi_bid == Id && `SMU.m_axi_bresp inside {RespSlvErr, RespDecErr};
  assign marked = read_done && step_q != 2'd0 && `SMU.m_axi_rdata[PTE_L_BIT];

  // `asked_q`: the PTE's write met a bus error, and the PTE is to be read back. `told_q`: that read has ended. `unknown_q`: it
  // did not tell whether the PTE was written.
  logic asked_q, told_q, told_error_q, unknown_q, untouched, there;
  logic [63:0] told_data_q;
  assign untouched = !told_error_q && told_data_q == e.value;
  assign there = !told_error_q && told_data_q[PTE_V_BIT] && told_data_q[PTE_PFN_MSB:PTE_PFN_LSB] == 44'(e.pfn);

  always_ff @(posedge clk_i) begin
    if (start_i) step_q <= 2'd0;
    else if (marked || write_done || (told_q && !untouched)) step_q <= step_q + 2'd1;
    if (read_done) read_q <= `SMU.m_axi_rdata;
    if (!rst_ni || start_i) asked_q <= 1'b0;
    else if (failed && step_q == 2'd0 && !try_q) asked_q <= 1'b1;
    else if (`SMU.m_axi_rvalid && `SMU.m_axi_rid == Id) asked_q <= 1'b0;
    told_q <= rst_ni && asked_q && `SMU.m_axi_rvalid && `SMU.m_axi_rid == Id;
    told_error_q <= `SMU.m_axi_rresp inside {RespSlvErr, RespDecErr};
    told_data_q <= `SMU.m_axi_rdata;
    if (start_i) unknown_q <= 1'b0;
    else if (told_q && !untouched && !there) unknown_q <= 1'b1;
  end

  always_comb begin
    unique case (step_q)
      2'd0: begin
        addr = 64'({e.pte, 3'b0});
        want = installed(e.value, e.pfn);
      end
      2'd1: begin
        addr = 64'({e.pmd, 3'b0});
        want = read_q | (64'd1 << PTE_L_BIT);
      end
      default: begin
        addr = 64'({e.pud, 3'b0});
        want = read_q | (64'd1 << PTE_L_BIT);
      end
    endcase
    if (try_q) begin
      addr = `SMU.ret_base;
      want = read_q;
    end
  end

  `CLAIM(update_states, state_q == UpJudge, state_q <= UpJudge && level_q <= 2'd2 && (state_q == UpIdle || (try_q
      && Index == 0 && level_q == 2'd2 && state_q != UpJudge) || (!try_q && level_q == step_q) || (!try_q && state_q == UpTell
      && level_q == 2'd2 && step_q == 2'd3)) && (!pte_valid_o || (state_q == UpAsk && level_q == 2'd1)))
  `CLAIM(update_works_on_entry, state_q != UpIdle && !try_q, state_q == UpIdle || (try_q && 64'({pud_q,
      3'b0}) == `SMU.ret_base) || (!try_q && e.stage == StInstall && pte_q == e.pte && pmd_q == e.pmd && pud_q == e.pud
      && seen_q == e.value && new_q == installed(e.value, e.pfn)))
  `CLAIM(update_found_is_read, state_q == UpWrite, state_q != UpWrite || (found_q == read_q && (try_q || step_q != 2'd0
      || found_q == seen_q)))

  // REQ: SMU-13
  `CLAIM(update_knows, told_q, state_q == UpIdle ? !check_q && !asked_q && !told_q : try_q ? !check_q && !doubt_q && !asked_q
      && !told_q : (check_q == (asked_q || told_q) && !(asked_q && told_q) && told_q == (state_q == UpJudge)
      && doubt_q == unknown_q && (!unknown_q || (step_q != 2'd0 && !pte_valid_o)) && (!check_q || (step_q == 2'd0
      && state_q inside {UpAsk, UpWait, UpJudge})) && (!told_q || (lost_q == told_error_q && found_q == told_data_q))))
  `CLAIM_WHEN(doubt_is_told, valid_o, mapped_o == unknown_q && (!unknown_q || reason_o == reason_t'(REASON_BUS)))
  `CLAIM_WHEN(written_once, (asked_q || told_q), !(`SMU.m_axi_awvalid && `SMU.m_axi_awid == Id))

  // REQ: SMU-3
  `CLAIM_WHEN(entry_written_over_value_seen, (`SMU.m_axi_awvalid && `SMU.m_axi_awid == Id), `SMU.m_axi_awlock
      && `SMU.m_axi_awaddr == addr && (try_q || step_q != 2'd0 || read_q == e.value))
  `CLAIM_WHEN(entry_written_as_installed, (`SMU.m_axi_wvalid && `SMU.u_axi.u_dma_write.sel == Id), `SMU.m_axi_wdata == want
      && `SMU.m_axi_wstrb == '1)
  `CLAIM_WHEN(entry_written_in_order, (`SMU.m_axi_awvalid && `SMU.m_axi_awid == Id), try_q || (step_q == 2'd0
      || unknown_q) == e.frame)
  `CLAIM_WHEN(done_when_all_marked, valid_o, 32'(reason_o) inside {REASON_CHANGED, REASON_BUS} || (reason_o == '0
      && step_q == 2'd3 && value_o == installed(e.value, e.pfn)))

endmodule

// Answers: done only after an install, and only outcomes that are in spec/formats.toml.
module unit_install
  import trapless_smu_pkg::*, trapless_spec_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  logic [Entries-1:0] done_q, told;
  logic [Entries-1:0][63:0] seen_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++) begin
      if (`SMU.u_requests.allocate && `SMU.u_requests.allocated == slot_t'(i)) begin
        done_q[i] <= 1'b0;
        seen_q[i] <= `SMU.u_requests.req.pte;
      end
      for (int unsigned u = 0; u < Updaters; u++) begin
        if (`SMU.update_valid[u] && `SMU.update_slot[u] == slot_t'(i) && `SMU.update_reason[u] == '0) done_q[i] <= 1'b1;
      end
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      told[i] = 1'b1;
      unique case (`SMU.entry[i].stage)
        StFree: ;
        StAnswer, StOver: begin
          if (`SMU.entry[i].reason == '0) begin
            told[i] = done_q[i] && `SMU.entry[i].value == installed(seen_q[i], `SMU.entry[i].pfn) && !`SMU.entry[i].frame
                && !`SMU.entry[i].command;
          end else begin
            told[i] = !done_q[i] && 32'(`SMU.entry[i].reason) inside {REASON_CHANGED, REASON_NO_FRAME, REASON_DEVICE, REASON_BUS,
                REASON_DISABLED, REASON_DESCRIPTOR, REASON_TIMEOUT};
          end
        end
        default: told[i] = !done_q[i] && `SMU.entry[i].value == seen_q[i];
      endcase
    end
  end

  `CLAIM(answer_tells_what_was_done, done_q != '0, told == '1)

endmodule

bind trapless_smu_update install_view #(.Index(Index)) u_view (.state_q(state_q), .level_q(level_q), .*);
bind trapless_smu unit_install u_install (.*);
