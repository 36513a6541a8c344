# SPDX-License-Identifier: Apache-2.0
"""Commands for maintainers: tests, stated numbers, soak, attacks, selftests, speed."""
