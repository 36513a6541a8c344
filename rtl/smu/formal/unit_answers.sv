// SPDX-License-Identifier: Apache-2.0
// Every accepted request that is not abandoned is answered once, and a source without such a request gets no answer (REQ: SMU-6):
// each waiter is noted in exactly one place from acceptance to answer. Fences and drains wait for all requests accepted before
// them (REQ: SMU-8).
`include "claim.svh"

// Watches any one fence, or drain, of any descriptor, and the entries that it must wait for.
module fence_watch #(
  parameter int unsigned Entries = 4,
  parameter int unsigned Devices = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic begin_i,
  input logic [2:0] index_i,
  input logic [Entries-1:0][2:0] device_q,
  input logic [Entries-1:0] pending_i,
  input logic [Entries-1:0] wait_q,
  input logic busy_i
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

`ifdef CLAIMS_SIMULATED
  logic pick;
  always_ff @(posedge clk_i) pick <= $urandom_range(15) == 0;
`else
  (* anyseq *) logic pick;
`endif
  logic watch_q, begins, served;
  logic [2:0] index_q;
  logic [Entries-1:0] must_q, same, hit;

  assign begins = begin_i && pick && !watch_q;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      same[i] = device_q[i] == index_q;
      // The entry belongs to the descriptor whose register is read or written now.
      hit[i] = device_q[i] == index_i && 32'(index_i) < Devices;
    end
  end
  // A read of the descriptor's register would say that the fence is over.
  assign served = (wait_q & pending_i & same) == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      watch_q <= 1'b0;
      must_q <= '0;
    end else if (begins) begin
      watch_q <= 1'b1;
      must_q <= pending_i & hit;
    end else begin
      must_q <= must_q & pending_i;
    end
  end
  always_ff @(posedge clk_i) if (begins) index_q <= index_i;

  `CLAIM(fence_waits_for_all, must_q != '0, (must_q & pending_i & ~(wait_q & same)) == '0)
  // REQ: SMU-8
  `CLAIM_WHEN(fence_passes_no_miss, (watch_q && served), (must_q & pending_i) == '0)
  `CLAIM(fence_of_one, !watch_q, watch_q || must_q == '0)
  `CLAIM(fence_waits_for_its_own, busy_i, busy_i == ((wait_q & pending_i & hit) != '0))

  // A fence does not wait for later misses, nor for those of another descriptor. It drops an entry whose miss is over before the
  // entry can have another miss, and it adds only entries of its descriptor when it begins.
  logic [Entries-1:0] waited_q, over_q, began_q;
  always_ff @(posedge clk_i) begin
    waited_q <= wait_q;
    over_q <= rst_ni ? ~pending_i : '0;
    began_q <= !rst_ni ? '1 : begin_i ? hit : '0;
  end
  `CLAIM(fence_waits_for_no_later, over_q != '0 && wait_q != '0, (wait_q & over_q) == '0)
  `CLAIM(fence_begins_its_own, wait_q > waited_q, (wait_q & ~waited_q & ~began_q) == '0)

endmodule

module unit_answers
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // ---------------------------------------------------------------- who waits
  logic [Sources-1:0] waits, noted, once, answered;
  logic [Harts-1:0][IdWidth-1:0] id_q;
  logic [Harts-1:0] named;
  logic [Entries-1:0] quiet;
  logic [7:0] n;

  assign waits = {`SMU.u_requests.u_ports.busy_q & ~`SMU.u_requests.u_ports.ask_q, `SMU.u_environment.wait_q};
  assign answered = `SMU.answer;

  always_ff @(posedge clk_i) begin
    for (int unsigned h = 0; h < Harts; h++) begin
      if (`SMU.req_valid_i[h] && `SMU.req_ready_o[h]) id_q[h] <= `SMU.req_i[h].id;
    end
  end

  always_comb begin
    n = '0;
    for (int unsigned s = 0; s < Sources; s++) begin
      n = 8'(`SMU.u_requests.u_front.refused_q[s]);
      for (int unsigned i = 0; i < Entries; i++) n = n + 8'(`SMU.u_requests.u_pmshr.waiters_q[i][s]);
      once[s] = n == 8'(waits[s]);
    end
    for (int unsigned i = 0; i < Entries; i++) quiet[i] = `SMU.live[i] || `SMU.u_requests.u_pmshr.waiters_q[i] == '0;
    for (int unsigned h = 0; h < Harts; h++) begin
      named[h] = !(waits[h] || `SMU.rsp_valid_o[h]) || (waits[h] && `SMU.rsp_o[h].id == id_q[h]);
    end
  end

  `CLAIM(waits_in_one_place, waits != '0, once == '1)
  `CLAIM(waits_for_live, `SMU.live != '1, quiet == '1)
  `CLAIM(answer_to_whom_waits, answered != '0, (answered & ~waits) == '0 && named == '1)
  `CLAIM(port_asks_while_busy, `SMU.u_requests.u_ports.ask_q != '0,
      (`SMU.u_requests.u_ports.ask_q & ~`SMU.u_requests.u_ports.busy_q) == '0)
  `CLAIM_WHEN(one_is_looked_at, `SMU.u_requests.u_front.look_q, 32'(`SMU.u_requests.u_front.sel_q) < Sources)

  // ---------------------------------------------------------------- fences (REQ: SMU-8)
  // `told_q`: sources that waited for a miss at the device of the watched fence when the fence began. Each of them waits for an
  // entry that the fence waits for.
  logic [Sources-1:0] told_q, gone, watched, there;
  logic [Entries-1:0] placed;

  assign gone = answered | `SMU.u_requests.src_abandon;

  always_comb begin
    there = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      if (`SMU.live[i] && `SMU.u_requests.u_fence.u_watch.hit[i]) there = there | `SMU.u_requests.u_pmshr.waiters_q[i];
      // The device is the one in the entry's value, until the outcome replaces the value.
      placed[i] = !(`SMU.entry[i].stage inside {StLookup, StFrame, StCommand, StDevice})
          || `SMU.u_requests.u_fence.device_q[i] == `SMU.entry[i].value[trapless_spec_pkg::PTE_DEVICE_MSB:trapless_spec_pkg::PTE_DEVICE_LSB];
    end
  end

  `CLAIM(fence_knows_device, `SMU.live != '0, placed == '1)
  // Fences see all misses that are not over. Drains also see all commands that may still write.
  `CLAIM(fence_sees_all, `SMU.live != '0 && `SMU.u_status.with_command != '0, `SMU.u_requests.u_fence.live_i == `SMU.live
      && `SMU.u_requests.u_fence.pending_i == (`SMU.live | `SMU.u_status.with_command))

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) told_q <= '0;
    else told_q <= (`SMU.u_requests.u_fence.u_watch.begins ? waits & there : told_q) & ~gone;
  end

  always_comb begin
    for (int unsigned s = 0; s < Sources; s++) begin
      watched[s] = !told_q[s];
      for (int unsigned i = 0; i < Entries; i++) begin
        if (`SMU.u_requests.u_pmshr.waiters_q[i][s] && `SMU.u_requests.u_fence.u_watch.must_q[i] && `SMU.live[i]) watched[s] = 1'b1;
      end
    end
  end

  `CLAIM(fence_watches_waits, told_q != '0, watched == '1 && (told_q & ~waits) == '0
      && (told_q & `SMU.u_requests.u_front.refused_q) == '0)
  `CLAIM_WHEN(fence_passes_no_wait, (`SMU.u_requests.u_fence.u_watch.watch_q && `SMU.u_requests.u_fence.u_watch.served),
      told_q == '0)
  `CLAIM(fence_of_one_waits, !`SMU.u_requests.u_fence.u_watch.watch_q, `SMU.u_requests.u_fence.u_watch.watch_q
      || told_q == '0)

endmodule

bind trapless_smu_fence fence_watch #(.Entries(Entries), .Devices(unit_pkg::Devices)) u_watch (
  .begin_i(fence_i), .pending_i(live_i), .wait_q(fence_q), .busy_i(fence_busy_o), .*);
bind trapless_smu_fence fence_watch #(.Entries(Entries), .Devices(unit_pkg::Devices)) u_watch_drain (
  .begin_i(drain_i), .wait_q(drain_q), .busy_i(drain_busy_o), .*);
bind trapless_smu unit_answers u_answers (.*);
