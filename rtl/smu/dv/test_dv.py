# SPDX-License-Identifier: Apache-2.0
"""Builds the SMU with Verilator in a few sizes and runs the benches: for some minutes, or with --long for an hour.

    rtl/run pytest rtl/smu/dv [--long]"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from rtl.smu.dv import coverage, gated
from rtl.tools import env, sources


@dataclass(frozen=True)
class Build:
    """A size of the SMU."""

    name: str
    parameters: dict[str, int]
    defines: dict[str, str] = field(default_factory=dict)
    optimize: str = "-O2"
    arguments: tuple[str, ...] = ()
    claims: bool = False
    """Whether the claims of rtl/smu/formal are bound to the unit."""
    gated: bool = False
    """Whether the unit is behind a clock gate."""

    @property
    def top(self) -> str:
        """The module that the benches drive."""
        return gated.TOP if self.gated else sources.TOP


SMALL = Build("small", {"PmshrEntries": 8, "Harts": 4, "Devices": 2, "PrefetchDepth": 4, "PollInterval": 4,
                        "DoorbellCycles": 512, "Windows": 4})
WIDE = Build("wide", {"PmshrEntries": 16, "Harts": 6, "Devices": 3, "PrefetchDepth": 5, "DataWidth": 512, "Updaters": 4,
                      "PollInterval": 0, "DoorbellCycles": 512, "Windows": 8, "AxiProt": 3, "StreamIdWidth": 4, "StreamId": 5},
             {"TRAPLESS_SYNC_RESET": "1"})
ATOMIC = Build("atomic", {**SMALL.parameters, "Atomics": 1})
ATOMIC_WIDE = Build("atomic-wide", {**WIDE.parameters, "Atomics": 1}, WIDE.defines)
FULL = Build("full", {"PmshrEntries": 32, "Harts": 32, "Ports": 1, "Devices": 8, "PrefetchDepth": 16, "PollInterval": 0})
# This build looks at completion queues so rarely that a wrong idle output would stop the clock in between.
GATED = replace(SMALL, name="gated", parameters={**SMALL.parameters, "PollInterval": 64}, gated=True)

# The size of the proofs. Their claims and assumptions are checked in each cycle.
CLAIMS = Build("claims", {"PmshrEntries": 4, "Harts": 2, "Ports": 1, "Devices": 2, "PrefetchDepth": 2, "Updaters": 2,
                          "AxiIdWidth": 3, "DoorbellCycles": 512, "Windows": 4, "PollInterval": 0},
               {"CLAIMS_SIMULATED": "1"}, claims=True, arguments=("--coverage-user",))

NEAR = {"SMU_NEAR": 1}
MODULES = {name: {} for name in ("rules", "errors", "late", "fences", "ports", "endpoints", "each_device", "corners",
                             "fabric", "interrupts", "idle")}
MODULES["windows"] = NEAR
"""Modules of examples, with their settings."""
SEEDED = tomllib.loads((Path(__file__).parent / "seeded.toml").read_text())


def model(build: Build, files: list[Path] | None = None) -> Path:
    """The folder with the build's simulator. Its name depends on the content of all files that the simulator is made from."""
    files = files or sources.smu()
    digest = hashlib.sha256(repr((build, env.cxx(), gated.wrapper())).encode())
    claims = sources.claims()
    for path in [*files, *(claims if build.claims else []), sources.SMU / "trapless_smu_ff.svh", env.RTL / "requirements.txt"]:
        digest.update(path.read_bytes())
    folder = env.BUILDS / "dv" / f"{build.name}-{digest.hexdigest()[:16]}"
    if not (folder / "whole").exists():
        for old in folder.parent.glob(f"{build.name}-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        if build.gated:
            (folder / "gated.sv").write_text(gated.wrapper())
            files = [*files, folder / "gated.sv"]
        os.environ["MAKEFLAGS"] = env.make_flags(build.optimize)
        get_runner("verilator").build(
            sources=[*files, *claims] if build.claims else files, includes=[sources.SMU, sources.FORMAL],
            hdl_toplevel=build.top, build_dir=folder, always=True,
            parameters=build.parameters, defines=build.defines, log_file=folder / "build.log",
            build_args=[*env.cxx_flags(), "-Wno-fatal", "--quiet", "--assert", *build.arguments],
        )
        (folder / "whole").touch()
    return folder


def bench(build: Build, module: str, run: str, files: list[Path] | None = None, **settings: int) -> Path:
    """Run one module of cocotb tests, and return the folder with its output."""
    folder = model(build, files)
    here = folder / run
    here.mkdir(exist_ok=True)
    sizes = {"SMU_PMSHR": "PmshrEntries", "SMU_DEVICES": "Devices", "SMU_HARTS": "Harts", "SMU_POLL": "PollInterval",
             "SMU_PROT": "AxiProt", "SMU_STREAM": "StreamId", "SMU_STREAM_BITS": "StreamIdWidth"}
    settings = {"SMU_DOORBELL": build.parameters.get("DoorbellCycles", 0), "SMU_ATOMICS": build.parameters.get("Atomics", 0),
                **settings}
    built = {name: build.parameters[size] for name, size in sizes.items() if size in build.parameters}
    settings = {"SMU_RUN": run, **built, **settings}
    with contextlib.suppress(SystemExit, RuntimeError):  # the log says what went wrong
        get_runner("verilator").test(
            hdl_toplevel=build.top, hdl_toplevel_lang="verilog", test_module=f"rtl.smu.dv.{module}", build_dir=folder,
            test_dir=here, log_file=here / "log", results_xml=str(here / "results.xml"),
            extra_env={"COCOTB_LOG_LEVEL": "WARNING", **{name: str(value) for name, value in settings.items()}},
        )
    tests, failed = get_results(here / "results.xml") if (here / "results.xml").exists() else (0, 0)
    log = (here / "log").read_text()
    assert tests and not failed, f"{failed} of {tests} tests failed; {here / 'log'} ends:\n" + "\n".join(log.splitlines()[-60:])
    return here


@pytest.fixture(scope="session", autouse=True)
def _fresh_coverage() -> None:
    shutil.rmtree(coverage.FOLDER, ignore_errors=True)


@pytest.mark.parametrize("module", MODULES)
def test_rules(module: str) -> None:
    """Each rule by examples."""
    bench(SMALL, module, module, **MODULES[module])


@pytest.mark.parametrize("build", [SMALL, FULL], ids=lambda build: build.name)
def test_timing(build: Build) -> None:
    """Cycles of an idle miss, and of a miss with all entries in use."""
    bench(build, "timing", f"timing-{build.name}")


def windowed(seed: int) -> dict[str, int]:
    """Settings of a random run: every other run has windows, with everything side by side in them."""
    return NEAR if seed % 2 == 0 else {}


def test_soak(long: bool) -> None:
    """Random runs of the small unit."""
    for seed in range(20 if long else 2):
        bench(SMALL, "soak", f"soak-{seed}", SMU_SEED=seed, SMU_CYCLES=100_000 if long else 20_000, **windowed(seed))


def test_soak_wide(long: bool) -> None:
    """The soak test with a wide bus, four updaters and synchronous reset."""
    for seed in range(10 if long else 1):
        bench(WIDE, "soak", f"wide-{seed}", SMU_SEED=seed, SMU_CYCLES=50_000 if long else 20_000, **windowed(seed))


CLAIMED_SEEDS = 8
"""Number of random runs with claims and crosses in the short form."""


def claimed(seeds: int) -> tuple[Counter[str], Counter[str]]:
    """Run the soak with claims and crosses bound to the unit: how often the case of each claim occurred, and each cross."""
    found: dict[str, Counter[str]] = {"seen": Counter(), "met": Counter()}
    for seed in range(seeds):
        folder = bench(CLAIMS, "soak", f"claims-{seed}", SMU_SEED=seed, SMU_CYCLES=20_000, **windowed(seed))
        text = (folder / "coverage.dat").read_text()
        for name, kind, count in re.findall(r"^C '.*\x01o\x02(\w+)_(seen|met)\x01.*' (\d+)$", text, re.MULTILINE):
            found[kind][name] += int(count)
    return found["seen"], found["met"]


def test_claims(long: bool) -> None:
    """Claims and assumptions of the proofs hold in simulation. The case of each claim occurs. A short run meets the planned share
    of crosses; a long run meets all crosses except those with a reason."""
    cases, crosses = claimed(20 if long else CLAIMED_SEEDS)
    never = sorted(name for name, count in cases.items() if not count)
    assert len(cases) > 100 and not never, f"claims whose case never occurred: {', '.join(never)}"
    share, table = coverage.cross_report(crosses)
    unmet = [name for name, count in crosses.items() if not count and name not in coverage.CROSS_HOLES]
    assert share >= coverage.CROSS_GOAL and not (long and unmet), table


@pytest.mark.parametrize(("build", "module"), [
    *((ATOMIC, name) for name in ("atomics", "errors", "fabric", "soak")), *((ATOMIC_WIDE, name) for name in ("atomics", "soak")),
], ids=lambda item: getattr(item, "name", item))
def test_atomics(build: Build, module: str, long: bool) -> None:
    """Run the benches that update page tables on units with atomic accesses in place of exclusive pairs."""
    for seed in range(10 if long and module == "soak" else 1):
        settings = {"SMU_SEED": seed, "SMU_CYCLES": 20_000, **windowed(seed)} if module == "soak" else {}
        settings |= NEAR if module == "atomics" else {}
        bench(build, module, f"{build.name}-{module}-{seed}", **settings)


@pytest.mark.parametrize("module", ["soak", "fences", "idle", "late"])
def test_gated(module: str) -> None:
    """Benches pass also if the clock stops while the unit is idle."""
    settings = {"SMU_SEED": 1, "SMU_CYCLES": 20_000} if module == "soak" else {}
    bench(GATED, module, f"gated-{module}", **settings)


def _with_bug(name: str, bug: dict) -> str:
    """The text of the source file with the seeded bug in it."""
    text = next(path for path in sources.smu() if path.name == bug["file"]).read_text()
    assert text.count(bug["old"]) == 1, f"{name}: {bug['file']} has its text `old` {text.count(bug['old'])} times, not once"
    return text.replace(bug["old"], bug["new"])


def test_seeded_bugs_have_their_places() -> None:
    """The source has the text that each seeded bug replaces. If the source changes, change the toml files, too."""
    proofs = tomllib.loads((sources.FORMAL / "proofs.toml").read_text())["seed"]
    for name, bug in [*SEEDED.items(), *((name, {**bug, "file": f"{bug['file']}.sv"}) for name, bug in proofs.items())]:
        _with_bug(name, bug)


@pytest.mark.parametrize("name", SEEDED)
def test_seeded_bugs_are_found(name: str, long: bool, tmp_path: Path) -> None:
    """The benches find each seeded bug, and name its rule."""
    if not long:
        pytest.skip("with --long")
    bug = SEEDED[name]
    (tmp_path / bug["file"]).write_text(_with_bug(name, bug))
    files = [tmp_path / path.name if path.name == bug["file"] else path for path in sources.smu()]
    kind = GATED if bug.get("gated") else CLAIMS if bug.get("claims") else SMALL
    if bug.get("atomic"):
        kind = ATOMIC_WIDE if bug.get("wide") else ATOMIC
    build = replace(kind, name="seeded", optimize="-O1")
    said = ""
    others = {"atomics": NEAR, "fabric": {}} if bug.get("atomic") else MODULES
    modules = {"soak": {"SMU_SEED": 1, "SMU_CYCLES": 10_000}, **others}
    for module in [bug["module"]] if "module" in bug else modules:
        try:
            bench(build, module, f"seeded-{module}", files, **modules[module])
        except AssertionError as error:
            said += str(error)
            if any(f"{rule}: " in said for rule in bug["rules"]):
                return
    raise AssertionError(f"found, but under another rule:\n{said}" if said else "not found")


def test_coverage() -> None:
    """The planned points of coverage were hit."""
    share, table = coverage.report()
    unexplained = [point for point in coverage.POINTS if f"   hole   {point} " in table and point not in coverage.HOLES]
    assert share >= coverage.GOAL and not unexplained, f"holes without a reason in plan.toml: {unexplained}\n{table}"
