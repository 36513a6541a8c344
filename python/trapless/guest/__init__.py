# SPDX-License-Identifier: Apache-2.0
"""Guests: what they are built from, their images and programs, and a boot of one on the machine or QEMU."""
