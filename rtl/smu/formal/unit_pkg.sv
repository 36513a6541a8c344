// SPDX-License-Identifier: Apache-2.0
// Sizes in which the unit is proven (`check` elaborates it with them), and the AXI identifiers of its parts.
package unit_pkg;

`ifdef UNIT_WIDE
  localparam int unsigned Entries = 8, Harts = 1, Ports = 2, Devices = 3, Prefetch = 4, Updaters = 3, Windows = 1;
`else
  localparam int unsigned Entries = 4, Harts = 2, Ports = 1, Devices = 2, Prefetch = 2, Updaters = 2;
`ifdef CLAIMS_SIMULATED
  localparam int unsigned Windows = 4;  // as in the build CLAIMS of test_dv.py
`else
  localparam int unsigned Windows = 2;
`endif
`endif
  localparam int unsigned Sources = Harts + Ports, Readers = 3 + Updaters, Writers = 2 + Updaters;

  typedef logic [$clog2(Entries)-1:0] slot_t;
  typedef logic [$clog2(Devices)-1:0] device_t;
  typedef logic [$clog2(Sources)-1:0] source_t;

  // Updaters have the identifiers from 0 up, for reads and for writes.
  localparam logic [2:0] RdLookup = 3'(Updaters), RdFree = 3'(Updaters + 1), RdComplete = 3'(Updaters + 2);
  localparam logic [2:0] WrCommand = 3'(Updaters), WrReturn = 3'(Updaters + 1);

endpackage
