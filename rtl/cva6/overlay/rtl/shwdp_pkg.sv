// SPDX-License-Identifier: Apache-2.0
// Signals that the page table extension adds between the parts of a core, in two bundles. Each level between the top of the
// core and the walker has one more port per bundle, and need not know what is in it.
package shwdp_pkg;
  import trapless_smu_pkg::smu_req_t;
  import trapless_smu_pkg::smu_rsp_t;

  localparam logic [11:0] CsrShwdp = 12'(trapless_spec_pkg::CSR_SHWDP);
  localparam logic [11:0] CsrShwdpserved = 12'(trapless_spec_pkg::CSR_SHWDPSERVED);
  localparam logic [11:0] CsrShwdpwait = 12'(trapless_spec_pkg::CSR_SHWDPWAIT);

  typedef struct packed {
    logic     en;            // shwdp.EN
    logic     drained;       // no store of this hart is on its way to memory
    logic     fetch_next;    // nothing but the fetch itself is in the pipeline
    logic     fetch_killed;  // nobody waits for the fetch any more
    logic     trap;          // an interrupt or a debug request would be taken
    logic     req_ready;
    logic     rsp_valid;
    smu_rsp_t rsp;
  } to_walker_t;

  typedef struct packed {
    logic     req_valid;
    smu_req_t req;
    logic     abandon;
    logic     trapped;  // the page fault raised in this cycle becomes the trap that `trap` reports
    logic     waits;    // a request is offered to the SMU, or accepted and not answered
    logic     served;   // the answer `done` came in this cycle
  } from_walker_t;

  // REQ: ISA-7
  typedef struct packed {
    logic [63:0] served;
    logic [63:0] waited;
  } counts_t;
endpackage
