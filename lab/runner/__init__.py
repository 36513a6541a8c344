# SPDX-License-Identifier: Apache-2.0
"""Runs guests: jobs, the machine, QEMU."""
