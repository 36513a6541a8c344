// SPDX-License-Identifier: Apache-2.0
// Keeps the core's data cache coherent with another master's writes: a write to memory is answered when the cache no longer
// holds any of its lines (REQ: SMU-4). One write at a time.
module coherent_writes
  import trapless_soc_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,
  // from the master
  input  mst_req_t  req_i,
  output mst_resp_t rsp_o,
  // to the bus
  output mst_req_t  req_o,
  input  mst_resp_t rsp_i,
  // to the cache: `ready` says that it does not hold the line
  output logic      inval_valid_o,
  input  logic      inval_ready_i,
  output addr_t     inval_addr_o
);
  localparam int unsigned LineBytes = ariane_pkg::DCACHE_LINE_WIDTH / 8;

  typedef enum logic [1:0] {Idle, Write, Invalidate, Answer} state_e;
  state_e state_d, state_q;
  addr_t  line_d, line_q, last_d, last_q;
  logic   memory_d, memory_q;

  function automatic addr_t line_of(addr_t address);
    return address & ~addr_t'(LineBytes - 1);
  endfunction

  always_comb begin
    state_d       = state_q;
    line_d        = line_q;
    last_d        = last_q;
    memory_d      = memory_q;
    req_o         = req_i;
    rsp_o         = rsp_i;
    inval_valid_o = 1'b0;

    req_o.aw_valid = 1'b0;
    rsp_o.aw_ready = 1'b0;
    req_o.b_ready  = 1'b0;
    rsp_o.b_valid  = 1'b0;

    unique case (state_q)
      Idle: begin
        req_o.aw_valid = req_i.aw_valid;
        rsp_o.aw_ready = rsp_i.aw_ready;
        if (req_i.aw_valid && rsp_i.aw_ready) begin
          line_d   = line_of(req_i.aw.addr);
          last_d   = line_of(req_i.aw.addr + ((addr_t'(req_i.aw.len) + 1) << req_i.aw.size) - 1);
          memory_d = target(req_i.aw.addr) == TargetMemory;
          state_d  = Write;
        end
      end
      Write: if (rsp_i.b_valid) state_d = memory_q ? Invalidate : Answer;
      Invalidate: begin
        inval_valid_o = 1'b1;
        if (inval_ready_i) begin
          line_d = line_q + LineBytes;
          if (line_q == last_q) state_d = Answer;
        end
      end
      default: begin
        rsp_o.b_valid = rsp_i.b_valid;
        req_o.b_ready = req_i.b_ready;
        if (rsp_i.b_valid && req_i.b_ready) state_d = Idle;
      end
    endcase
  end

  assign inval_addr_o = line_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= Idle;
      line_q   <= '0;
      last_q   <= '0;
      memory_q <= 1'b0;
    end else begin
      state_q  <= state_d;
      line_q   <= line_d;
      last_q   <= last_d;
      memory_q <= memory_d;
    end
  end
endmodule
