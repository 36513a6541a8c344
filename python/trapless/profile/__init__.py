# SPDX-License-Identifier: Apache-2.0
"""`./trapless profile`: shows where the cycles of a command go."""
