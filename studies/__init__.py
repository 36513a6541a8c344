# SPDX-License-Identifier: Apache-2.0
"""Studies. Each paper has one folder with its experiments, the paper's values, and our results."""
