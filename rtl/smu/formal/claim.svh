// SPDX-License-Identifier: Apache-2.0
// A claim: `holds` is true in every cycle after reset; `seen` is a case in which the claim is tested. A proof asserts all claims.
// A simulation checks them in each cycle and counts how often each case occurs, so that no claim holds only because nothing ever
// happens. For a seeded bug, the proof takes one step from any state in which all claims hold, and asserts only the claim that
// the bug must break.
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
// A claim that is about its case only.
`define CLAIM_WHEN(name, seen, holds) `CLAIM(name, seen, !(seen) || (holds))
`ifndef CLAIMS_SIMULATED
`define ASSUME(holds) always_comb assume (holds);
`endif
// The unit. The checkers see everything in it.
`define SMU trapless_smu
`endif
