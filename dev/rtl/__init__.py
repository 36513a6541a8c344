# SPDX-License-Identifier: Apache-2.0
"""The RTL beside the machine: Linux and bare-metal programs on the core, and what the machine predicts."""
