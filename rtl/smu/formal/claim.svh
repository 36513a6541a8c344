// SPDX-License-Identifier: Apache-2.0
// One claim about every cycle after reset, with a case in which it says something. A proof asserts all claims; a simulation looks at them
// in each cycle and counts how often their cases came up, so that none holds only because nothing ever happens. To see a seeded bug, one
// step is taken from any state in which all claims hold, and what is left asserted is the claim that the bug must break (see `check`).
`ifndef TRAPLESS_CLAIM_SVH
`define TRAPLESS_CLAIM_SVH
`ifdef CLAIMS_SIMULATED
`define CLAIM(name, seen, holds) \
  always @(posedge clk_i) if (rst_ni) name : assert (holds) else $error("%s: claimed, and does not hold", `"name`"); \
  always @(posedge clk_i) if (rst_ni) name``_seen : cover (seen);
`define ASSUME(holds) \
  always @(posedge clk_i) if (rst_ni) assert (holds) else $error("environment: assumed, and does not hold: %s", `"holds`");
`elsif FORMAL_STEP
`define CLAIM(name, seen, holds) \
  always_comb begin \
    if (first) given_``name : assume (holds); \
    else name : assert (holds); \
  end
`else
`define CLAIM(name, seen, holds) \
  always_comb begin \
    if (rst_ni) name : assert (holds); \
  end
`endif
// A claim about a case alone.
`define CLAIM_WHEN(name, seen, holds) `CLAIM(name, seen, !(seen) || (holds))
`ifndef CLAIMS_SIMULATED
`define ASSUME(holds) always_comb assume (holds);
`endif
// The unit, of which the checkers see everything.
`define SMU trapless_smu
`endif
