# SPDX-License-Identifier: Apache-2.0
"""Disk images for the guest."""
