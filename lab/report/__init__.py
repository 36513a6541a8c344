# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON records and HTML reports."""
