# SPDX-License-Identifier: Apache-2.0
"""Records of runs: what their numbers are, tables, plots, and parts of HTML pages."""
