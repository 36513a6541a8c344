# SPDX-License-Identifier: Apache-2.0
"""The kernel's guest checks, run on the machine without a userland: a kernel, an initial RAM disk, a disk."""
