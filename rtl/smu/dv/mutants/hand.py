# SPDX-License-Identifier: Apache-2.0
"""Checks whether the short suites see the mistakes of hand.toml. Each mistake is put into a copy of the RTL. Benches, claims in
simulation, the model's suite and the proofs run on the copy until one of them fails.

    rtl/run python -m rtl.smu.dv.mutants.hand [--jobs N] [--file OTHER.toml] [NAME ...]

Prints a line for each mutant and a closing line. Verdicts are kept in .trapless/rtl/hand/verdicts.json. A mutant that was caught
is run again only if its file has changed, a survivor also if the tests have changed. Fails if fewer than 97 of 100 are caught,
or if a survivor has no reason (`unseen`)."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from rtl.smu.dv import test_dv
from rtl.smu.dv.mutants import __main__ as tool
from rtl.smu.sim import build
from rtl.tools import env, sources

HERE = Path(__file__).resolve().parent
GOAL = 0.97
SOAK = {"SMU_SEED": 1, "SMU_CYCLES": 20_000}
ATOMICS = ("trapless_smu_update_atomic.sv", "trapless_smu_updaters.sv", "trapless_smu_dma_read.sv", "trapless_smu_dma_write.sv")
"""Files in which a mistake may affect only atomic accesses."""


def runs(file: str) -> Iterator[tuple[test_dv.Build, str, dict[str, int]]]:
    """The short benches for a mistake in this file, as build, module and settings. Benches that find most come first."""
    yield test_dv.SMALL, "soak", SOAK
    yield test_dv.CLAIMS, "soak", SOAK
    for module, settings in test_dv.MODULES.items():
        yield test_dv.SMALL, module, settings
    yield test_dv.SMALL, "soak", {**SOAK, "SMU_SEED": 0, **test_dv.NEAR}
    yield test_dv.SMALL, "timing", {}
    yield test_dv.WIDE, "soak", {**SOAK, "SMU_SEED": 0, **test_dv.NEAR}
    for module in ("fences", "idle", "late", "soak"):
        yield test_dv.GATED, module, SOAK
    if file in ATOMICS:
        yield test_dv.ATOMIC, "atomics", test_dv.NEAR
        yield test_dv.ATOMIC, "fabric", {}
        yield test_dv.ATOMIC, "soak", {**SOAK, "SMU_SEED": 0, **test_dv.NEAR}


def first(text: str) -> str:
    """The error message of a bench."""
    found = re.search(r"(?:AssertionError|Error): (.*)", text)
    return (found[1] if found else text.strip().splitlines()[-1])[:110]


def benches(number: int, file: str, files: list[Path]) -> str:
    """Return the bench that fails, with its message, or an empty text."""
    for kind, module, settings in runs(file):
        try:
            size = replace(kind, name=f"hand{number:03}{kind.name}", optimize="-O1")
            test_dv.bench(size, module, f"seeded-{module}", files, **settings)
        except AssertionError as error:
            return f"{kind.name} {module}: {first(str(error))}"
    return ""


def model_suite(folder: Path, files: list[Path]) -> str:
    """Return the test of the reference model's suite that fails, or an empty text."""
    build.sources = lambda: files
    (folder / "so").mkdir()
    parameters, tools = build.Parameters(**tool.PARAMETERS), (build._tool("verilator"), build._tool(*build.COMPILERS))
    build._build(parameters, False, None, *tools, folder / "so")
    found = tool.verdict(tool.suite(), folder / "so" / "smu.so", 0)
    return f"model's suite: {found}" if found else ""


def proofs(folder: Path) -> str:
    """Return the claim that no longer holds, or an empty text."""
    command = [env.RTL / "smu" / "formal" / "check", "--rtl", folder, "--jobs", "1", "--groups"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return f"proofs: {failed[0][5:100]}" if failed else ""


def judge(number: int, mutant: dict) -> str:
    """Return what catches the mutant, or an empty text if it survives."""
    place = next(path for path in sources.smu() if path.name == mutant["file"])
    text = place.read_text()
    if text.count(mutant["old"]) != 1:
        return f"error: {mutant['file']} has its text `old` {text.count(mutant['old'])} times, not once"
    with tempfile.TemporaryDirectory(prefix="trapless-mutant-") as temporary:
        folder = Path(temporary)
        shutil.copytree(sources.SMU, folder / "rtl")
        changed = folder / "rtl" / place.relative_to(sources.SMU)
        changed.write_text(text.replace(mutant["old"], mutant["new"]))
        files = [folder / "rtl" / path.relative_to(sources.SMU) for path in sources.smu()]
        try:
            return benches(number, mutant["file"], files) or model_suite(folder, files) or proofs(folder / "rtl")
        finally:
            for old in (env.BUILDS / "dv").glob(f"hand{number:03}*"):
                shutil.rmtree(old)


def key(mutant: dict) -> str:
    """Cache key of a mutant: it changes with the mutant and with its source file."""
    digest = hashlib.sha256(repr((mutant["file"], mutant["old"], mutant["new"])).encode())
    digest.update(next(path for path in sources.smu() if path.name == mutant["file"]).read_bytes())
    return digest.hexdigest()[:16]


def tests() -> str:
    """Hash of the tests: it changes when a test changes."""
    digest = hashlib.sha256()
    world = env.ROOT / "machine" / "crates" / "smu-world"
    for path in [*sources.claims(), *sorted(HERE.parent.glob("*.py")), *sorted(world.rglob("*.rs"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> int:
    """Run the mutants and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants run at a time (default: one per processor)")
    parser.add_argument("--file", type=Path, default=HERE / "hand.toml", help="file with the mutants (default: hand.toml)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only these mutants")
    options = parser.parse_args()
    mutants = tomllib.loads(options.file.read_text())
    if unknown := set(options.names) - set(mutants):
        sys.exit(f"mutants: {options.file.name} has no mutant {', '.join(sorted(unknown))}")
    os.environ.update(env.environment())
    kept = env.BUILDS / "hand" / "verdicts.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(kept.read_text()) if kept.exists() else {}
    now = tests()
    known = {place: found for place, found in known.items() if found["by"] or found["tests"] == now}
    chosen = [name for name in mutants if not options.names or name in options.names]
    tool.suite()
    with ProcessPoolExecutor(options.jobs) as pool:
        due = {pool.submit(judge, number, mutants[name]): name for number, name in enumerate(mutants)
               if name in chosen and key(mutants[name]) not in known}
        for job in as_completed(due):
            name = due[job]
            known[key(mutants[name])] = {"mutant": name, "by": job.result(), "tests": now}
            kept.write_text(json.dumps(known, indent=1) + "\n")
            print(f"{name}: {job.result() or 'SURVIVED'}", flush=True)
    verdicts = {name: known[key(mutants[name])]["by"] for name in chosen}
    lost = [name for name in chosen if not verdicts[name]]
    for name in lost:
        print(f"survived: {name}: {mutants[name].get('unseen', 'not explained')}")
    share = 1 - len(lost) / len(chosen)
    unexplained = [name for name in lost if "unseen" not in mutants[name]]
    broken = [name for name in chosen if verdicts[name].startswith("error:")]
    print(*(f"{name}: {verdicts[name]}" for name in broken), sep="\n")
    print(f"{len(chosen) - len(lost)} of {len(chosen)} caught, {100 * share:.1f} %; {len(unexplained)} survivors not explained")
    return 0 if share >= GOAL and not unexplained and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
