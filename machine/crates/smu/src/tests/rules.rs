// SPDX-License-Identifier: Apache-2.0
//! One test or more for each rule of the contract.
