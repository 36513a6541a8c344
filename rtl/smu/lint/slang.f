// SPDX-License-Identifier: Apache-2.0
// What slang looks for in rtl/smu/rtl: everything, but for these, with the reason.
-Weverything
-Werror

// A default beside all values of an enumeration says what becomes of a state that cannot be.
-Wno-case-redundant-default
// An output that this use has no need of is left open in the open.
-Wno-empty-output-connection
// One package holds all constants of the specification; no design uses each.
-Wno-unused-package-parameter
// Concatenations and replications fill packed arrays: {Entries{StFree}}.
-Wno-packed-array-conv
// A cast to a width that depends on a parameter does nothing at one of its values.
-Wno-useless-cast
// An index times a parameter: both are unsigned.
-Wno-arith-op-mismatch
// A default may stand for the rest of an enumeration.
-Wno-case-enum-explicit
