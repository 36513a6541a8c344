# SPDX-License-Identifier: Apache-2.0
"""The paging simulator's laboratory: traces, runs and their cache, sweeps, plots, and the paper's values."""
