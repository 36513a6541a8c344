# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory traces feed the paging simulator."""
