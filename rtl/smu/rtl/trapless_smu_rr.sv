// SPDX-License-Identifier: Apache-2.0
// Round-robin choice: picks the first requester after number `last_i`.
module trapless_smu_rr #(
  parameter int unsigned Count = 4,
  parameter int unsigned Width = Count > 1 ? $clog2(Count) : 1
) (
  input logic [Count-1:0] req_i,
  input logic [Width-1:0] last_i,
  output logic valid_o,
  output logic [Width-1:0] sel_o
);

  logic [Count-1:0] later, pool;

  always_comb begin
    for (int unsigned i = 0; i < Count; i++) later[i] = req_i[i] && Width'(i) > last_i;
    pool = later != '0 ? later : req_i;
    sel_o = '0;
    for (int unsigned i = Count; i > 0; i--) begin
      if (pool[i-1]) sel_o = Width'(i - 1);
    end
  end

  assign valid_o = req_i != '0;

endmodule
