# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a program in the guest with every combination of some values (docs/sweeps.md)."""
