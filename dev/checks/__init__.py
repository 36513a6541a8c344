# SPDX-License-Identifier: Apache-2.0
"""The kernel's guest checks. They run on the machine without a userland: with a kernel, an initial RAM disk and a disk."""
