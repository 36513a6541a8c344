# SPDX-License-Identifier: Apache-2.0
"""The paging simulator: traces, runs and their cache, output, plots."""
