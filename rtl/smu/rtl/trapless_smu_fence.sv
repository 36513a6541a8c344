// SPDX-License-Identifier: Apache-2.0
// Tickets of fences, or of drains (REQ: SMU-8). One is under way at a time and remembers which entries it waits for; those taken
// meanwhile are served together by the next.
`include "trapless_smu_ff.svh"

module trapless_smu_fence #(
  parameter int unsigned Entries = 32
) (
  input logic clk_i,
  input logic rst_ni,
  input logic take_i,
  input logic [Entries-1:0] pending_i,
  output logic [63:0] issued_o,
  output logic [63:0] done_o
);

  logic active_q;
  logic [Entries-1:0] wait_q;
  logic [63:0] issued_q, done_q, ticket_q;
  logic start, over;

  assign start = !active_q && issued_q != done_q;
  assign over = active_q && (wait_q & pending_i) == '0;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      wait_q <= '0;
      issued_q <= '0;
      done_q <= '0;
      ticket_q <= '0;
    end else begin
      if (take_i) issued_q <= issued_q + 64'd1;
      if (start) begin
        active_q <= 1'b1;
        ticket_q <= issued_q;
      end else if (over) begin
        active_q <= 1'b0;
        done_q <= ticket_q;
      end
      // An entry is not pending for a cycle at least before it may be taken again, so the new miss is never waited for.
      wait_q <= start ? pending_i : wait_q & pending_i;
    end
  end

  assign issued_o = issued_q;
  assign done_o = done_q;

endmodule
