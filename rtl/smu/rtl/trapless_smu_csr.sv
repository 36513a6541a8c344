// SPDX-License-Identifier: Apache-2.0
// Registers of spec/smu.rdl behind the generated AXI4-Lite front. Identity, control, fences and counters are here; the other
// registers are in the parts that they belong to. A write that sets up a ring or a queue waits until no part is in the middle
// of a step, so no part sees half a change. An access takes a few cycles: its data are gathered, merged and checked one after
// the other.
`include "trapless_smu_ff.svh"

module trapless_smu_csr
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Entries = 32,
  parameter int unsigned Harts = 4,
  parameter int unsigned Ports = 4,
  parameter int unsigned Devices = 8,
  parameter int unsigned Prefetch = 16,
  parameter int unsigned Windows = 3,
  parameter int unsigned Socket = 0,
  parameter longint unsigned TimeoutReset = 0
) (
  input logic clk_i,
  input logic rst_ni,

  // register bus
  input logic req_i,
  input logic write_i,
  input logic [11:0] addr_i,
  input logic [63:0] wdata_i,
  input logic [63:0] biten_i,
  output logic read_ack_o,
  output logic write_ack_o,
  output logic [63:0] rdata_o,

  output logic hold_o,
  input logic busy_i,

  output logic enable_o,
  output logic busy_o,
  output logic irq_o,
  output logic [63:0] timeout_o,

  // writes to other parts' registers
  output logic [63:0] wdata_o,
  output logic upper_o,
  output logic free_base_o,
  output logic free_size_o,
  output logic free_tail_o,
  output logic ret_base_o,
  output logic ret_size_o,
  output logic ret_head_o,
  output logic desc_write_o,
  output logic [2:0] desc_index_o,
  output logic [3:0] desc_field_o,
  output logic fence_o,
  output logic drain_o,
  output logic expire_o,
  output logic window_write_o,
  output logic [2:0] window_index_o,
  output logic [1:0] window_field_o,
  output logic lock_o,
  // `look_o`: a descriptor's control register is accessed. `step_o`: the step of this access.
  output logic look_o,
  output logic [1:0] step_o,
  // The test before the unit is enabled: does the fabric support its exclusive or atomic accesses (REQ: SMU-16)?
  output logic try_o,
  input logic tried_i,
  input logic try_ok_i,
  output logic port_write_o,
  output logic [4:0] port_index_o,
  output logic [2:0] port_field_o,

  // values that are read
  input logic idle_i,
  input logic no_dma_i,
  input logic no_frames_i,
  input logic [7:0] live_i,
  input logic [7:0] quarantined_i,
  input logic [63:0] free_base_i,
  input logic [31:0] free_size_i,
  input logic [31:0] free_head_i,
  input logic [31:0] free_tail_i,
  input logic [31:0] free_used_i,
  input logic [63:0] ret_base_i,
  input logic [31:0] ret_size_i,
  input logic [31:0] ret_head_i,
  input logic [31:0] ret_tail_i,
  input logic [CNT_COUNT-1:0][63:0] count_i,
  input logic [63:0] desc_rdata_i,
  input logic fence_busy_i,
  input logic drain_busy_i,
  input logic [63:0] port_rdata_i,
  input logic [63:0] window_rdata_i,
  input logic locked_i,
  // `quiet_i`: the NVMe side lets windows be set (REQ: SMU-15). `free_inside_i`, `ret_inside_i`: the ring lies in a window, or
  // needs none.
  input logic quiet_i,
  input logic free_inside_i,
  input logic ret_inside_i,

  // errors
  input logic error_i,
  input logic timed_out_i,
  input logic failed_i,
  input reason_t failed_reason_i,
  input logic status_valid_i,
  input logic [14:0] status_i
);

  typedef enum logic [2:0] { RegIdle, RegFetch, RegRead, RegMerge, RegCheck, RegExec } reg_e;

  typedef struct packed {
    logic ctrl, int_enable, int_cause, free_low, free_base, free_size, free_tail, ret_base, ret_size, ret_head, window, lock, desc, fence, expire, port;
  } select_t;

  reg_e state_q, state_d;
  select_t is_q, is_d;
  logic write_q;
  logic [8:0] word_q;  // register: byte offset over 8
  logic [63:0] data_q, biten_q, rdata_q, rdata, merged_q, others, others_q;
  logic enable_q, error_q;
  logic [63:0] timeout_q;
  logic [15:0] last_status_q;
  reason_t last_reason_q;
  logic in_desc, in_fence, in_expire, in_port, in_count, in_window, base_write, ring_write, window_write, hold, go, refused;
  logic base_ok, size_ok, hold_q, halves_q, ring_ok_q, window_ok_q;
  logic [3:0] int_enable_q, cause;
  logic [31:0] free_low_q;
  logic timed_out_q, irq_q, noticed;
  logic want_enable, enabling, rings_ok, begun_q, tried_q, try_ok_q, enable_refused;

  function automatic logic [8:0] word(int unsigned offset);
    return 9'(offset >> 3);
  endfunction

  assign in_desc = word_q >= word(DESC_BASE) && word_q < word(DESC_BASE + DESC_COUNT * DESC_STRIDE);
  assign in_fence = in_desc && desc_field_o == 4'(DESC_FENCE >> 3);
  assign in_expire = in_desc && desc_field_o == 4'(DESC_EXPIRE >> 3);
  assign in_port = word_q >= word(PORT_BASE);
  assign in_window = word_q >= word(WINDOW_BASE) && word_q < word(WINDOW_BASE + Windows * WINDOW_STRIDE)
      && window_field_o <= 2'(WINDOW_CTRL >> 3);
  assign in_count = word_q >= word(CNT_BASE) && word_q < word(CNT_BASE + CNT_COUNT * 8);
  // These bits are known long before the register is written.
  assign is_d = '{
    ctrl: word_q == word(REG_CTRL),
    int_enable: word_q == word(REG_INT_ENABLE),
    int_cause: word_q == word(REG_INT_CAUSE),
    free_low: word_q == word(REG_FREE_LOW),
    free_base: word_q == word(REG_FREE_BASE),
    free_size: word_q == word(REG_FREE_SIZE),
    free_tail: word_q == word(REG_FREE_TAIL),
    ret_base: word_q == word(REG_RET_BASE),
    ret_size: word_q == word(REG_RET_SIZE),
    ret_head: word_q == word(REG_RET_HEAD),
    window: in_window,
    lock: Windows != 0 && word_q == word(REG_WINDOW_LOCK),
    desc: in_desc && !in_fence && !in_expire,
    fence: in_fence,
    expire: in_expire,
    port: in_port
  };
  assign base_write = is_q.free_base || is_q.ret_base;
  assign ring_write = base_write || is_q.free_size || is_q.ret_size;
  assign window_write = is_q.window || is_q.lock;

  // The arrays of descriptors, ports and windows are aligned to their size, so index and field are bits of the offset.
  assign desc_index_o = word_q[6:4];
  assign desc_field_o = word_q[3:0];
  assign port_index_o = word_q[7:3];
  assign port_field_o = word_q[2:0];
  assign window_index_o = word_q[4:2];
  assign window_field_o = word_q[1:0];

  // Values of the other parts are gathered one cycle before they are read.
  always_comb begin
    others = in_desc ? desc_rdata_i : in_port ? port_rdata_i : in_window ? window_rdata_i : count_i[word_q[3:0]];
    if (in_fence) begin
      others[DESC_FENCE_FENCE_BIT] = fence_busy_i;
      others[DESC_FENCE_DRAIN_BIT] = drain_busy_i;
    end
  end

  always_comb begin
    rdata = '0;
    unique case (word_q)
      word(REG_ID): rdata = REG_ID_RESET;
      word(REG_CAP): begin
        rdata[REG_CAP_PMSHR_MSB:REG_CAP_PMSHR_LSB] = 8'(Entries);
        rdata[REG_CAP_DESCRIPTORS_MSB:REG_CAP_DESCRIPTORS_LSB] = 8'(Devices);
        rdata[REG_CAP_PREFETCH_MSB:REG_CAP_PREFETCH_LSB] = 8'(Prefetch);
        rdata[REG_CAP_HARTS_MSB:REG_CAP_HARTS_LSB] = 8'(Harts);
        rdata[REG_CAP_SOCKET_MSB:REG_CAP_SOCKET_LSB] = 3'(Socket);
        rdata[REG_CAP_PORTS_MSB:REG_CAP_PORTS_LSB] = 8'(Ports);
        rdata[REG_CAP_WINDOWS_MSB:REG_CAP_WINDOWS_LSB] = 4'(Windows);
      end
      word(REG_CTRL): rdata[REG_CTRL_ENABLE_BIT] = enable_q;
      word(REG_STATUS): begin
        rdata[REG_STATUS_ENABLED_BIT] = enable_q;
        rdata[REG_STATUS_IDLE_BIT] = idle_i;
        rdata[REG_STATUS_NO_DMA_BIT] = no_dma_i;
        rdata[REG_STATUS_ERROR_BIT] = error_q;
        rdata[REG_STATUS_NO_FRAMES_BIT] = no_frames_i;
        rdata[REG_STATUS_LIVE_MSB:REG_STATUS_LIVE_LSB] = live_i;
        rdata[REG_STATUS_QUARANTINED_MSB:REG_STATUS_QUARANTINED_LSB] = quarantined_i;
      end
      word(REG_TIMEOUT): rdata = timeout_q;
      word(REG_INT_ENABLE): rdata = 64'(int_enable_q);
      word(REG_INT_CAUSE): rdata = 64'(cause);
      word(REG_FREE_LOW): rdata = 64'(free_low_q);
      word(REG_LAST_ERROR): begin
        rdata[REG_LAST_ERROR_STATUS_MSB:REG_LAST_ERROR_STATUS_LSB] = last_status_q;
        rdata[REG_LAST_ERROR_REASON_MSB:REG_LAST_ERROR_REASON_LSB] = 8'(last_reason_q);
      end
      word(REG_FREE_BASE): rdata = free_base_i;
      word(REG_FREE_SIZE): rdata = 64'(free_size_i);
      word(REG_FREE_HEAD): rdata = 64'(free_head_i);
      word(REG_FREE_TAIL): rdata = 64'(free_tail_i);
      word(REG_FREE_USED): rdata = 64'(free_used_i);
      word(REG_RET_BASE): rdata = ret_base_i;
      word(REG_RET_SIZE): rdata = 64'(ret_size_i);
      word(REG_RET_HEAD): rdata = 64'(ret_head_i);
      word(REG_RET_TAIL): rdata = 64'(ret_tail_i);
      word(REG_WINDOW_LOCK): rdata[REG_WINDOW_LOCK_LOCKED_BIT] = locked_i;
      default: if (in_count || in_desc || in_port || in_window) rdata = others_q;
    endcase
  end

  // A write covers a 64-bit register or one half of it; any other write is ignored.
  assign go = state_q == RegExec && write_q && halves_q;
  // While this is set, a part that is not in the middle of a step begins none.
  assign hold = write_q && (is_q.desc || ring_write || window_write || enabling);
  assign hold_o = hold_q;

  // `ring_ok_q` and `window_ok_q` are one cycle old, which suffices: a unit that is disabled and idle stays so.
  assign base_ok = merged_q[3:0] == '0 && merged_q[63:56] == '0;
  assign size_ok = merged_q[63:32] == '0 && (merged_q[31:0] & (merged_q[31:0] - 32'd1)) == '0;
  assign refused = go && ((ring_write && !ring_ok_q) || (window_write && !window_ok_q));
  // Enabled only with a return ring in place, and on a fabric that passed the test. A free ring of size 0 needs no window.
  assign want_enable = biten_q[REG_CTRL_ENABLE_BIT] ? data_q[REG_CTRL_ENABLE_BIT] : enable_q;
  assign enabling = is_q.ctrl && halves_q && want_enable && !enable_q;
  assign rings_ok = (free_size_i == '0 || free_inside_i) && ret_size_i != '0 && ret_inside_i;
  assign try_o = begun_q && !tried_q;
  assign enable_refused = go && enabling && !(tried_q && try_ok_q);

  // REQ: SMU-17. A timeout in the cycle of the write to INT_CAUSE stays noted.
  always_comb begin
    cause = '0;
    cause[REG_INT_CAUSE_ERROR_BIT] = error_q;
    cause[REG_INT_CAUSE_FRAMES_LOW_BIT] = enable_q && free_tail_i - free_head_i < free_low_q;
    cause[REG_INT_CAUSE_RETURNED_BIT] = ret_tail_i != ret_head_i;
    cause[REG_INT_CAUSE_TIMEOUT_BIT] = timed_out_q;
  end
  assign noticed = go && is_q.int_cause && data_q[REG_INT_CAUSE_TIMEOUT_BIT] && biten_q[REG_INT_CAUSE_TIMEOUT_BIT];
  assign irq_o = irq_q;
  assign busy_o = state_q != RegIdle;

  assign wdata_o = merged_q;
  assign upper_o = biten_q[63];
  assign free_base_o = go && is_q.free_base && !refused;
  assign free_size_o = go && is_q.free_size && !refused;
  assign free_tail_o = go && is_q.free_tail;
  assign ret_base_o = go && is_q.ret_base && !refused;
  assign ret_size_o = go && is_q.ret_size && !refused;
  assign ret_head_o = go && is_q.ret_head;
  assign desc_write_o = go && is_q.desc;
  assign window_write_o = go && is_q.window && !refused;
  assign lock_o = go && is_q.lock && !refused && merged_q[REG_WINDOW_LOCK_LOCKED_BIT];
  // One step for each of a descriptor's four addresses.
  assign look_o = in_desc && desc_field_o == 4'(DESC_CTRL >> 3) && state_q inside {RegFetch, RegRead, RegMerge, RegCheck};
  assign step_o = 2'(state_q - RegFetch);
  assign port_write_o = go && is_q.port;
  // Only bits that this access writes count: the half of a register that is not written starts nothing.
  assign fence_o = go && is_q.fence && data_q[DESC_FENCE_FENCE_BIT] && biten_q[DESC_FENCE_FENCE_BIT];
  assign drain_o = go && is_q.fence && data_q[DESC_FENCE_DRAIN_BIT] && biten_q[DESC_FENCE_DRAIN_BIT];
  assign expire_o = go && is_q.expire;

  assign read_ack_o = state_q == RegExec && !write_q;
  assign write_ack_o = state_q == RegExec && write_q;
  assign rdata_o = rdata_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      RegIdle: if (req_i) state_d = RegFetch;
      RegFetch: state_d = RegRead;
      RegRead: state_d = write_q ? RegMerge : RegExec;
      RegMerge: state_d = RegCheck;
      RegCheck: if (!(hold && busy_i) && (!enabling || !rings_ok || tried_q)) state_d = RegExec;
      default: state_d = RegIdle;
    endcase
  end

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      state_q <= RegIdle;
      hold_q <= 1'b0;
      begun_q <= 1'b0;
      tried_q <= 1'b0;
      enable_q <= 1'b0;
      int_enable_q <= '0;
      free_low_q <= '0;
      timed_out_q <= 1'b0;
      irq_q <= 1'b0;
      error_q <= 1'b0;
      timeout_q <= TimeoutReset;
      last_status_q <= '0;
      last_reason_q <= '0;
    end else begin
      state_q <= state_d;
      hold_q <= state_q != RegIdle && hold;
      begun_q <= state_q == RegCheck && (begun_q || (enabling && rings_ok && !busy_i));
      tried_q <= state_q == RegCheck && (tried_q || tried_i);
      if (go && word_q == word(REG_TIMEOUT)) timeout_q <= merged_q;
      if (go && is_q.int_enable) int_enable_q <= merged_q[3:0];
      if (go && is_q.free_low) free_low_q <= merged_q[31:0];
      timed_out_q <= timed_out_i || (timed_out_q && !noticed);
      irq_q <= (cause & int_enable_q) != '0;
      if (go && is_q.ctrl) begin
        enable_q <= want_enable && !enable_refused;
        if (!want_enable && idle_i) error_q <= 1'b0;
      end
      if (error_i || refused || enable_refused) error_q <= 1'b1;
      if (failed_i) last_reason_q <= failed_reason_i;
      if (status_valid_i) last_status_q <= 16'(status_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == RegIdle && req_i) begin
      write_q <= write_i;
      word_q <= addr_i[11:3];
      data_q <= wdata_i;
      biten_q <= biten_i;
    end
    if (tried_i) try_ok_q <= try_ok_i;
    others_q <= others;
    is_q <= is_d;
    if (state_q == RegRead) rdata_q <= rdata;
    merged_q <= (rdata_q & ~biten_q) | (data_q & biten_q);
    halves_q <= biten_q inside {64'hffff_ffff_ffff_ffff, 64'h0000_0000_ffff_ffff, 64'hffff_ffff_0000_0000};
    ring_ok_q <= !enable_q && idle_i && (base_write ? base_ok : size_ok);
    window_ok_q <= !enable_q && idle_i && quiet_i && !locked_i;
  end

  assign enable_o = enable_q;
  assign timeout_o = timeout_q;

endmodule
