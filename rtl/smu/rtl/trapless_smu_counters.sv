// SPDX-License-Identifier: Apache-2.0
// Event counters, one for every outcome (REQ: SMU-10). Several events of one kind may fall into one cycle. They are added in the
// next cycle, so that the logic that finds them has a cycle for itself.
`include "trapless_smu_ff.svh"

module trapless_smu_counters
  import trapless_spec_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  input logic [CNT_COUNT-1:0][1:0] event_i,
  output logic [CNT_COUNT-1:0][63:0] count_o
);

  logic [CNT_COUNT-1:0][63:0] count_q;
  logic [CNT_COUNT-1:0][1:0] event_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      count_q <= '0;
      event_q <= '0;
    end else begin
      event_q <= event_i;
      for (int unsigned i = 0; i < CNT_COUNT; i++) count_q[i] <= count_q[i] + 64'(event_q[i]);
    end
  end

  assign count_o = count_q;

endmodule
