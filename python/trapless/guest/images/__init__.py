# SPDX-License-Identifier: Apache-2.0
"""Disk images of guests."""
