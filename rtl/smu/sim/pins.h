// SPDX-License-Identifier: Apache-2.0
// Pins of the SMU for one clock cycle: the C interface of the simulated unit. machine/crates/smu-rtl/src/pins.rs is the same in
// Rust.
#pragma once
#include <stdint.h>

enum { SMU_MAX_HARTS = 32, SMU_MAX_DATA_WORDS = 8 };

// Parameters with which the unit was built.
struct smu_parameters {
  uint32_t pmshr_entries, harts, ports, devices, prefetch, updaters, data_width, axi_id_width, poll_interval, socket;
};

struct smu_request {
  uint64_t pte_addr, pmd_addr, pud_addr, pte, id;
};

struct smu_response {
  uint64_t id, outcome, reason, pte;
};

struct smu_inputs {
  struct smu_request req[SMU_MAX_HARTS];
  uint64_t snoop_addr;
  uint64_t rdata[SMU_MAX_DATA_WORDS];
  uint64_t csr_wdata;
  uint32_t req_valid, abandon;  // a bit for each hart
  uint32_t bid, rid;
  uint32_t csr_awaddr, csr_araddr, csr_wstrb;
  uint8_t snoop_valid, awready, wready, bvalid, bresp, arready, rvalid, rresp, rlast;
  uint8_t csr_awvalid, csr_wvalid, csr_bready, csr_arvalid, csr_rready;
};

struct smu_outputs {
  struct smu_response rsp[SMU_MAX_HARTS];
  uint64_t awaddr, araddr;
  uint64_t wdata[SMU_MAX_DATA_WORDS];
  uint64_t wstrb;
  uint64_t csr_rdata;
  uint32_t req_ready, rsp_valid;  // a bit for each hart
  uint32_t awid, arid;
  uint32_t port_busy, port_asking;  // a bit for each software request port; not pins
  uint8_t awvalid, awlen, awsize, awlock, wvalid, wlast, bready, arvalid, arlen, arsize, arlock, rready;
  uint8_t csr_awready, csr_wready, csr_bvalid, csr_bresp, csr_arready, csr_rvalid, csr_rresp, irq;
};

#ifdef __cplusplus
extern "C" {
#endif

#define SMU_API __attribute__((visibility("default")))
SMU_API void smu_get_parameters(struct smu_parameters *parameters);
// Makes a unit and resets it. Its waveform is written to `trace`, unless `trace` is null or the library was built without traces.
SMU_API void *smu_new(const char *trace);
SMU_API void smu_free(void *smu);
// Runs one clock cycle: `outputs` gets what the pins show while `inputs` are applied, before the clock edge.
SMU_API void smu_tick(void *smu, const struct smu_inputs *inputs, struct smu_outputs *outputs);
// Returns the value of a register, without an access on the bus.
SMU_API uint64_t smu_peek(void *smu, uint32_t offset);
// Advances the unit's time by this number of cycles, in which nothing else happens.
SMU_API void smu_skip(void *smu, uint64_t cycles);

#ifdef __cplusplus
}
#endif
