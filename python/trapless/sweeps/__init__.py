# SPDX-License-Identifier: Apache-2.0
"""Sweeps: run a program in the guest, or the paging simulator, with every combination of some values."""
