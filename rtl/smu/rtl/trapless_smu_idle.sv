// SPDX-License-Identifier: Apache-2.0
// Says when the clock may stop (REQ: SMU-18). `rest_i` falls as soon as work comes. But some effects of the work come a few
// cycles after `rest_i` has risen again, so rest must last for a while.
`include "trapless_smu_ff.svh"

module trapless_smu_idle #(
  parameter int unsigned Cycles = 16
) (
  input logic clk_i,
  input logic rst_ni,
  input logic rest_i,
  output logic idle_o
);

  localparam int unsigned Width = $clog2(Cycles);

  logic [Width-1:0] count_q;
  logic idle_q;

  assign idle_o = idle_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      count_q <= '0;
      idle_q <= 1'b0;
    end else begin
      if (!rest_i) count_q <= '0;
      else if (count_q != '1) count_q <= count_q + 1'b1;
      idle_q <= rest_i && count_q == '1;
    end
  end

endmodule
