# SPDX-License-Identifier: Apache-2.0
"""The laboratory: builds guests, runs them on the machine, measures and reports."""
