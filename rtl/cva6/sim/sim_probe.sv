// SPDX-License-Identifier: Apache-2.0
// Reports the guest's markers (spec/platform.md), each with the value of a0. A marker is `slti x0, x0, IMM` with IMM 0x7a1 to
// 0x7a5. Also reports when each of the walker's requests is accepted, and when it is answered.
module sim_probe (
  input logic        clk_i,
  input logic [1:0]  valid_i,
  input logic [31:0] instruction_i[2],
  input logic [63:0] a0_i,
  input logic        request_i,
  input logic        answer_i,
  input logic        done_i
);
  import "DPI-C" function void trapless_walker(input byte unsigned answer, input byte unsigned done);
  import "DPI-C" function void trapless_marker(input int unsigned number, input longint unsigned a0);

  function automatic logic is_marker(logic [31:0] instruction);
    return instruction[19:0] == 20'h02013 && instruction[31:20] >= 12'h7a1 && instruction[31:20] <= 12'h7a5;
  endfunction

  // One cycle later, a0 has the value that instructions which retired together with the marker have written.
  logic        seen_q = 1'b0;
  logic [11:0] number_q;
  always_ff @(posedge clk_i) begin
    seen_q <= 1'b0;
    for (int unsigned port = 0; port < 2; port++) begin
      if (valid_i[port] && is_marker(instruction_i[port])) begin
        seen_q   <= 1'b1;
        number_q <= instruction_i[port][31:20];
      end
    end
    if (request_i) trapless_walker(8'd0, 8'd0);
    if (answer_i) trapless_walker(8'd1, {7'd0, done_i});
    if (seen_q) trapless_marker({20'd0, number_q}, a0_i);
  end
endmodule
