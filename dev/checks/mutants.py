# SPDX-License-Identifier: GPL-2.0
"""`./trapless dev kernel-mutants`: checks that every rule has a test that fails without the code for the rule.

linux/checks/mutations.py says which code is removed from the kernel, and how. A kernel built here contains all mutants; it boots
once for each mutant. A mutant is caught when its test fails."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trapless.base.cache import CACHE, cached, content_key, run_tool
from trapless.base.paths import LINUX
from trapless.base.ui import UserError

from dev.checks import guest
from linux.checks.mutations import RECIPE, SERIES, Mutation, Series, TableError, apply, table


def build_kernel(series: Series, full: bool) -> Path:
    """Return the kernel that contains all mutants: the series applied, changed, and built as usual or with full.config."""
    source = Path("/usr/src/linux-source-6.12.tar.xz")
    if not source.exists():
        raise UserError(f"no kernel source at {source} (install linux-source-6.12)")
    configs = [LINUX / "configs" / name for name in (*series.configs, *(["full.config"] if full else []))]
    folder = LINUX / series.folder
    patches = [folder / name for name in (folder / "series").read_text().split()]

    def builder(out: Path) -> None:
        tree, log = out / "tree", CACHE / "logs" / "mutants.log"
        tree.mkdir()
        run_tool(["tar", "-xf", source, "-C", tree, "--strip-components=1"], log, "extracting the kernel")
        for patch in patches:
            run_tool(["patch", "-d", tree, "-p1", "-F0", "-f", "-s", "-i", patch], log, f"applying {patch.name}")
        apply(tree, series)
        # The tree is patched already, so the script must treat it as an unmodified kernel with additional options.
        run_tool([LINUX / "build", "--source", tree, "--stock", *(word for path in configs for word in ("--config", path)),
                  "--out", out / "kernel"], log, "building the kernel with the mutants", show=r"^linux: ")
        shutil.rmtree(tree)

    key = content_key(RECIPE, repr(source.stat()[6:9]), LINUX / "build", folder, LINUX / "configs",
                      LINUX / "checks" / series.table, str(full))
    return cached("mutants", key, f"building the {'full ' if full else ''}kernel with the mutants (some minutes)",
                  builder) / "kernel" / "Image"


def boot(images: dict[bool, Path], number: int, conditions: tuple, seconds: int) -> tuple[str, str]:
    """Boot a mutant. Return its test's result ("ok", "skip" or "FAIL") and the line that gives the reason."""
    full, program, test, settings, append = conditions
    if program == "attack":
        options, names = tuple(test.split()), ()
    else:
        options, names = ("-t", "30"), tuple(test.split())
    result = guest.run(guest.Boot(images[full], program, options, names, settings, append=f"mutant={number} {append}".strip(),
                                  max_seconds=seconds))
    if result.passed:
        skipped = result.lines("skip ") if test else []
        return ("skip", skipped[0]) if skipped else ("ok", "")
    said = result.lines("FAIL |attack: ") or result.lines(".*(BUG|WARNING|Kernel panic|Unable to handle)")
    return "FAIL", said[-1] if said else "the guest did not end"


def judge(images: dict[bool, Path], chosen: list[tuple[int, Mutation]], series: Series, everything: bool, jobs: int) -> int:
    """Boot all mutants, or with `everything` run all tests; print the results. Return the exit status."""
    guest.prepare()
    passed = failed = caught = 0
    bases = sorted({mutation.conditions for _, mutation in chosen})
    if everything:
        bases[:0] = [(full, series.program, "", (), "") for full in images]
    with ThreadPoolExecutor(jobs) as pool:
        whole = pool.map(lambda base: boot(images, 0, base, series.seconds), bases)
        for conditions, (verdict, why) in zip(bases, whole, strict=True):
            if verdict == "ok":
                passed += 1
                continue
            failed += 1
            print(f"FAIL the series as it is, {conditions[2] or 'all tests'}: {why}", flush=True)
        results = pool.map(lambda item: boot(images, item[0], item[1].conditions, series.seconds), chosen)
        for (number, mutation), (verdict, why) in zip(chosen, results, strict=True):
            caught += verdict == "FAIL"
            what = f"{number:3} {mutation.rule:6} {mutation.name}"
            if verdict == "FAIL":
                print(f"ok   {what}: {why}", flush=True)
            else:
                print(f"FAIL {what}: {why or mutation.test + ' passes'}", flush=True)
    print(f"{caught} of {len(chosen)} caught")
    passed, failed = passed + caught, failed + len(chosen) - caught
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run(series: str, images: dict[bool, Path | None], names: list[str], jobs: int) -> int:
    """Check the mutants whose names contain one of `names` (all if empty), on the given kernels (True: with full.config) or on
    kernels built here. Return the exit status."""
    chosen_series = SERIES[series]
    try:
        chosen = [item for item in enumerate(table(chosen_series), 1) if not names or any(name in item[1].name for name in names)]
    except TableError as error:
        raise UserError(f"{chosen_series.table}: {error}") from error
    if not chosen:
        raise UserError(f"kernel-mutants: no mutation is called {' or '.join(names)}")
    needed = sorted({mutation.full for _, mutation in chosen})
    built = {full: images[full] or build_kernel(chosen_series, full) for full in needed}
    return judge(built, chosen, chosen_series, not names, jobs)
