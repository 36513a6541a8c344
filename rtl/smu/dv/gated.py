# SPDX-License-Identifier: Apache-2.0
"""The SMU behind a clock gate that its output `idle_o` controls, as a SoC would have it (REQ: SMU-18)."""

from __future__ import annotations

import re

from rtl.tools import sources

TOP = "trapless_smu_gated"
BODY = """
  logic idle, comes, on_q;

  // The clock runs while the unit is not idle, and while a walker or a register access may have work for it.
  assign comes = req_valid_i != '0 || abandon_i != '0 || s_axil_awvalid || s_axil_wvalid || s_axil_arvalid;
  always_latch if (!clk_i) on_q = !rst_ni || !idle || comes;

  trapless_smu #({parameters}) u_unit (
    .clk_i(clk_i && on_q),
    .idle_o(idle),
    .*
  );

  assign idle_o = idle;

endmodule
"""


def wrapper() -> str:
    """The SystemVerilog text of a module with the unit's parameters and pins."""
    text = (sources.SMU / f"{sources.TOP}.sv").read_text()
    head = text[text.index(f"module {sources.TOP}"):text.index("\n);") + len("\n);")]
    parameters = ", ".join(f".{name}({name})" for name in re.findall(r"^  parameter .*?(\w+) =", head, re.MULTILINE))
    return head.replace(f"module {sources.TOP}", f"module {TOP}", 1) + BODY.format(parameters=parameters)
