// SPDX-License-Identifier: Apache-2.0
// Queue of PMSHR entry numbers. It is as deep as the PMSHR, so it never overflows.
`include "trapless_smu_ff.svh"

module trapless_smu_fifo #(
  parameter int unsigned Width = 5,
  parameter int unsigned Depth = 32
) (
  input logic clk_i,
  input logic rst_ni,
  input logic push_i,
  input logic [Width-1:0] data_i,
  output logic valid_o,
  output logic [Width-1:0] data_o,
  input logic pop_i
);

  localparam int unsigned PtrWidth = $clog2(Depth);

  logic [Depth-1:0][Width-1:0] mem_q;
  logic [PtrWidth-1:0] rptr_q, wptr_q;
  logic [PtrWidth:0] count_q;

  function automatic logic [PtrWidth-1:0] next(logic [PtrWidth-1:0] ptr);
    return ptr == PtrWidth'(Depth - 1) ? '0 : ptr + 1'b1;
  endfunction

  assign valid_o = count_q != '0;
  assign data_o = mem_q[rptr_q];

  always_ff @(posedge clk_i) begin
    if (push_i) mem_q[wptr_q] <= data_i;
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      rptr_q <= '0;
      wptr_q <= '0;
      count_q <= '0;
    end else begin
      if (push_i) wptr_q <= next(wptr_q);
      if (pop_i) rptr_q <= next(rptr_q);
      if (push_i != pop_i) count_q <= push_i ? count_q + 1'b1 : count_q - 1'b1;
    end
  end

endmodule
