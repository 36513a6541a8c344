// SPDX-License-Identifier: Apache-2.0
// One claim about every cycle after reset. A proof asserts all of them. To see a seeded bug, one step is taken from any state in which
// all claims hold, and what is left asserted is the claim that the bug must break (see `check`).
`ifndef TRAPLESS_CLAIM_SVH
`define TRAPLESS_CLAIM_SVH
`ifdef CLAIMS_SIMULATED
// In a simulation claims and assumptions are looked at once a cycle.
`define CLAIM(name, holds) \
  always @(posedge clk_i) if (rst_ni) name : assert (holds) else $error("%s: claimed, and does not hold", `"name`");
`define ASSUME(holds) \
  always @(posedge clk_i) if (rst_ni) assert (holds) else $error("environment: assumed, and does not hold: %s", `"holds`");
`elsif FORMAL_STEP
`define CLAIM(name, holds) \
  always_comb begin \
    if (first) given_``name : assume (holds); \
    else name : assert (holds); \
  end
`else
`define CLAIM(name, holds) \
  always_comb begin \
    if (rst_ni) name : assert (holds); \
  end
`endif
`ifndef CLAIMS_SIMULATED
`define ASSUME(holds) always_comb assume (holds);
`endif
// The unit, of which the checkers see everything.
`define SMU trapless_smu
`endif
