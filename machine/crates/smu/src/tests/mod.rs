// SPDX-License-Identifier: Apache-2.0
//! Tests of the whole model: rule by rule, and at random against a world that watches every access.

mod ports;
mod random;
mod rules;
mod sim;
mod world;
