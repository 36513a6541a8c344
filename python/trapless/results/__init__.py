# SPDX-License-Identifier: Apache-2.0
"""Results of runs: columns, figures, tables, plots, and parts of HTML pages."""
