// SPDX-License-Identifier: Apache-2.0
// Registers with reset: asynchronous assertion by default, synchronous with TRAPLESS_SYNC_RESET defined.
`ifndef TRAPLESS_SMU_FF_SVH
`define TRAPLESS_SMU_FF_SVH
`ifdef TRAPLESS_SYNC_RESET
`define TRAPLESS_FF always_ff @(posedge clk_i)
`else
`define TRAPLESS_FF always_ff @(posedge clk_i or negedge rst_ni)
`endif
`endif
