# SPDX-License-Identifier: Apache-2.0
"""A policy of the paging simulator in Python: reads the next mapped pages with the missing one, like the built-in `virt`.

    ./trapless sweep SWEEP.toml       with policy = ["virt", "python:docs/examples/pagesim-policy.py"]
"""


class Policy:
    """Docs/how-to/add-a-policy-of-yours.md lists the methods that a policy may have."""

    def __init__(self, settings):
        """Called once, before the first fault."""
        self.pages = settings["prefetch"]["pages"]

    def fault(self, core, pid, page):
        """A page of the running process is missing; its read has begun."""
        for following in range(page + 1, page + 1 + self.pages):
            core.prefetch(pid, following)
