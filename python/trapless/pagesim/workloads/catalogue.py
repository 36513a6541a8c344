# SPDX-License-Identifier: Apache-2.0
"""The workloads: each stands for one of the programs of ASPF (table I and section II-B), in the order of that table.

In commands, {programs} is the folder of that name, {inputs} the workload's prepared files, {python} a Python: with the packages
of requirements.txt for a workload that needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Command = tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """A program with its input, and which part of its run is recorded."""

    name: str
    paper: str
    """The program of the paper that it stands for."""
    packages: tuple[str, ...]
    """Debian packages, those that its input is made with included."""
    command: Command
    skip: int
    """Accesses before the part that counts: the start, and taking in the input."""
    intensive: bool = False
    """Label of the paper's A-SPF, which knows in advance which processes are memory-intensive."""
    prepare: tuple[Command, ...] = ()
    """Makes {inputs}, once."""
    files: tuple[str, ...] = ()
    """What of {programs} the commands use."""
    pypi: bool = False
    """Needs requirements.txt."""
    env: dict[str, str] = field(default_factory=dict)
    """More variables of the environment. None comes from the user's environment."""


_GRAPH = (("cc", "-O2", "-o", "{inputs}/graph", "{programs}/graph.c"),
          ("{inputs}/graph", "make", "{inputs}/graph.bin"))

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
             # Of this bench, versions that have it use the classical evaluation, which is DeepSjeng's kind.
             ("stockfish", "bench", "64", "1", "15", "default", "depth", "classical"), skip=650_000_000),
)}
