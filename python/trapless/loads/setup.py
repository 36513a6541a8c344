# SPDX-License-Identifier: Apache-2.0
"""How to run loads: on which machine, with which kernel, how many at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from trapless.base.ui import UserError, step
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import rootfs
from trapless.guest.job import Job

Case = TypeVar("Case")


@dataclass(frozen=True)
class Setup:
    """How to run: on which machine, with which kernel, where to write the files."""

    out: Path
    profile: str = "vc707"
    settings: tuple[str, ...] = ()
    kernel: Path | None = None
    """None: the patched kernel of this tree."""
    quick: bool = False
    """Whether loads are smaller: for checks, not for figures."""
    kinds: tuple[str, ...] = ()
    """Kinds to measure; empty: all kinds of the experiment."""
    at_once: int = field(default_factory=lambda: min(2, os.cpu_count() or 1))
    traces: Path | None = None
    """Folder of the paging simulator's traces; None: the output folder of `./trapless dev workloads`."""
    frames: int | None = None
    """The paging simulator's memory in pages of 4 KiB; None: by the paper's rule."""
    jobs: int | None = None
    """Number of runs of the paging simulator at a time; None: the number of cores."""
    order: int = 0
    """Order in which the paging simulator's programs begin; 0: as in the paper, else a random order from this seed."""
    known: dict[Hashable, Path] = field(default_factory=dict, repr=False, compare=False)
    """Results of `once`."""

    def once(self, name: Hashable, find: Callable[[], Path]) -> Path:
        """Return a kernel, an image or a program that many runs share. `find` is called once: checking for each run would take
        long."""
        if name not in self.known:
            self.known[name] = find()
        return self.known[name]

    def guest(self, data: Path | None, stock: bool = False) -> guests.Guest:
        """Return a guest with this data disk."""
        root = self.once(("root", ()), rootfs.image)
        return guests.Guest(kernel=self.kernel_of(stock), root=root, data=data, profile=self.profile, settings=self.settings,
                            max_seconds=600)

    def kernel_of(self, stock: bool = False) -> Path:
        """Return the kernel to run, or the unpatched one."""
        if stock:
            return self.built("stock kernel", lambda: build.kernel(stock=True))
        return self.kernel or self.built("kernel", build.kernel)

    def built(self, name: Hashable, find: Callable[[], Path]) -> Path:
        """Return a kernel, built once. Building may take minutes; the machine is built at the same time."""
        return self.once(name, lambda: build.beside_machine(find))

    def leaves(self, own: Iterable[str]) -> None:
        """Raise UserError if an option changes a value or setting that the experiment itself sets; `own` has these values or
        settings."""
        keys = {setting.partition("=")[0] for setting in own}
        for setting in self.settings:
            key = setting.partition("=")[0]
            if key in keys or key.partition(".")[0] in keys:
                raise UserError(f"{setting}: this experiment sets {key} itself: leave it out")

    def runner(self) -> Callable[[guests.Guest, Job, Path], guests.Outcome]:
        """Return a function that runs a job on the machine: (guest, job, folder for its files) -> outcome."""
        program = build.machine()
        return lambda guest, job, folder: guests.run_on_machine(program, guest, job, folder)

    def each(self, title: str, cases: Iterable[Case], run: Callable[[Case], dict]) -> list[dict]:
        """Run all cases, several at a time. Returns records in the order of the cases."""
        with step(f"{title} ({self.at_once} at a time)"), ThreadPoolExecutor(max_workers=self.at_once) as pool:
            return list(pool.map(run, cases))
