# SPDX-License-Identifier: Apache-2.0
"""The study of software translation caches: programs that fault, run and attributed on the machine."""
