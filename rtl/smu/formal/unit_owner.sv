// SPDX-License-Identifier: Apache-2.0
// Owners of PMSHR entries. An entry's stage says which part has it, and that part has it exactly once: all other claims rest on
// this. Also: no two live entries have the same tag (REQ: SMU-1), and the queues between the parts neither overflow nor
// underflow.
`include "claim.svh"

// Counts how often each entry's number is in a queue.
module fifo_view #(
  parameter int unsigned Width = 2,
  parameter int unsigned Depth = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic push_i,
  input logic pop_i,
  input logic [Depth-1:0][Width-1:0] mem_q,
  input logic [Width-1:0] rptr_q,
  input logic [Width-1:0] wptr_q,
  input logic [Width:0] count_q
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;
  logic [Depth-1:0][Width:0] holds;
  logic [Width-1:0] place;

  always_comb begin
    holds = '0;
    place = '0;
    for (int unsigned k = 0; k < Depth; k++) begin
      place = rptr_q + Width'(k);
      if ((Width+1)'(k) < count_q) holds[mem_q[place]] = holds[mem_q[place]] + 1'b1;
    end
  end

  `CLAIM(fifo_pointers, wptr_q < rptr_q && count_q != '0, count_q <= (Width+1)'(Depth)
      && wptr_q == rptr_q + count_q[Width-1:0])
  `CLAIM_WHEN(fifo_no_overflow, push_i, count_q < (Width+1)'(Depth))
  `CLAIM_WHEN(fifo_no_underflow, pop_i, count_q != '0)

endmodule

module unit_owner
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  stage_e [Entries-1:0] stage;
  logic [Entries-1:0] command, frame;
  logic [Entries-1:0][7:0] looked, waits, commands, installs;
  localparam logic [1:0] BellStart = 2'd1;  // of trapless_smu_submit
  logic [Entries-1:0] bell, whole, tags, looks, frames, writes, devices, installing, keeps, frees;

  assign stage = `SMU.u_requests.u_pmshr.stage_q;
  assign command = `SMU.u_requests.u_pmshr.command_q;
  assign frame = `SMU.u_requests.u_pmshr.frame_q;

  // Updaters at work on an entry; the test of the fabric does not count.
  logic [Updaters-1:0] updates;
  always_comb begin
    for (int unsigned u = 0; u < Updaters; u++) begin
      updates[u] = `SMU.u_environment.update_state[u] != 3'd0 && !(u == 0 && `SMU.u_environment.update_tries[0]);
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      looked[i] = 8'(`SMU.u_requests.u_lookup.u_ask.u_view.holds[i]) + 8'(`SMU.u_requests.u_lookup.u_wait.u_view.holds[i])
          + 8'(`SMU.u_requests.u_lookup.valid_q && `SMU.u_requests.u_lookup.slot_q == slot_t'(i))
          + 8'(`SMU.u_requests.u_lookup.told_valid_q && `SMU.u_requests.u_lookup.told_slot_q == slot_t'(i));
      waits[i] = 8'(`SMU.u_rings.u_free.u_waiters.u_view.holds[i]);
      commands[i] = 8'(`SMU.u_nvme.u_submit.u_waiters.u_view.holds[i]);
      bell[i] = `SMU.u_nvme.u_submit.bell_q == BellStart && `SMU.u_nvme.u_submit.bell_slot_q == slot_t'(i);
      installs[i] = 8'(`SMU.u_updaters.u_installs.u_view.holds[i]);
      keeps[i] = 1'b0;
      for (int unsigned u = 0; u < Updaters; u++) begin
        if (updates[u] && `SMU.update_slot[u] == slot_t'(i)) begin
          installs[i] = installs[i] + 8'd1;
        end
      end
    end
    // `keeps`: the PTE has the entry's frame, for certain.
    for (int unsigned u = 0; u < Updaters; u++) begin
      if (updates[u]) begin
        keeps[`SMU.update_slot[u]] = `SMU.u_environment.update_level[u] != 2'd0 && !`SMU.pte_valid[u]
            && !`SMU.u_environment.update_doubts[u];
      end
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      frees[i] = stage[i] != StFree || (!command[i] && !frame[i]);
      looks[i] = looked[i] == 8'(stage[i] == StLookup);
      frames[i] = waits[i] == 8'(stage[i] == StFrame);
      writes[i] = commands[i] + 8'(bell[i]) == 8'(stage[i] == StCommand);
      devices[i] = stage[i] != StDevice || (command[i] && frame[i]);
      installing[i] = installs[i] == 8'(stage[i] == StInstall);
      // Whether the entry has frame and command as its stage requires.
      whole[i] = !(stage[i] inside {StLookup, StFrame}) || (!command[i] && !frame[i]);
      if (stage[i] == StCommand) whole[i] = frame[i] && command[i] == bell[i];
      if (stage[i] == StInstall) whole[i] = !command[i] && frame[i] == !keeps[i];
      tags[i] = 1'b1;
      for (int unsigned k = 0; k < Entries; k++) begin
        if (k != i && `SMU.live[i] && `SMU.live[k] && `SMU.u_requests.u_pmshr.pte_q[i] == `SMU.u_requests.u_pmshr.pte_q[k]) tags[i] = 1'b0;
      end
    end
  end

  // What the search found in the cycle before is still true when it is used, and belongs to the source that asks.
  logic [Entries-1:0] exact;
  logic [Sources-1:0] mine, same;

  always_comb begin
    mine = '0;
    mine[`SMU.u_requests.u_front.sel_q] = `SMU.u_requests.u_front.look_q || (`SMU.u_requests.u_front.act_q && `SMU.u_requests.u_front.stayed_q);
    // A walker may take its request back in this cycle; in the cycle before, the request was there.
    for (int unsigned s = 0; s < Harts; s++) begin
      same[s] = `SMU.u_environment.valid_q[s] && `SMU.u_environment.req_q[s].pte_addr[PAddrWidth-1:3] == `SMU.u_requests.u_front.search_q;
    end
    for (int unsigned s = Harts; s < Sources; s++) begin
      same[s] = !`SMU.u_requests.u_ports.ask_q[s-Harts] || `SMU.u_requests.u_ports.pte_q[s-Harts][PAddrWidth-1:3] == `SMU.u_requests.u_front.search_q;
    end
    for (int unsigned i = 0; i < Entries; i++) begin
      exact[i] = `SMU.u_requests.u_pmshr.same_q[i] == (`SMU.u_requests.u_pmshr.pte_q[i] == `SMU.u_requests.u_front.search_q)
          && (!`SMU.u_requests.u_pmshr.free_q
            || `SMU.u_requests.u_pmshr.take_q[i] == (`SMU.u_requests.u_pmshr.free_slot_q == slot_t'(i)))
          && (!`SMU.u_requests.u_pmshr.take_q[i] || stage[i] == StFree);
    end
  end
  `CLAIM_WHEN(search_is_exact, `SMU.u_requests.u_front.act_q, exact == '1 && !`SMU.u_requests.u_front.look_q)
  `CLAIM(search_is_of_request, mine != '0, (mine & ~same) == '0)

  // REQ: SMU-1
  `CLAIM(tags_unique, $countones(`SMU.live) > 1, tags == '1)

  `CLAIM(free_is_bare, command != '0, frees == '1)
  `CLAIM(lookup_has_it_once, stage[0] == StLookup, looks == '1)
  `CLAIM(fetcher_has_it_once, stage[0] == StFrame, frames == '1)
  `CLAIM(submit_has_it_once, stage[0] == StCommand, writes == '1)
  `CLAIM(updater_has_it_once, stage[0] == StInstall, installing == '1)
  `CLAIM(device_has_command_and_frame, stage[0] == StDevice, devices == '1)
  `CLAIM(stage_tells_what_is_held, stage[0] == StInstall && keeps[0], whole == '1)
  `CLAIM(answer_has_it, `SMU.answer_valid, (!`SMU.answer_valid || stage[`SMU.answer_slot] == StAnswer)
      && `SMU.u_requests.answer_leaves == Entries'(`SMU.answer_valid) << `SMU.answer_slot)
  `CLAIM(return_has_it, !`SMU.ret_empty && `SMU.u_rings.u_return.from_slot_q, `SMU.ret_empty
      || !`SMU.u_rings.u_return.from_slot_q || (frame[`SMU.returned_slot] && !command[`SMU.returned_slot]
      && stage[`SMU.returned_slot] inside {StAnswer, StOver}))

endmodule

bind trapless_smu_fifo fifo_view #(.Width(Width), .Depth(Depth)) u_view (.*);
bind trapless_smu unit_owner u_owner (.*);
