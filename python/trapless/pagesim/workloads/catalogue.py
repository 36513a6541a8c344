# SPDX-License-Identifier: Apache-2.0
"""The workloads. Each replaces one program of ASPF (table I and section II-B). Their order is that of table I.

In commands, {programs} is the folder of that name, {inputs} is the folder of the workload's prepared files, and {python} is a
Python interpreter. It has the packages of requirements.txt if the workload needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Command = tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """A program, its input, and the part of its run that is recorded."""

    name: str
    paper: str
    """The paper's program that it replaces."""
    packages: tuple[str, ...]
    """Debian packages, including those that make its input."""
    command: Command
    skip: int
    """Number of accesses before the recorded part, in which the program starts and reads its input."""
    accesses: int = 500_000_000
    """Number of accesses that are recorded for the figures."""
    intensive: bool = False
    """The label for A-SPF, which knows in advance which processes are memory-intensive."""
    prepare: tuple[Command, ...] = ()
    """Commands that make {inputs} once."""
    files: tuple[str, ...] = ()
    """Files in {programs} that the commands use."""
    pypi: bool = False
    """Whether it needs the packages of requirements.txt."""
    env: dict[str, str] = field(default_factory=dict)
    """More environment variables. The user's own environment is not used."""


_GRAPH = (("cc", "-O2", "-o", "{inputs}/graph", "{programs}/graph.c"),
          ("{inputs}/graph", "make", "{inputs}/graph.bin"))

_CHAINS = (("cc", "-O2", "-o", "{inputs}/chains", "{programs}/chains.c", "-lm"),)


def _chains(number: int, program: str, paper: str, pages: int, lines: int, intensive: bool = False) -> Workload:
    """A program with the access pattern that the figures of ASPF imply (docs/decisions/103-chains.md)."""
    return Workload(f"chains-{program}", f"{paper}, by the figures", ("gcc", "libc6-dev"),
                    ("{inputs}/chains", str(pages), "3", "0.97", "0.105", str(lines), str(number)),
                    skip=1_000_000, accesses=200_000_000, intensive=intensive, prepare=_CHAINS, files=("chains.c",))


WORKLOADS = {workload.name: workload for workload in (
    Workload("pagerank", "PageRank on GraphChi", ("gcc", "libc6-dev"),
             ("{inputs}/graph", "pagerank", "{inputs}/graph.bin"),
             skip=30_000_000, intensive=True, prepare=_GRAPH, files=("graph.c",)),
    Workload("randomwalk", "random walk on GraphChi", ("gcc", "libc6-dev"),
             ("{inputs}/graph", "randomwalk", "{inputs}/graph.bin"),
             skip=30_000_000, intensive=True, prepare=_GRAPH, files=("graph.c",)),
    Workload("blender", "Blender of SPEC CPU 2017", ("blender",),
             ("blender", "--background", "--python-use-system-env", "--threads", "1", "{inputs}/scene.blend",
              "--render-output", "{inputs}/frame", "--render-frame", "1"),
             skip=4_700_000_000, files=("blender.py",),
             prepare=(("blender", "--background", "--factory-startup", "--python-exit-code", "1",
                       "--python", "{programs}/blender.py", "--", "{inputs}"),),
             env={"BLENDER_USER_CONFIG": "{inputs}", "BLENDER_SYSTEM_SCRIPTS": "{inputs}/scripts"}),
    Workload("xz", "xz of SPEC CPU 2017", ("xz-utils",),
             ("xz", "-9", "--threads=1", "--keep", "--stdout", "{inputs}/text"),
             skip=1_200_000_000, prepare=(("{python}", "{programs}/xz.py", "{inputs}/text"),), files=("xz.py",)),
    Workload("wrf", "WRF of SPEC CPU 2006", ("openfoam", "openfoam-examples"),
             ("buoyantBoussinesqPimpleFoam", "-case", "{inputs}/case"),
             skip=1_500_000_000, prepare=(("{python}", "{programs}/wrf.py", "{inputs}/case"),), files=("wrf.py",),
             env={"WM_PROJECT_DIR": "/usr/share/openfoam"}),
    Workload("tensorflow", "TensorFlow", (), ("{python}", "{programs}/tensorflow.py", "run", "{inputs}/network.tflite"),
             skip=600_000_000, prepare=(("{python}", "{programs}/tensorflow.py", "make", "{inputs}/network.tflite"),),
             files=("tensorflow.py",), pypi=True),
    Workload("deepsjeng", "DeepSjeng of SPEC CPU 2017", ("stockfish",),
             # In versions that have it, this bench uses the classical evaluation, which is like DeepSjeng's.
             ("stockfish", "bench", "64", "1", "15", "default", "depth", "classical"), skip=650_000_000),
    _chains(1, "pagerank", "PageRank", 4_000_000, lines=4, intensive=True),
    _chains(2, "randomwalk", "random walk", 3_800_000, lines=4, intensive=True),
    _chains(3, "blender", "Blender", 3_200_000, lines=7),
    _chains(4, "xz", "xz", 3_500_000, lines=7),
    _chains(5, "wrf", "WRF", 3_400_000, lines=7),
    _chains(6, "tensorflow", "TensorFlow", 3_000_000, lines=7),
    _chains(7, "deepsjeng", "DeepSjeng", 3_300_000, lines=7),
)}
