// SPDX-License-Identifier: Apache-2.0
// Replaces the divide and square root unit of CVA6's floating point unit, which the package of CVA6's sources lacks. For
// simulation only: the harness computes the result, and each operation takes a fixed time. "Round to nearest, ties away" is
// handled as "ties to even".
module div_sqrt_top_mvp #(
  // About two bits of the significand per cycle.
  parameter int unsigned SingleCycles = 14,
  parameter int unsigned DoubleCycles = 28
) (
  input  logic        Clk_CI,
  input  logic        Rst_RBI,
  input  logic        Div_start_SI,
  input  logic        Sqrt_start_SI,
  input  logic [63:0] Operand_a_DI,
  input  logic [63:0] Operand_b_DI,
  input  logic [2:0]  RM_SI,
  input  logic [5:0]  Precision_ctl_SI,
  input  logic [1:0]  Format_sel_SI,
  input  logic        Kill_SI,
  output logic [63:0] Result_DO,
  output logic [4:0]  Fflags_SO,
  output logic        Ready_SO,
  output logic        Done_SO
);
  import "DPI-C" function longint unsigned trapless_div_sqrt(
    input byte unsigned square_root, input byte unsigned double_precision, input byte unsigned rounding,
    input longint unsigned a, input longint unsigned b, output byte unsigned flags);

  logic [5:0]  wait_q;
  logic [7:0]  flags;
  logic [63:0] result_q;
  logic [4:0]  flags_q;

  always_ff @(posedge Clk_CI or negedge Rst_RBI) begin
    if (!Rst_RBI) begin
      wait_q <= '0;
    end else if (Kill_SI) begin
      wait_q <= '0;
    end else if ((Div_start_SI || Sqrt_start_SI) && Ready_SO) begin
      wait_q   <= Format_sel_SI[0] ? 6'(DoubleCycles) : 6'(SingleCycles);
      result_q <= trapless_div_sqrt({7'd0, Sqrt_start_SI}, {7'd0, Format_sel_SI[0]}, {5'd0, RM_SI}, Operand_a_DI,
                                    Operand_b_DI, flags);
      flags_q  <= flags[4:0];
    end else if (wait_q != '0) begin
      wait_q <= wait_q - 6'd1;
    end
  end

  assign Result_DO = result_q;
  assign Fflags_SO = flags_q;
  assign Done_SO   = wait_q == 6'd1;
  assign Ready_SO  = wait_q <= 6'd1;

  logic unused;
  assign unused = ^{Precision_ctl_SI, Format_sel_SI[1], flags[7:5]};
endmodule
