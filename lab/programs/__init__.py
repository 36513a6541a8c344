# SPDX-License-Identifier: Apache-2.0
"""Programs for the guest that are compiled on the way: the laboratory's own, and the user's."""
