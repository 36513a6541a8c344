# SPDX-License-Identifier: Apache-2.0
"""What a study is made of: experiments, repeated runs, comparisons with a paper, the report's pages."""
