# SPDX-License-Identifier: Apache-2.0
"""What only maintainers run: tests, stated numbers, soak, attacks, selftests, speed."""
