// SPDX-License-Identifier: Apache-2.0
// While the unit says that its clock may stop, it asks nobody, answers nobody, and keeps no command (REQ: SMU-18).
`include "claim.svh"

module unit_idle
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  logic asked_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) asked_q <= 1'b0;
    else asked_q <= `SMU.asking || !`SMU.registers_rest;
  end

  `CLAIM_WHEN(idle_is_behind_rest, `SMU.idle_o, !asked_q)
  `CLAIM_WHEN(idle_has_no_access, `SMU.idle_o, !`SMU.m_axi_arvalid && !`SMU.m_axi_awvalid && !`SMU.m_axi_wvalid
      && `SMU.m_db_awvalid == '0 && `SMU.m_db_wvalid == '0)
  `CLAIM_WHEN(idle_owes_no_answer, `SMU.idle_o, `SMU.rsp_valid_o == '0 && `SMU.live == '0)
  `CLAIM_WHEN(idle_has_no_command, `SMU.idle_o, `SMU.no_dma)

endmodule

bind trapless_smu unit_idle u_idle_claims (.*);
