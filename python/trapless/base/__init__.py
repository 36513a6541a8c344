# SPDX-License-Identifier: Apache-2.0
"""What every room needs: places, the cache, output files, signals, messages to the user."""
