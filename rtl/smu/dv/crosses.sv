// SPDX-License-Identifier: Apache-2.0
// Cross coverage: which events happen in which states. This module is bound to an SMU of the size that the proofs use, because
// the checkers of the proofs know which requests wait. Verilator counts how often each cover point is met. `test_claims` judges
// the counts in the same way as those of the claims' cases.

`include "claim.svh"

// One cover point for each stage: the event happens while a PMSHR entry is in this stage. "kept": the miss is over, but its
// command is still running or its frame is not returned yet.
`define CROSS_STAGES(event, happens) \
  always @(posedge clk_i) if (rst_ni && (happens)) begin \
    event``_while_looked_up_met : cover (at[StLookup]); \
    event``_while_frame_awaited_met : cover (at[StFrame]); \
    event``_while_commanded_met : cover (at[StCommand]); \
    event``_while_at_device_met : cover (at[StDevice]); \
    event``_while_installed_met : cover (at[StInstall]); \
    event``_while_answered_met : cover (at[StAnswer]); \
    event``_while_kept_met : cover (at[StOver]); \
  end

// Whether no request, one request or several requests wait for the answer.
`define CROSS_WAITERS(outcome, why) \
  always @(posedge clk_i) if (rst_ni && `SMU.answer_valid && told.reason == reason_t'(why)) begin \
    outcome``_to_nobody_met : cover (waiting == 0); \
    outcome``_to_one_met : cover (waiting == 1); \
    outcome``_to_several_met : cover (waiting > 1); \
  end

// Which bus error the access gets, and whether a doorbell write is offered or the unit is disabled at that time.
`define CROSS_ERRORS(access, happens, resp) \
  always @(posedge clk_i) if (rst_ni && (happens)) begin \
    access``_slverr_met : cover (resp == RespSlvErr); \
    access``_decerr_met : cover (resp == RespDecErr); \
    access``_error_beside_doorbell_met : cover (resp inside {RespSlvErr, RespDecErr} && `SMU.m_db_awvalid != '0); \
    access``_error_while_disabled_met : cover (resp inside {RespSlvErr, RespDecErr} && !`SMU.enable); \
  end

// Which part of a register is written.
`define CROSS_PARTS(registers, happens) \
  always @(posedge clk_i) if (rst_ni && `SMU.u_registers.u_csr.state_q == 3'd5 && `SMU.u_registers.u_csr.write_q && (happens)) begin \
    registers``_whole_met : cover (`SMU.u_registers.u_csr.biten_q == '1); \
    registers``_low_half_met : cover (`SMU.u_registers.u_csr.biten_q == 64'h0000_0000_ffff_ffff); \
    registers``_high_half_met : cover (`SMU.u_registers.u_csr.biten_q == 64'hffff_ffff_0000_0000); \
    registers``_while_live_met : cover (`SMU.live != '0); \
  end

