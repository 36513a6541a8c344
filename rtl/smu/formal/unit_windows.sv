// SPDX-License-Identifier: Apache-2.0
// Windows (REQ: SMU-15): while windows are in force, every address on the bus and at a doorbell lies in a window of its kind. A
// locked window never changes, and no window changes while it may be in use.
`include "claim.svh"

module unit_windows
  import trapless_smu_pkg::*, unit_pkg::*;
(
  input logic clk_i,
  input logic rst_ni
);

  logic first = 1'b1;
  always_ff @(posedge clk_i) first <= 1'b0;

  // Values of enumerations inside the parts.
  localparam logic [2:0] RegFetch = 3'd1, RegRead = 3'd2, RegMerge = 3'd3, RegCheck = 3'd4, RegExec = 3'd5;
  localparam logic [2:0] ItemSq = 3'd0, ItemCq = 3'd1, ItemSqBell = 3'd2, ItemCqBell = 3'd3, ItemFree = 3'd4, ItemReturn = 3'd5;
  localparam logic [2:0] PollIdle = 3'd0;
  localparam logic [1:0] FetchIdle = 2'd0, RetWrite = 2'd2;

  // ---------------------------------------------------------------- the windows as they are set
  granule_t [Windows-1:0] from, to;
  logic [Windows-1:0] memory, bell;
  logic locked, in_force;

  assign from = `SMU.u_registers.u_windows.first_q;
  assign to = `SMU.u_registers.u_windows.last_q;
  assign memory = `SMU.u_registers.u_windows.memory_q;
  assign bell = `SMU.u_registers.u_windows.bell_q;
  assign locked = `SMU.u_registers.u_windows.locked_q;
  assign in_force = locked || memory != '0 || bell != '0;

  // Whether all addresses from `low` to `high`, both included, lie in one window of `among`.
  function automatic logic lies(logic [63:0] low, logic [63:0] high, granule_t [Windows-1:0] from, granule_t [Windows-1:0] to,
                                  logic [Windows-1:0] among);
    logic found;
    found = 1'b0;
    for (int unsigned w = 0; w < Windows; w++) begin
      if (among[w] && low >= {8'b0, from[w], 12'b0} && high <= {8'b0, to[w], 12'hfff}) found = 1'b1;
    end
    return found && low <= high;
  endfunction

  function automatic logic [63:0] ring_end(logic [63:0] base, logic [31:0] size);
    return base + {28'b0, size - 32'd1, 4'hf};
  endfunction

  // ---------------------------------------------------------------- locked; at rest
  logic [Windows-1:0][89:0] held, held_q;
  logic locked_q;

  always_comb begin
    for (int unsigned w = 0; w < Windows; w++) held[w] = {from[w], to[w], memory[w], bell[w]};
  end
  always_ff @(posedge clk_i) begin
    held_q <= held;
    locked_q <= locked && rst_ni;
  end

  `CLAIM_WHEN(locked_window_stays, locked_q, locked && held == held_q)

  // `used`: the descriptor's fields are used. `ringing`: its doorbell is under way, perhaps for a queue pair that was given up.
  logic [Devices-1:0] used, ringing;
  entry_t [Entries-1:0] e;
  desc_t [Devices-1:0] d;
  logic [2:0] state;
  logic rest;

  assign e = `SMU.entry;
  assign d = `SMU.desc;
  assign state = `SMU.u_registers.u_csr.state_q;

  for (genvar i = 0; i < Devices; i++) begin : g_used
    assign ringing[i] = `SMU.u_nvme.g_doorbell[i].u_doorbell.busy_q;
    assign used[i] = d[i].valid || d[i].outstanding
        || `SMU.u_nvme.g_doorbell[i].u_doorbell.tail_due_q || `SMU.u_nvme.g_doorbell[i].u_doorbell.head_due_q
        || (`SMU.u_nvme.u_submit.bell_q && `SMU.u_nvme.u_submit.bell_device_q == 3'(i))
        || ((`SMU.u_nvme.u_complete.state_q != PollIdle || `SMU.u_nvme.u_complete.ring_q) && `SMU.u_nvme.complete_device == 3'(i));
  end

  assign rest = !`SMU.enable && `SMU.live == '0 && used == '0 && ringing == '0 && `SMU.u_rings.u_free.state_q == FetchIdle
      && `SMU.u_rings.u_return.state_q != RetWrite;

  `CLAIM_WHEN(windows_change_at_rest, (`SMU.u_registers.u_windows.write_i || `SMU.u_registers.u_windows.lock_i), rest
      && !locked)
  `CLAIM_WHEN(window_write_checked, (state == RegExec && `SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.window_write
      && `SMU.u_registers.u_csr.window_ok_q), rest && !locked)

  // ---------------------------------------------------------------- entries
  logic [Entries-1:0] entries;

  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      entries[i] = !`SMU.live[i] || !in_force || (lies(64'({e[i].pte, 3'b0}), 64'({e[i].pte, 3'd7}), from, to, memory)
          && lies(64'({e[i].pmd, 3'b0}), 64'({e[i].pmd, 3'd7}), from, to, memory)
          && lies(64'({e[i].pud, 3'b0}), 64'({e[i].pud, 3'd7}), from, to, memory));
    end
  end

  `CLAIM_WHEN(request_looked_at, (`SMU.u_requests.u_front.looked_at && `SMU.enable && `SMU.entries_inside && in_force),
      lies(64'({`SMU.look_pte, 3'b0}), 64'({`SMU.look_pte, 3'd7}), from, to, memory) && lies(64'({`SMU.look_pmd, 3'b0}),
      64'({`SMU.look_pmd, 3'd7}), from, to, memory) && lies(64'({`SMU.look_pud, 3'b0}), 64'({`SMU.look_pud, 3'd7}), from, to,
      memory))
  `CLAIM(live_entries_inside, in_force && `SMU.live != '0, entries == '1)

  // ---------------------------------------------------------------- rings
  logic free_inside, ret_inside, piped;

  assign free_inside = `SMU.free_base[63:56] == '0 && lies(`SMU.free_base, ring_end(`SMU.free_base, `SMU.free_size), from, to, memory);
  assign ret_inside = `SMU.ret_base[63:56] == '0 && lies(`SMU.ret_base, ring_end(`SMU.ret_base, `SMU.ret_size), from, to, memory);

  logic [2:0] item;
  granule_t low, high;
  logic far;

  assign item = `SMU.u_registers.u_windows.item_q;
  assign low = `SMU.u_registers.u_windows.from_q;
  assign high = `SMU.u_registers.u_windows.to_q;
  assign far = `SMU.u_registers.u_windows.far_q;

  // Whether `low`, `high` and `far` in the comparator belong to the span from `base` to `over`.
  function automatic logic is_span(logic [63:0] base, logic [63:0] over, granule_t low, granule_t high, logic far);
    return far == (base[63:56] != '0 || over[63:56] != '0) && low == base[55:12] && (far || high == over[55:12]);
  endfunction

  always_comb begin
    piped = 1'b1;
    if (`SMU.u_registers.u_windows.fresh_q && item == ItemFree) begin
      piped = is_span(`SMU.free_base, ring_end(`SMU.free_base, `SMU.free_size), low, high, far);
    end
    if (`SMU.u_registers.u_windows.fresh_q && item == ItemReturn) begin
      piped = is_span(`SMU.ret_base, ring_end(`SMU.ret_base, `SMU.ret_size), low, high, far);
    end
  end

  `CLAIM(rings_looked_at, `SMU.u_registers.u_windows.fresh_q && in_force, piped && item <= ItemReturn
      && `SMU.free_base[63:56] == '0 && `SMU.ret_base[63:56] == '0)
  `CLAIM(rings_known_inside, in_force && `SMU.u_registers.u_windows.free_q, (!`SMU.u_registers.u_windows.free_q
      || free_inside) && (!`SMU.u_registers.u_windows.ret_q || ret_inside))
  `CLAIM_WHEN(rings_inside_while_enabled, in_force && (`SMU.enable || `SMU.live != '0), `SMU.free_size == '0 || free_inside)
  `CLAIM_WHEN(ring_used_inside, in_force, (`SMU.u_rings.u_free.state_q == FetchIdle || free_inside)
      && ((`SMU.u_rings.u_return.full_q && `SMU.u_rings.u_return.state_q != RetWrite) || ret_inside))

  // ---------------------------------------------------------------- descriptors
  logic [Devices-1:0] inside_all;
  logic [Devices-1:0][3:0] parts;
  logic [3:0] known;
  logic [2:0] index;
  desc_t s;
  logic looked;

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) begin
      parts[i][0] = lies(d[i].sq_base, d[i].sq_base + {41'b0, d[i].depth - 17'd1, 6'h3f}, from, to, memory);
      parts[i][1] = lies(d[i].cq_base, d[i].cq_base + {43'b0, d[i].depth - 17'd1, 4'hf}, from, to, memory);
      parts[i][2] = lies({d[i].sq_doorbell[63:2], 2'b0}, {d[i].sq_doorbell[63:2], 2'b11}, from, to, bell);
      parts[i][3] = lies({d[i].cq_doorbell[63:2], 2'b0}, {d[i].cq_doorbell[63:2], 2'b11}, from, to, bell);
      inside_all[i] = !used[i] || !in_force || parts[i] == '1;
    end
  end

  assign index = `SMU.desc_index;
  assign s = d[device_t'(index)];
  assign known = {1'b0, `SMU.u_registers.u_windows.desc_q};

  // A write to a descriptor's control register: what was compared so far, and what is being compared. The comparison counts only
  // if the bases are aligned and below 2^56, because other writes are refused anyway.
  logic control, sq_span, cq_span, sq_bell_span, cq_bell_span, sound_parts;
  assign control = `SMU.u_registers.u_csr.write_q && `SMU.u_registers.u_csr.in_desc && `SMU.desc_field == '0 && index < 3'(Devices) && in_force
      && s.sq_base[63:56] == '0 && s.cq_base[63:56] == '0 && s.sq_base[11:0] == '0 && s.cq_base[11:0] == '0;
  assign sq_span = item == ItemSq && is_span(s.sq_base, s.sq_base + {41'b0, s.depth - 17'd1, 6'h3f}, low, high, far);
  assign cq_span = item == ItemCq && is_span(s.cq_base, s.cq_base + {43'b0, s.depth - 17'd1, 4'hf}, low, high, far);
  assign sq_bell_span = item == ItemSqBell && is_span(s.sq_doorbell, s.sq_doorbell, low, high, far);
  assign cq_bell_span = item == ItemCqBell && is_span(s.cq_doorbell, s.cq_doorbell, low, high, far);
  assign sound_parts = (!known[0] || parts[device_t'(index)][0]) && (!known[1] || parts[device_t'(index)][1]);

  always_comb begin
    looked = 1'b1;
    if (control) begin
      unique case (state)
        RegRead: looked = sq_span;
        RegMerge: looked = (!known[0] || parts[device_t'(index)][0]) && cq_span;
        RegCheck: looked = sound_parts && (sq_bell_span || ((!known[2] || parts[device_t'(index)][2]) && cq_bell_span));
        RegExec: looked = sound_parts && (!known[2] || parts[device_t'(index)][2]) && cq_bell_span;
        default: ;
      endcase
    end
  end

  `CLAIM(descriptor_looked_at, control && state == RegExec, looked)
  `CLAIM(descriptor_used_inside, in_force && used != '0, inside_all == '1)

  // ---------------------------------------------------------------- the bus
  logic [Devices-1:0] bells;

  always_comb begin
    for (int unsigned i = 0; i < Devices; i++) begin
      bells[i] = !`SMU.m_db_awvalid[i] || !in_force || lies(`SMU.m_db_awaddr[i], `SMU.m_db_awaddr[i] + 64'd3, from, to, bell);
    end
  end

  `CLAIM_WHEN(reads_inside, `SMU.m_axi_arvalid && in_force, lies(`SMU.m_axi_araddr,
      `SMU.m_axi_araddr + (`SMU.m_axi_arlen == '0 ? 64'd7 : 64'd15), from, to, memory))
  `CLAIM_WHEN(writes_inside, `SMU.m_axi_awvalid && in_force, lies(`SMU.m_axi_awaddr,
      `SMU.m_axi_awaddr + (`SMU.m_axi_awlen == '0 ? 64'd7 : `SMU.m_axi_awlen == 8'd1 ? 64'd15 : 64'd63), from, to, memory))
  `CLAIM(doorbells_inside, in_force && `SMU.m_db_awvalid != '0, bells == '1)

endmodule

bind trapless_smu unit_windows u_windows_claims (.*);
