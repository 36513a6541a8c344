# SPDX-License-Identifier: Apache-2.0
"""One folder for each paper: its experiments, the paper's values, its results."""
