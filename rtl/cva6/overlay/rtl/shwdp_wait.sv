// SPDX-License-Identifier: Apache-2.0
// The walker's wait for the SMU (spec/isa.md). Recognizes an armed leaf, checks the access on it, waits until the access is
// the next to retire, asks, and returns an entry or a fault, or drops the walk. The walk itself stays in ptw.sv, which handles
// an entry from here like one from memory.
module shwdp_wait
  import shwdp_pkg::*;
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Levels = 3
) (
  input logic clk_i,
  input logic rst_ni,
  input logic flush_i,  // the walk is void

  // An entry was read.
  input logic                      lookup_i,
  input logic [$clog2(Levels)-1:0] level_i,  // 0 at the root
  input logic [PAddrWidth-1:0]     pte_addr_i,
  input riscv::pte_t               pte_i,
  input logic                      allow_i,      // PMP lets the walker read it
  input logic                      walk_idle_i,  // no walk is under way; the next walk counts its answers `changed` from 0

  // The access.
  input logic             is_instr_i,
  input logic             is_store_i,
  input logic             lsu_next_i,      // the load or store is the oldest instruction
  input logic             lsu_waits_i,     // a load or store needs the walker; it may be older than the fetch
  input riscv::priv_lvl_t priv_lvl_i,      // the hart's mode; under MPRV the access may have another mode
  input logic             mxr_i,

  input  to_walker_t   shwdp_i,
  output from_walker_t shwdp_o,

  // To the walk: `serve_o` says that the entry is served, so the walk waits. The other outputs give the result, for one cycle.
  output logic        serve_o,
  output logic        entry_valid_o,
  output riscv::pte_t entry_o,
  output logic        fault_o,
  output logic        access_fault_o,
  output logic        drop_o
);
  typedef enum logic [1:0] {Idle, Turn, Ask, Wait} state_e;
  state_e state_d, state_q;

  logic [Levels-1:0][PAddrWidth-1:0] addr_q;
  riscv::pte_t                       pte_q;
  logic [IdWidth-1:0]                id_q;
  logic [$clog2(WALKER_CHANGED_LIMIT+1)-1:0] changed_q;
  logic                              abandon_d, abandon_q;

  // REQ: ISA-1: armed. REQ: ISA-2: the access is allowed as if the entry were valid. REQ: ISA-3: made in U mode, so that code
  // that must not sleep never waits for a device. [user-mode-only]
  logic armed, user, allowed;
  assign armed   = names_block(pte_i) && !pte_i[PTE_SOFT_BIT];
  assign user    = priv_lvl_i == riscv::PRIV_LVL_U;
  assign allowed = user && (is_instr_i ? pte_i.x : is_store_i ? pte_i.w : pte_i.r || pte_i.x && mxr_i);
  assign serve_o = lookup_i && allow_i && 32'(level_i) == Levels - 1 && armed && allowed && shwdp_i.en;

  // REQ: ISA-3
  logic next, answered;
  assign next     = is_instr_i ? shwdp_i.fetch_next : lsu_next_i;
  assign answered = state_q == Wait && shwdp_i.rsp_valid && shwdp_i.rsp.id == id_q;

  always_comb begin
    state_d         = state_q;
    entry_valid_o   = 1'b0;
    fault_o         = 1'b0;
    access_fault_o  = 1'b0;
    drop_o          = 1'b0;
    abandon_d       = 1'b0;
    shwdp_o.trapped = 1'b0;

    unique case (state_q)
      Idle: if (serve_o) state_d = Turn;
      Turn: begin
        if (is_instr_i && shwdp_i.fetch_killed) fault_o = 1'b1;  // ends the fetch; nobody sees the fault
        else if (is_instr_i && lsu_waits_i) drop_o = 1'b1;
        else if (next && shwdp_i.trap) {fault_o, shwdp_o.trapped} = 2'b11;
        // Older stores must be in memory, because the SMU reads the entry there, not in this hart's write buffer.
        else if (next && shwdp_i.drained) state_d = Ask;
      end
      default: begin  // Ask, Wait
        if (answered) begin
          unique case (shwdp_i.rsp.outcome)
            OutcomeDone:    entry_valid_o = 1'b1;
            OutcomeChanged: if (32'(changed_q) < WALKER_CHANGED_LIMIT) entry_valid_o = 1'b1; else fault_o = 1'b1;
            default:        if (32'(shwdp_i.rsp.reason) == REASON_BUS) access_fault_o = 1'b1; else fault_o = 1'b1;
          endcase
        end else if (shwdp_i.trap) begin  // REQ: ISA-4
          {fault_o, shwdp_o.trapped} = 2'b11;
        end else if (is_instr_i && shwdp_i.fetch_killed) begin
          fault_o = 1'b1;
        end else if (state_q == Ask && shwdp_i.req_ready) begin
          state_d = Wait;
        end
      end
    endcase

    if (entry_valid_o || fault_o || access_fault_o || drop_o || flush_i) state_d = Idle;
    // A request that was accepted but not answered is abandoned, one cycle later.
    abandon_d = state_d == Idle && !answered && (state_q == Wait || state_q == Ask && shwdp_i.req_ready);
  end

  // REQ: ISA-7
  assign shwdp_o.waits     = state_q == Ask || state_q == Wait;
  assign shwdp_o.served    = answered && shwdp_i.rsp.outcome == OutcomeDone && !flush_i;

  assign entry_o           = riscv::pte_t'(shwdp_i.rsp.pte);
  assign shwdp_o.req_valid = state_q == Ask;
  assign shwdp_o.abandon   = abandon_q;
  assign shwdp_o.req       = '{
    pte_addr: addr_q[Levels-1],
    pmd_addr: addr_q[Levels-2],
    pud_addr: addr_q[Levels-3],
    pte:      pte_q,
    id:       id_q
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= Idle;
      addr_q    <= '0;
      pte_q     <= '0;
      id_q      <= '0;
      changed_q <= '0;
      abandon_q <= 1'b0;
    end else begin
      state_q   <= state_d;
      abandon_q <= abandon_d;
      if (lookup_i) begin
        addr_q[level_i] <= pte_addr_i;
        pte_q           <= pte_i;
      end
      // Every request has a new number, so that an answer to an abandoned request is recognized.
      if (state_q == Turn && state_d == Ask) id_q <= id_q + 1'b1;
      if (walk_idle_i) changed_q <= '0;
      else if (answered && shwdp_i.rsp.outcome == OutcomeChanged) changed_q <= changed_q + 1'b1;
    end
  end
endmodule
