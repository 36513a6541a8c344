# SPDX-License-Identifier: Apache-2.0
"""What every other package of the library needs: places, the cache, output files, signals, messages to the user."""