module crosses
  import trapless_smu_pkg::*, trapless_spec_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic [7:0] at;
  entry_t told;
  logic enabled_q;
  int waiting;

  always_comb begin
    at = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      if (`SMU.entry[i].stage != StOver || `SMU.entry[i].command || `SMU.entry[i].frame) at[`SMU.entry[i].stage] = 1'b1;
    end
  end
  assign told = `SMU.entry[`SMU.answer_slot];
  assign waiting = $countones(`SMU.u_requests.u_pmshr.waiters_q[`SMU.answer_slot]);
  always_ff @(posedge clk_i) enabled_q <= rst_ni && `SMU.enable;

  `CROSS_STAGES(fence, `SMU.fence)
  `CROSS_STAGES(drain, `SMU.drain)
  `CROSS_STAGES(release, `SMU.release_desc)
  `CROSS_STAGES(expire, `SMU.expire)
  `CROSS_STAGES(disable, enabled_q && !`SMU.enable)
  `CROSS_STAGES(abandon, (`SMU.abandon_i & `SMU.u_environment.wait_q) != '0)
  `CROSS_STAGES(join, `SMU.join_entry)
  `CROSS_STAGES(refusal, `SMU.refuse)
  `CROSS_STAGES(time_out, `SMU.timeout_valid)
  `CROSS_STAGES(queue_lost, `SMU.u_nvme.lost != '0)
  `CROSS_STAGES(full_pmshr, `SMU.full)
  `CROSS_STAGES(stray_completion, `SMU.stray)

  `CROSS_WAITERS(done, 0)
  `CROSS_WAITERS(changed, REASON_CHANGED)
  `CROSS_WAITERS(no_frame, REASON_NO_FRAME)
  `CROSS_WAITERS(device_error, REASON_DEVICE)
  `CROSS_WAITERS(bus_error, REASON_BUS)
  `CROSS_WAITERS(descriptor_gone, REASON_DESCRIPTOR)
  `CROSS_WAITERS(timed_out, REASON_TIMEOUT)

  `CROSS_ERRORS(lookup, `SMU.m_axi_rvalid && `SMU.m_axi_rid == RdLookup, `SMU.m_axi_rresp)
  `CROSS_ERRORS(free_ring, `SMU.m_axi_rvalid && `SMU.m_axi_rid == RdFree, `SMU.m_axi_rresp)
  `CROSS_ERRORS(completion_queue, `SMU.m_axi_rvalid && `SMU.m_axi_rid == RdComplete, `SMU.m_axi_rresp)
  `CROSS_ERRORS(update_read, `SMU.m_axi_rvalid && 32'(`SMU.m_axi_rid) < Updaters, `SMU.m_axi_rresp)
  `CROSS_ERRORS(update_write, `SMU.m_axi_bvalid && 32'(`SMU.m_axi_bid) < Updaters, `SMU.m_axi_bresp)
  `CROSS_ERRORS(command, `SMU.m_axi_bvalid && `SMU.m_axi_bid == WrCommand, `SMU.m_axi_bresp)
  `CROSS_ERRORS(return_ring, `SMU.m_axi_bvalid && `SMU.m_axi_bid == WrReturn, `SMU.m_axi_bresp)

  `CROSS_PARTS(descriptor_written, `SMU.u_registers.u_csr.in_desc)
  `CROSS_PARTS(port_written, `SMU.port_write)
  `CROSS_PARTS(window_written, `SMU.u_registers.u_csr.window_write)
  `CROSS_PARTS(other_written, !`SMU.u_registers.u_csr.in_desc && !`SMU.port_write && !`SMU.u_registers.u_csr.window_write)

  // How full the two rings are while a miss is under way.
  logic [1:0] free_level, ret_level;
  assign free_level = `SMU.free_head == `SMU.free_tail ? 2'd0 : `SMU.free_tail - `SMU.free_head == `SMU.free_size ? 2'd2 : 2'd1;
  assign ret_level = `SMU.ret_head == `SMU.ret_tail ? 2'd0 : `SMU.ret_tail - `SMU.ret_head == `SMU.ret_size ? 2'd2 : 2'd1;
  always @(posedge clk_i) if (rst_ni && `SMU.live != '0) begin
    free_empty_return_empty_met : cover (free_level == 2'd0 && ret_level == 2'd0);
    free_empty_return_some_met : cover (free_level == 2'd0 && ret_level == 2'd1);
    free_empty_return_full_met : cover (free_level == 2'd0 && ret_level == 2'd2);
    free_some_return_empty_met : cover (free_level == 2'd1 && ret_level == 2'd0);
    free_some_return_some_met : cover (free_level == 2'd1 && ret_level == 2'd1);
    free_some_return_full_met : cover (free_level == 2'd1 && ret_level == 2'd2);
    free_full_return_empty_met : cover (free_level == 2'd2 && ret_level == 2'd0);
    free_full_return_some_met : cover (free_level == 2'd2 && ret_level == 2'd1);
    free_full_return_full_met : cover (free_level == 2'd2 && ret_level == 2'd2);
  end

endmodule

bind trapless_smu crosses u_crosses (.*);
