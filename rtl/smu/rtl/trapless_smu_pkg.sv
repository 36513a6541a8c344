// SPDX-License-Identifier: Apache-2.0
// Types of the Storage Management Unit's ports and between its parts (spec/smu.md).
package trapless_smu_pkg;

  import trapless_spec_pkg::*;

  /// Bits of a physical address (RV64 with Sv39 or Sv48).
  localparam int unsigned PAddrWidth = 56;
  /// Bits of the number that a walker gives to a wait.
  localparam int unsigned IdWidth = 8;
  /// Bits of a reason (spec/formats.toml) inside the unit.
  localparam int unsigned ReasonWidth = 4;

  typedef logic [PAddrWidth-1:0] paddr_t;
  /// Address of a page table entry, in units of 8 bytes.
  typedef logic [PAddrWidth-4:0] entry_addr_t;
  /// Number of a 4 KiB piece of the physical address space.
  typedef logic [PAddrWidth-13:0] granule_t;
  typedef logic [ReasonWidth-1:0] reason_t;
  /// The upper part of a command identifier.
  localparam int unsigned CidIndexWidth = CID_INDEX_MSB + 1;
  typedef logic [CID_GENERATION_MSB-CID_GENERATION_LSB:0] generation_t;

  /// A request (REQ: SMU-1).
  typedef struct packed {
    paddr_t pte_addr;
    paddr_t pmd_addr;
    paddr_t pud_addr;
    logic [63:0] pte;
    logic [IdWidth-1:0] id;
  } smu_req_t;

  typedef enum logic [1:0] {
    OutcomeNone = 2'd0,
    OutcomeDone = 2'd1,
    OutcomeChanged = 2'd2,
    OutcomeFailed = 2'd3
  } smu_outcome_e;

  /// An answer (REQ: SMU-6). `pte` is the entry as installed or as found; zero for a failure.
  typedef struct packed {
    logic [IdWidth-1:0] id;
    smu_outcome_e outcome;
    logic [7:0] reason;
    logic [63:0] pte;
  } smu_rsp_t;

  /// Stage of a miss: how far it has come.
  typedef enum logic [2:0] {
    StFree,  // no miss
    StLookup,  // the PTE is read again
    StFrame,  // waits for a frame
    StCommand,  // the command is written
    StDevice,  // the device works
    StInstall,  // PTE, PMD and PUD are updated
    StAnswer,  // the outcome is known
    StOver  // answered; kept by its command or its frame
  } stage_e;

  /// A PMSHR entry as the parts see it.
  typedef struct packed {
    stage_e stage;
    logic command;  // a command at the device may still write the frame
    logic frame;  // keeps a frame
    logic mapped;  // the PTE may map that frame (REQ: SMU-13)
    reason_t reason;  // outcome: 0 done, REASON_CHANGED changed, else why it failed
    entry_addr_t pte;
    entry_addr_t pmd;
    entry_addr_t pud;
    logic [63:0] value;  // the entry seen; once the outcome is known, the entry of the answer
    logic [43:0] pfn;
    logic [51:0] dma;  // in units of 4096 bytes
  } entry_t;

  /// A queue descriptor as the parts see it.
  typedef struct packed {
    logic valid;
    logic broken;
    logic outstanding;
    logic [63:0] sq_base;
    logic [63:0] cq_base;
    logic [63:0] sq_doorbell;
    logic [63:0] cq_doorbell;
    logic [16:0] depth;
    logic [31:0] nsid;
    logic [3:0] blocks;
    logic [16:0] sq_tail;
    logic [16:0] cq_head;
    logic phase;
  } desc_t;

  /// AWATOP of AXI5: the atomic accesses that the unit makes.
  typedef enum logic [5:0] {
    AtopNone = 6'b000000,
    AtopSet = 6'b010011,  // AtomicStore SET
    AtopCompare = 6'b110001  // AtomicCompare
  } axi_atop_e;

  /// A write on its way to memory: 4 to 64 bytes, held until its response.
  typedef struct packed {
    logic [63:0] addr;
    logic [2:0] size;  // log2 of bytes
    logic exclusive;
    axi_atop_e atop;
    logic [511:0] data;  // data of fewer bytes are repeated
  } dma_write_t;

  /// A read: 8 or 16 bytes.
  typedef struct packed {
    logic [63:0] addr;
    logic wide;  // 16 bytes
    logic exclusive;
  } dma_read_t;

  typedef enum logic [1:0] {
    RespOkay = 2'd0,
    RespExOkay = 2'd1,
    RespSlvErr = 2'd2,
    RespDecErr = 2'd3
  } axi_resp_e;

  function automatic smu_outcome_e outcome_of(reason_t reason);
    smu_outcome_e outcome;
    if (reason == '0) outcome = OutcomeDone;
    else if (reason == reason_t'(REASON_CHANGED)) outcome = OutcomeChanged;
    else outcome = OutcomeFailed;
    return outcome;
  endfunction

  /// REQ: ISA-6. The entry that is installed for an armed one.
  function automatic logic [63:0] installed(logic [63:0] seen, logic [43:0] pfn);
    logic [63:0] pte;
    pte = '0;
    pte[PTE_PFN_MSB:PTE_PFN_LSB] = pfn;
    pte[PTE_V_BIT] = 1'b1;
    pte[PTE_L_BIT] = 1'b1;
    pte[PTE_R_BIT] = seen[PTE_R_BIT];
    pte[PTE_W_BIT] = seen[PTE_W_BIT];
    pte[PTE_X_BIT] = seen[PTE_X_BIT];
    pte[PTE_U_BIT] = seen[PTE_U_BIT];
    pte[PTE_A_BIT] = seen[PTE_A_BIT];
    return pte;
  endfunction

  /// Result of reading a PTE back after a bus error on its write (REQ: SMU-13).
  typedef enum logic [1:0] {
    BackUnwritten,
    BackOurs,
    BackUnknown
  } back_e;

  // If the entry is still as it was seen, it was not written: nobody may arm it again before this miss is over (REQ: OS-4). A
  // valid entry with this frame was written here, whatever else has changed since. Any other value leaves it unknown. Then the
  // marks are set, so that software finds the entry if it was written, and the frame must not be used again.
  function automatic back_e read_back(logic lost, logic [63:0] found, logic [63:0] seen, logic [43:0] pfn);
    back_e back;
    if (!lost && found == seen) back = BackUnwritten;
    else if (!lost && found[PTE_V_BIT] && found[PTE_PFN_MSB:PTE_PFN_LSB] == pfn) back = BackOurs;
    else back = BackUnknown;
    return back;
  endfunction

  /// REQ: ISA-1. Whether an entry has the armed form. SOFT is not looked at.
  function automatic logic names_block(logic [63:0] pte);
    return !pte[PTE_V_BIT] && pte[PTE_L_BIT] && !pte[PTE_G_BIT] && pte[PTE_U_BIT] && !pte[PTE_D_BIT]
        && (pte[PTE_R_BIT] || pte[PTE_X_BIT]) && !(pte[PTE_W_BIT] && !pte[PTE_R_BIT])
        && pte[PTE_HIGH_MSB:PTE_HIGH_LSB] == '0;
  endfunction

endpackage
