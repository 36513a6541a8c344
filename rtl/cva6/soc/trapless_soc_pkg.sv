// SPDX-License-Identifier: Apache-2.0
// Types and the address map of the SoC (spec/platform.md).
`include "axi/typedef.svh"

package trapless_soc_pkg;
  localparam int unsigned AddrWidth = 64;
  localparam int unsigned DataWidth = 64;
  // CVA6 uses the two low bits: they name the cache, and say whether the access is atomic. The SMU uses three bits.
  localparam int unsigned MasterIdWidth = 3;
`ifdef TRAPLESS_SMU
  localparam int unsigned Masters = 2;
`else
  localparam int unsigned Masters = 1;
`endif
  localparam int unsigned SlaveIdWidth = MasterIdWidth + $clog2(Masters);
  localparam int unsigned UserWidth = ariane_pkg::AXI_USER_WIDTH;

  typedef logic [AddrWidth-1:0]     addr_t;
  typedef logic [DataWidth-1:0]     data_t;
  typedef logic [DataWidth/8-1:0]   strb_t;
  typedef logic [UserWidth-1:0]     user_t;
  typedef logic [MasterIdWidth-1:0] mst_id_t;
  typedef logic [SlaveIdWidth-1:0]  slv_id_t;

  // Channels of a master, and of the multiplexer's output, which has the master's number in the identifier.
  `AXI_TYPEDEF_ALL(mst, addr_t, mst_id_t, data_t, strb_t, user_t)
  `AXI_TYPEDEF_ALL(slv, addr_t, slv_id_t, data_t, strb_t, user_t)
  `AXI_LITE_TYPEDEF_ALL(lite, addr_t, data_t, strb_t)

  localparam addr_t RamBase = 64'h8000_0000;
  localparam addr_t RamLength = 64'h4000_0000;
  localparam addr_t SmuBase = 64'h1100_0000;
  localparam addr_t SmuLength = 64'h1_0000;

  // The slave at an address.
  typedef enum logic [1:0] {TargetDevices = 2'd0, TargetMemory = 2'd1, TargetSmu = 2'd2} target_e;

  function automatic target_e target(addr_t address);
    if (address >= RamBase) return TargetMemory;
`ifdef TRAPLESS_SMU
    if (address >= SmuBase && address < SmuBase + SmuLength) return TargetSmu;
`endif
    return TargetDevices;
  endfunction

  // mtime counts at 10 MHz with a clock of 100 MHz, as in the profile vc707.
  localparam int unsigned CyclesPerTick = 10;

  // All addresses below RAM are devices: no speculative reads, no merged writes, no caching, no instructions.
  localparam ariane_pkg::ariane_cfg_t CoreConfig = '{
    RASDepth: 2,
    BTBEntries: 32,
    BHTEntries: 128,
    NrNonIdempotentRules: 1,
    NonIdempotentAddrBase: {64'h0},
    NonIdempotentLength: {RamBase},
    NrExecuteRegionRules: 1,
    ExecuteRegionAddrBase: {RamBase},
    ExecuteRegionLength: {RamLength},
    NrCachedRegionRules: 1,
    CachedRegionAddrBase: {RamBase},
    CachedRegionLength: {RamLength},
    AxiCompliant: 1'b1,
    SwapEndianess: 1'b0,
    DmBaseAddress: 64'h0,
    NrPMPEntries: 4
  };
endpackage
