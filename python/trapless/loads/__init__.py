# SPDX-License-Identifier: Apache-2.0
"""Loads that experiments and sweeps know by name: fio, YCSB and db_bench."""
