# SPDX-License-Identifier: Apache-2.0
"""Programs that are compiled for guests: the user's, and the project's."""
