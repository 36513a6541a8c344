// SPDX-License-Identifier: Apache-2.0
// Warnings of slang for rtl/smu/rtl: all are on, except for the ones below. Each has its reason.
-Weverything
-Werror

// A default beside all values of an enumeration says what follows an impossible state.
-Wno-case-redundant-default
// An output that an instance does not need is left open explicitly.
-Wno-empty-output-connection
// One package holds all constants of the specification; no design uses all of them.
-Wno-unused-package-parameter
// Concatenations and replications fill packed arrays: {Entries{StFree}}.
-Wno-packed-array-conv
// A cast to a width that depends on a parameter is useless at one value of the parameter.
-Wno-useless-cast
// The operands are an index and a parameter; both are unsigned.
-Wno-arith-op-mismatch
// A default may cover the other values of an enumeration.
-Wno-case-enum-explicit
