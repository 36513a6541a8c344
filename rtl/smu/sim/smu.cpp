// SPDX-License-Identifier: Apache-2.0
// The verilated SMU behind the C interface of pins.h.
#include "pins.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "Vtrapless_smu.h"
#include "Vtrapless_smu___024root.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

constexpr int kIdBits = 8, kReasonBits = 8, kOutcomeBits = 2, kPteBits = 64, kAddrBits = 56;
constexpr int kReqBits = 3 * kAddrBits + kPteBits + kIdBits;
// Doorbell writes get the highest AXI identifier, which no part of the unit has.
constexpr uint32_t kDoorbellId = (1U << SMU_AXI_ID_WIDTH) - 1, kBytes = SMU_DATA_WIDTH / 8;
constexpr int kRspBits = kIdBits + kOutcomeBits + kReasonBits + kPteBits;

// Sets `width` bits of a wide signal, from `lsb` up.
template <std::size_t N>
void put(VlWide<N> &signal, int lsb, int width, uint64_t value) {
  for (int done = 0; done < width;) {
    const int bit = (lsb + done) % 32, n = std::min(32 - bit, width - done);
    const uint32_t mask = (n == 32 ? ~0U : (1U << n) - 1) << bit;
    auto &word = signal[(lsb + done) / 32];
    word = (word & ~mask) | (static_cast<uint32_t>(value >> done) << bit & mask);
    done += n;
  }
}

template <typename T>
std::enable_if_t<std::is_integral_v<T>> put(T &signal, int lsb, int width, uint64_t value) {
  const uint64_t mask = (width == 64 ? ~0ULL : (1ULL << width) - 1) << lsb;
  signal = static_cast<T>((signal & ~mask) | (value << lsb & mask));
}

template <typename T>
std::enable_if_t<std::is_integral_v<T>, uint64_t> get(const T &signal, int lsb, int width) {
  return static_cast<uint64_t>(signal) >> lsb & (width == 64 ? ~0ULL : (1ULL << width) - 1);
}

template <std::size_t N>
uint64_t get(const VlWide<N> &signal, int lsb, int width) {
  uint64_t value = 0;
  for (int done = 0; done < width;) {
    const int bit = (lsb + done) % 32, n = std::min(32 - bit, width - done);
    const uint64_t mask = (1ULL << n) - 1;
    value |= (signal[(lsb + done) / 32] >> bit & mask) << done;
    done += n;
  }
  return value;
}

void put_words(uint64_t &signal, const uint64_t *words) { signal = words[0]; }
void get_words(const uint64_t &signal, uint64_t *words) { words[0] = signal; }

template <std::size_t N>
void put_words(VlWide<N> &signal, const uint64_t *words) {
  for (std::size_t i = 0; i < N; i++) signal[i] = static_cast<uint32_t>(words[i / 2] >> (i % 2 * 32));
}

template <std::size_t N>
void get_words(const VlWide<N> &signal, uint64_t *words) {
  for (std::size_t i = 0; i < N / 2; i++) words[i] = signal[2 * i] | static_cast<uint64_t>(signal[2 * i + 1]) << 32;
}

struct Smu {
  // The model has one AXI4 port for the unit's AXI4 master and its doorbell ports. So one burst is sent at a time, and at most
  // one doorbell write waits for its answer.
  static constexpr int kNobody = -1, kMemory = SMU_DEVICES;
  int sender = kNobody, rung = kNobody;
  bool address_sent = false, data_sent = false;
  // Doorbell writes that were under way when a register write was done. The register write is answered after them, because
  // doorbells take no time in the reference model, and the tests that it shares with the RTL do not look at RINGING.
  uint32_t before = 0;
  bool answering = false;

  VerilatedContext context;
  std::unique_ptr<Vtrapless_smu> top;
#if VM_TRACE
  std::unique_ptr<VerilatedVcdC> trace;
#endif

  explicit Smu(const char *path) {
    // Registers without a reset start with random values, the same in each run with the same seed.
    const char *seed = std::getenv("TRAPLESS_SMU_SEED");
    context.randReset(2);
    context.randSeed(seed != nullptr ? std::max(std::atoi(seed), 1) : 1);  // with 0 Verilator would choose a seed
#if VM_TRACE
    context.traceEverOn(true);
#endif
    top = std::make_unique<Vtrapless_smu>(&context);
#if VM_TRACE
    if (path != nullptr) {
      trace = std::make_unique<VerilatedVcdC>();
      top->trace(trace.get(), 99);
      trace->open(path);
    }
#else
    (void)path;
#endif
    smu_inputs idle = {};
    set(idle);
    top->rst_ni = 1;
    settle(false);
    top->rst_ni = 0;
    for (int i = 0; i < 4; i++) clock();
    top->rst_ni = 1;
    sender = rung = kNobody;  // signals before the reset were random
    before = 0;
  }

