# SPDX-License-Identifier: Apache-2.0
"""Parts of a study: experiments, repeated runs, comparisons with a paper, the report's pages."""
