// SPDX-License-Identifier: Apache-2.0
// State of the core that the walker needs (spec/isa.md), the traps that end its wait, and the counters of misses.
//
// An interrupt ends a wait with a page fault, which load, store and fetch unit report as any other page fault. The access is
// the next instruction to retire, so this fault is the next exception to be taken. When it leaves the commit stage, this module
// replaces its cause by the cause of the interrupt, as it was when the wait ended.
module shwdp_core
  import ariane_pkg::*;
  import shwdp_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  // REQ: ISA-4: interrupts that are pending and enabled.
  input irq_ctrl_t  irq_ctrl_i,
  input logic [1:0] irq_i,
  input logic       debug_req_i,
  input logic       debug_mode_i,

  // REQ: ISA-3: whether the fetch is the next to retire.
  input logic fetch_req_i,       // the instruction cache asks for a translation
  input logic fetch_valid_i,     // the instruction cache gets the translation
  input logic fetch_kill_i,      // the frontend drops the fetch
  input logic frontend_empty_i,
  input logic decode_empty_i,
  input logic issue_empty_i,

  input  logic         drained_i,
  input  logic         en_i,
  input  logic         req_ready_i,
  input  logic         rsp_valid_i,
  input  trapless_smu_pkg::smu_rsp_t rsp_i,
  output to_walker_t   walker_o,
  input  from_walker_t walker_i,
  output counts_t      counts_o,

  // The exception on its way from the commit stage.
  input  logic       flush_i,
  input  logic       retired_i,
  input  exception_t ex_i,
  output exception_t ex_o
);
  // Numbers of the interrupts, the most urgent first.
  localparam logic [5:0][3:0] Priority = {
    4'(riscv::IRQ_S_TIMER), 4'(riscv::IRQ_S_SOFT), 4'(riscv::IRQ_S_EXT),
    4'(riscv::IRQ_M_TIMER), 4'(riscv::IRQ_M_SOFT), 4'(riscv::IRQ_M_EXT)
  };

  riscv::xlen_t pending, cause;
  logic         debug, killed_q, trapped_q;
  riscv::xlen_t cause_q;

  always_comb begin
    // Only a walk of U mode waits (ISA-3), and U mode takes every enabled interrupt, whichever mode handles it.
    pending = irq_ctrl_i.mip;
    pending[riscv::IRQ_S_EXT] |= irq_i[SupervisorIrq];
    pending &= irq_ctrl_i.mie & {riscv::XLEN{irq_ctrl_i.global_enable}};

    cause = '0;
    for (int unsigned i = 6; i > 0; i--) begin
      if (pending[Priority[i-1]]) cause = riscv::xlen_t'(1) << (riscv::XLEN - 1) | riscv::xlen_t'(Priority[i-1]);
    end
    if (debug) cause = riscv::DEBUG_REQUEST;
  end

  assign debug    = debug_req_i && !debug_mode_i;
  assign walker_o = '{
    en:           en_i,
    drained:      drained_i,
    fetch_next:   frontend_empty_i && decode_empty_i && issue_empty_i,
    fetch_killed: killed_q,
    trap:         debug || pending != '0,
    req_ready:    req_ready_i,
    rsp_valid:    rsp_valid_i,
    rsp:          rsp_i
  };

  always_comb begin
    ex_o = ex_i;
    if (trapped_q && ex_i.valid) begin
      ex_o.cause = cause_q;
      ex_o.tval  = '0;
    end
  end

  // REQ: ISA-7
  counts_t counts_q;
  assign counts_o = counts_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      killed_q  <= 1'b0;
      trapped_q <= 1'b0;
      cause_q   <= '0;
      counts_q  <= '0;
    end else begin
      if (walker_i.served) counts_q.served <= counts_q.served + 1'b1;
      if (walker_i.waits) counts_q.waited <= counts_q.waited + 1'b1;
      // A fetch that is killed while it waits for its translation keeps waiting for it, and is then dropped.
      killed_q <= fetch_req_i && !fetch_valid_i && (killed_q || fetch_kill_i);
      if (flush_i || retired_i) begin
        trapped_q <= 1'b0;
      end else if (walker_i.trapped) begin
        trapped_q <= 1'b1;
        cause_q   <= cause;
      end
    end
  end
endmodule
