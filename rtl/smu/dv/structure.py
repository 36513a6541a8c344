# SPDX-License-Identifier: Apache-2.0
"""Coverage of the RTL by the short benches: lines, branches and toggles of bits, counted by Verilator; the planned points and
their crosses.

    rtl/run python -m rtl.smu.dv.structure [--seeds N]

Prints a table of the files, and every line and branch that was never reached. holes.toml gives the reason of each. The exit
status is 1 if a reason is missing, or if holes.toml names a line or branch that was reached. A branch is one way of an `if`, a
`case` or a conditional expression. At the end come the signals with bits that never moved, with the reasons."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from rtl.smu.dv import coverage
from rtl.smu.dv.test_dv import ATOMIC, CLAIMED_SEEDS, MODULES, NEAR, SMALL, WIDE, Build, bench, claimed, windowed
from rtl.tools import sources

KINDS = ("line", "branch", "toggle")
HOLES = Path(__file__).with_name("holes.toml")


@dataclass(frozen=True, order=True)
class Point:
    """A place that is reached or not. `what` names the way of a branch, or the bit and direction of a toggle."""

    file: str
    line: int
    kind: str
    what: str


def points(dat: Path) -> dict[Point, int]:
    """How often each point of one run was reached, added over the instances of a module. The format is that of Verilator 5.048,
    include/verilated_cov.h: a line for each point, `C '`, pairs of key and value after \\x01 and \\x02, `' ` and the count."""
    found: dict[Point, int] = defaultdict(int)
    for text in dat.read_text(errors="replace").splitlines():
        if not text.startswith("C '"):
            continue
        body, count = text[3:].rsplit("' ", 1)
        keys = dict(part.split("\x02", 1) for part in body.split("\x01") if "\x02" in part)
        kind = keys["page"].split("/")[0].removeprefix("v_")
        name = Path(keys["f"]).name
        if kind in KINDS and name.startswith("trapless_smu"):
            found[Point(name, int(keys["l"]), kind, keys.get("o", ""))] += int(count)
    return found


def measured(seeds: int) -> dict[Point, int]:
    """Run all benches on the small unit, the benches of atomic accesses on a unit with such accesses, and random runs on the wide
    unit."""
    total: dict[Point, int] = defaultdict(int)

    def run(build: Build, module: str, name: str, **settings: int) -> None:
        build = replace(build, name=f"structure-{build.name}", arguments=("--coverage-line", "--coverage-toggle"))
        for point, count in points(bench(build, module, name, **settings) / "coverage.dat").items():
            total[point] += count

    for module, settings in MODULES.items():
        run(SMALL, module, module, **settings)
    for seed in range(seeds):
        run(SMALL, "soak", f"soak-{seed}", SMU_SEED=seed, SMU_CYCLES=20_000, **windowed(seed))
        run(WIDE, "soak", f"wide-{seed}", SMU_SEED=seed, SMU_CYCLES=20_000, **windowed(seed))
        run(ATOMIC, "soak", f"atomic-{seed}", SMU_SEED=seed, SMU_CYCLES=20_000, **windowed(seed))
    run(ATOMIC, "atomics", "atomics", **NEAR)
    run(ATOMIC, "errors", "atomic-errors")
    return total


def table(total: dict[Point, int]) -> str:
    """Share of the points of each kind that were reached, by file, in percent."""
    lines = [f"{'file':32} " + " ".join(f"{kind:>16}" for kind in KINDS)]
    for name in [*sorted({point.file for point in total}), "all"]:
        cells = []
        for kind in KINDS:
            mine = [count > 0 for point, count in total.items() if point.kind == kind and name in (point.file, "all")]
            cells.append(f"{sum(mine):6}/{len(mine):5}{100 * sum(mine) / len(mine):5.1f}" if mine else "-")
        lines.append(f"{name:32} " + " ".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def code(point: Point) -> str:
    """The source line of a point."""
    path = next(path for path in sources.smu() if path.name == point.file)
    return path.read_text().splitlines()[point.line - 1].strip()


def judged(total: dict[Point, int]) -> tuple[list[str], list[str]]:
    """Report lines about what was not reached, and the lines that make the run fail."""
    known = tomllib.loads(HOLES.read_text())["hole"]
    used, lines, wrong = set(), [], []
    for point in sorted(point for point, count in total.items() if not count and point.kind != "toggle"):
        text = code(point)
        why = None
        for number, hole in enumerate(known):
            if hole["file"] == point.file and hole["code"] in text and hole.get("way", point.what) == point.what:
                used.add(number)
                why = hole["why"]
        lines.append(f"{point.file}:{point.line}: {point.kind} {point.what}: {text}  [{why or 'not explained'}]")
        if why is None:
            wrong.append(lines[-1])
    wrong += [f"holes.toml: reached: {hole['file']}: {hole['code']}" for n, hole in enumerate(known) if n not in used]
    return lines, wrong


def still(total: dict[Point, int]) -> tuple[list[str], int]:
    """Signals with bits that never rose or never fell, with the reason in holes.toml; and how many such bits have none."""
    reasons = [(re.compile(own["signal"]), own["why"]) for own in tomllib.loads(HOLES.read_text())["still"]]
    seen: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for point, count in total.items():
        if point.kind == "toggle":
            name = re.sub(r"\[\d+\]", "", point.what.rsplit(":", 1)[0])
            seen[point.file, name][0] += not count
            seen[point.file, name][1] += 1
    lines, open_bits = [], 0
    for (file, name), (left, all_of) in sorted(seen.items()):
        if left:
            why = next((text for pattern, text in reasons if pattern.fullmatch(name)), None)
            lines.append(f"{file}: {name}: {left} of {all_of}  [{why or 'not explained'}]")
            open_bits += 0 if why else left
    return lines, open_bits


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="random runs of each size (default: 2)")
    options = parser.parse_args()
    shutil.rmtree(coverage.FOLDER, ignore_errors=True)
    total = measured(options.seeds)
    print(coverage.report()[1], coverage.cross_report(claimed(max(options.seeds, CLAIMED_SEEDS))[1])[1], sep="\n")
    print(table(total), "\n", sep="")
    lines, wrong = judged(total)
    bits, open_bits = still(total)
    print(*lines, "", *bits, "", sep="\n")
    print(*wrong, f"{len(wrong)} lines and branches to correct in holes.toml; {open_bits} still bits without a reason", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