  ~Smu() {
    Verilated::threadContextp(&context);
#if VM_TRACE
    if (trace) trace->close();
#endif
    top->final();
  }

  void settle(bool high) {
    Verilated::threadContextp(&context);  // this thread may have deleted another unit, and its context
    top->clk_i = high;
    top->eval();
#if VM_TRACE
    if (trace) trace->dump(context.time());
#endif
    context.timeInc(1);
  }

  void clock() {
    settle(false);
    settle(true);
  }

  void set(const smu_inputs &in) {
    top->req_valid_i = in.req_valid;
    top->abandon_i = in.abandon;
    for (uint32_t left = in.req_valid; left != 0; left &= left - 1) {
      const int hart = __builtin_ctz(left);
      const smu_request &req = in.req[hart];
      int lsb = hart * kReqBits;
      const auto field = [&](int width, uint64_t value) {
        put(top->req_i, lsb, width, value);
        lsb += width;
      };
      field(kIdBits, req.id);
      field(kPteBits, req.pte);
      field(kAddrBits, req.pud_addr);
      field(kAddrBits, req.pmd_addr);
      field(kAddrBits, req.pte_addr);
    }
    top->snoop_valid_i = in.snoop_valid;
    top->snoop_addr_i = in.snoop_addr;
    choose();
    const bool memory = sender == kMemory;
    const uint32_t bell = sender != kNobody && !memory ? 1U << sender : 0;
    top->m_axi_awready = in.awready && memory;
    top->m_axi_wready = in.wready && memory;
    top->m_db_awready = in.awready ? bell : 0;
    top->m_db_wready = in.wready ? bell : 0;
    const bool to_bell = in.bvalid && in.bid == kDoorbellId;
    top->m_axi_bvalid = in.bvalid && !to_bell;
    top->m_axi_bid = in.bid;
    top->m_axi_bresp = in.bresp;
    top->m_db_bvalid = to_bell ? 1U << rung : 0;
    if (to_bell) put(top->m_db_bresp, 2 * rung, 2, in.bresp);
    top->m_axi_arready = in.arready;
    top->m_axi_rvalid = in.rvalid;
    top->m_axi_rid = in.rid;
    top->m_axi_rresp = in.rresp;
    top->m_axi_rlast = in.rlast;
    if (in.rvalid) put_words(top->m_axi_rdata, in.rdata);
    top->s_axil_awvalid = in.csr_awvalid;
    top->s_axil_awaddr = in.csr_awaddr;
    top->s_axil_awprot = 0;
    top->s_axil_wvalid = in.csr_wvalid;
    top->s_axil_wdata = in.csr_wdata;
    top->s_axil_wstrb = in.csr_wstrb;
    top->s_axil_bready = in.csr_bready && before == 0;
    top->s_axil_arvalid = in.csr_arvalid;
    top->s_axil_araddr = in.csr_araddr;
    top->s_axil_arprot = 0;
    top->s_axil_rready = in.csr_rready;
  }

  // Finds out which port sends, and which doorbell writes are under way, from the unit's signals since the last clock edge.
  void choose() {
    const uint32_t shown = top->m_db_awvalid | top->m_db_wvalid;
    if (sender == kNobody) {
      if (shown != 0 && rung == kNobody) sender = __builtin_ctz(shown);
      else if (top->m_axi_awvalid || top->m_axi_wvalid) sender = kMemory;
    }
    const uint32_t under_way = shown | (rung != kNobody ? 1U << rung : 0);
    before = top->s_axil_bvalid ? (answering ? before & under_way : under_way) : 0;
    answering = top->s_axil_bvalid;
  }

  // Notes which parts of a burst were taken in this cycle.
  void take(const smu_inputs &in, const smu_outputs &out) {
    if (in.bvalid && in.bid == kDoorbellId) rung = kNobody;
    if (sender == kNobody) return;
    address_sent |= out.awvalid && in.awready;
    data_sent |= out.wvalid && in.wready && out.wlast;
    if (!address_sent || !data_sent) return;
    if (sender != kMemory) rung = sender;
    sender = kNobody;
    address_sent = data_sent = false;
  }

