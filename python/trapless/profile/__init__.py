# SPDX-License-Identifier: Apache-2.0
"""`./trapless profile`: where the cycles of a command go."""
