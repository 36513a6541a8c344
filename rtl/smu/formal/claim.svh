// SPDX-License-Identifier: Apache-2.0
// One claim about every cycle after reset. A proof asserts all of them. To see a seeded bug, one step is taken from any state in which
// all claims hold, and what is left asserted is the claim that the bug must break (see `check`).
`ifndef TRAPLESS_CLAIM_SVH
`define TRAPLESS_CLAIM_SVH
`ifdef FORMAL_STEP
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
// The unit, of which the checkers see everything.
`define SMU trapless_smu
`endif
