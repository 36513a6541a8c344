# SPDX-License-Identifier: Apache-2.0
"""Guests: how they are built, their images and programs, and how they boot on the machine or on QEMU."""
