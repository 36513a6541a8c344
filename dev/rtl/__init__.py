# SPDX-License-Identifier: Apache-2.0
"""The RTL and the machine: Linux and bare-metal programs on the core in RTL, and the machine's predictions for them."""