  void get_all(smu_outputs &out) const {
    out.req_ready = top->req_ready_o;
    out.rsp_valid = top->rsp_valid_o;
    for (uint32_t left = out.rsp_valid; left != 0; left &= left - 1) {
      const int hart = __builtin_ctz(left);
      int lsb = hart * kRspBits;
      const auto field = [&](int width) {
        const uint64_t value = get(top->rsp_o, lsb, width);
        lsb += width;
        return value;
      };
      smu_response &rsp = out.rsp[hart];
      rsp.pte = field(kPteBits);
      rsp.reason = field(kReasonBits);
      rsp.outcome = field(kOutcomeBits);
      rsp.id = field(kIdBits);
    }
    if (sender == kNobody || sender == kMemory) {
      out.awvalid = top->m_axi_awvalid;
      out.awid = top->m_axi_awid;
      out.awaddr = top->m_axi_awaddr;
      out.awlen = top->m_axi_awlen;
      out.awsize = top->m_axi_awsize;
      out.awlock = top->m_axi_awlock;
      out.wvalid = top->m_axi_wvalid;
      if (out.wvalid) get_words(top->m_axi_wdata, out.wdata);
      out.wstrb = top->m_axi_wstrb;
      out.wlast = top->m_axi_wlast;
    } else {
      out.awvalid = top->m_db_awvalid >> sender & 1;
      out.awid = kDoorbellId;
      out.awaddr = get(top->m_db_awaddr, 64 * sender, 64);
      out.awlen = out.awlock = 0;
      out.awsize = 2;
      out.wvalid = top->m_db_wvalid >> sender & 1;
      const uint64_t data = get(top->m_db_wdata, 32 * sender, 32);
      std::fill_n(out.wdata, SMU_MAX_DATA_WORDS, data << 32 | data);
      out.wstrb = 0xfULL << out.awaddr % kBytes;
      out.wlast = 1;
    }
    out.bready = 1;
    out.arvalid = top->m_axi_arvalid;
    out.arid = top->m_axi_arid;
    out.araddr = top->m_axi_araddr;
    out.arlen = top->m_axi_arlen;
    out.arsize = top->m_axi_arsize;
    out.arlock = top->m_axi_arlock;
    out.rready = top->m_axi_rready;
    out.port_busy = top->rootp->trapless_smu__DOT__u_requests__DOT__u_ports__DOT__busy_q;
    out.port_asking = top->rootp->trapless_smu__DOT__u_requests__DOT__u_ports__DOT__ask_q;
    out.csr_awready = top->s_axil_awready;
    out.csr_wready = top->s_axil_wready;
    out.csr_bvalid = top->s_axil_bvalid && before == 0;
    out.csr_bresp = top->s_axil_bresp;
    out.csr_arready = top->s_axil_arready;
    out.csr_rvalid = top->s_axil_rvalid;
    out.csr_rresp = top->s_axil_rresp;
    out.irq = top->irq_o;
    out.csr_rdata = top->s_axil_rdata;
  }
};

}  // namespace

extern "C" {

void smu_get_parameters(smu_parameters *p) {
  *p = {SMU_PMSHR, SMU_HARTS, SMU_PORTS, SMU_DEVICES, SMU_PREFETCH, SMU_UPDATERS, SMU_DATA_WIDTH, SMU_AXI_ID_WIDTH,
        SMU_POLL_INTERVAL, SMU_SOCKET};
}

void *smu_new(const char *trace) { return new Smu(trace); }

void smu_free(void *smu) { delete static_cast<Smu *>(smu); }

void smu_tick(void *smu, const smu_inputs *inputs, smu_outputs *outputs) {
  Smu &unit = *static_cast<Smu *>(smu);
  unit.set(*inputs);
  unit.settle(false);
  unit.get_all(*outputs);
  unit.take(*inputs, *outputs);
  unit.settle(true);
}

// Does what the two cycles of a read do, and restores the registers that they use, so nothing has changed at the next clock edge.
uint64_t smu_peek(void *smu, uint32_t offset) {
  Smu &unit = *static_cast<Smu *>(smu);
  auto &word = unit.top->rootp->trapless_smu__DOT__u_registers__DOT__u_csr__DOT__word_q;
  QData &others = unit.top->rootp->trapless_smu__DOT__u_registers__DOT__u_csr__DOT__others_q;
  const auto before = word;
  const QData others_before = others;
  word = offset >> 3;
  unit.top->eval();
  others = unit.top->rootp->trapless_smu__DOT__u_registers__DOT__u_csr__DOT__others;
  unit.top->eval();
  const uint64_t value = unit.top->rootp->trapless_smu__DOT__u_registers__DOT__u_csr__DOT__rdata;
  word = before;
  others = others_before;
  unit.top->eval();
  return value;
}

void smu_skip(void *smu, uint64_t cycles) {
  Smu &unit = *static_cast<Smu *>(smu);
  QData &now = unit.top->rootp->trapless_smu__DOT__u_nvme__DOT__u_complete__DOT__now_q;
  now = (now + cycles) & ((1ULL << 48) - 1);
}

}  // extern "C"
