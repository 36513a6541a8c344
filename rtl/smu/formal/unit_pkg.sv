// SPDX-License-Identifier: Apache-2.0
// The size in which the unit is proven (`check` elaborates it so), and the AXI identifiers of its parts.
package unit_pkg;

  localparam int unsigned Entries = 4, Harts = 2, Ports = 1, Devices = 2, Prefetch = 2, Updaters = 2, Windows = 2;
  localparam int unsigned Sources = Harts + Ports, Readers = 3 + Updaters, Writers = 2 + Updaters;

  // Updaters are 0 and 1 in both halves.
  localparam logic [2:0] RdLookup = 3'd2, RdFree = 3'd3, RdComplete = 3'd4;
  localparam logic [2:0] WrCommand = 3'd2, WrReturn = 3'd3;

endpackage
