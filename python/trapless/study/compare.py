# SPDX-License-Identifier: Apache-2.0
"""`./trapless compare A B`: compares two results of one experiment, for instance of two commits or two kernels. Says what changed
from A to B, and whether the change is larger than the differences between seeds.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from trapless.base.outputs import write_whole
from trapless.base.ui import UserError, say
from trapless.results import columns
from trapless.results.table import number, print_whole
from trapless.study import repeated

RUNS, WHOLE, ROWS = "runs.jsonl", "experiment.json", "results.json"
OF_THE_HOST = ("host_seconds", "mips")
"""Figures that depend on the speed of the host."""
SAME, UNKNOWN, NONE = "same", "no interval", "no difference"
"""Verdicts: no difference at all; too few runs to tell; the interval contains 0. Other verdicts name a direction."""
Names = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Result:
    """The results of one measurement of an experiment."""

    path: Path
    experiment: str
    form: str
    git: tuple[str, ...]
    """Versions of the project that made its runs."""
    rows: dict[Names, dict[int | None, dict]]
    """Records of runs by seed, by the names of their row."""
    main: tuple[str, ...]
    """Keys of its tables' columns; empty if only the runs are known."""


def read(path: Path) -> Result:
    """Read the result in a folder. `path` is the folder or one of its files. Only the file of runs must exist."""
    runs_path = path / RUNS if path.is_dir() else path.with_name(RUNS) if path.name in (WHOLE, ROWS) else path
    try:
        lines = runs_path.read_text().splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"{runs_path}: {getattr(error, 'strerror', None) or error}") from None
    rows: dict[Names, dict[int | None, dict]] = {}
    runs = [_run(line, f"{runs_path}:{at}") for at, line in enumerate(lines, 1)]
    for at, run in enumerate(runs, 1):
        same = rows.setdefault(tuple(run["names"].items()), {})
        if run["seed"] in same:
            raise UserError(f"{runs_path}:{at}: a second run with the same names and seed; measure the experiment again with "
                            "this version")
        same[run["seed"]] = run
    wholes = {(run["experiment"], run["form"]) for run in runs}
    if len(wholes) != 1:
        raise UserError(f"{runs_path}: " + ("runs of several experiments" if wholes else "no runs"))
    ((experiment, form),) = wholes
    return Result(path, experiment, form, tuple(sorted({run["git"] or "-" for run in runs})), rows, _main(runs_path))


def _run(line: str, place: str) -> dict:
    try:
        run = json.loads(line)
        values = [figure["value"] for figure in run["figures"].values() if figure["unit"] and figure.keys() >= {"direction"}]
        if len(values) < len(run["figures"]) or not all(map(repeated.is_number, values)) or not run["names"].items():
            raise ValueError
        # These values identify rows and results, so they must be hashable.
        hash((*run["names"].items(), run["experiment"], run["form"], run["seed"]))
        if not isinstance(run["configuration"], dict) or not isinstance(run["git"], str | None):
            raise ValueError
        return run
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{place}: not the record of a run") from None


def _main(runs_path: Path) -> tuple[str, ...]:
    """Return the keys that the tables of the same result show."""
    path = runs_path.with_name(WHOLE)
    if runs_path.name != RUNS or not path.is_file():
        return ()
    try:
        tables = json.loads(path.read_text())["tables"].values()
        return tuple(dict.fromkeys(columns.from_json(entry).key for table in tables for entry in table["columns"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{path}: not the results of an experiment") from None


def compare(a: Result, b: Result, every: bool = False) -> list[dict]:
    """Return a record for each figure of each row that both results have: the figures of the tables, or with `every` all
    figures."""
    if a.experiment != b.experiment:
        raise UserError(f"compare: {a.path} is a result of {a.experiment}, {b.path} of {b.experiment}")
    common = [names for names in a.rows if names in b.rows]
    if not common:
        raise UserError(f"compare: {a.path} and {b.path}: no row is in both")
    keys = {names: _keys(a, b, names) for names in common}
    # Some tables have rows that are not runs. Then all figures of the runs are compared.
    known = list(dict.fromkeys(key for mine in keys.values() for key in mine if key not in OF_THE_HOST))
    shown = [key for key in dict.fromkeys(a.main + b.main) if key in known] or known
    return [{"names": dict(names), "figure": key, **difference(a, b, names, key)}
            for names, mine in keys.items() for key in (mine if every else shown) if key in mine]


def _keys(a: Result, b: Result, names: Names) -> list[str]:
    """Return the figures that all runs of the row have in both results."""
    runs = [*a.rows[names].values(), *b.rows[names].values()]
    return [key for key in runs[0]["figures"] if all(key in run["figures"] for run in runs)]


def difference(a: Result, b: Result, names: Names, key: str) -> dict:
    """Compare one figure: means and intervals, the difference of the means with its interval (also in percent of A), and a
    verdict."""
    seeds = list(a.rows[names])
    paired = a.form == b.form and _same_loads(a.rows[names], b.rows[names])
    ours = [a.rows[names][seed]["figures"][key]["value"] for seed in seeds]
    theirs = [run["figures"][key]["value"] for run in ([b.rows[names][seed] for seed in seeds] if paired else
                                                       b.rows[names].values())]
    quantity = b.rows[names][next(iter(b.rows[names]))]["figures"][key]
    low, high = interval(ours, theirs, paired)
    base, more = mean(ours), mean(theirs) - mean(ours)
    if low is None:
        verdict = SAME if ours == theirs else UNKNOWN
    elif low == high == 0:
        verdict = SAME
    else:
        verdict = NONE if low <= 0 <= high else _direction(more, quantity["direction"])
    return {
        "unit": quantity["unit"], "direction": quantity["direction"], "runs": [len(ours), len(theirs)], "paired": paired,
        "a": base, "a_ci": repeated.half_width(ours), "b": mean(theirs), "b_ci": repeated.half_width(theirs),
        "difference": more, "low": low, "high": high,
        **{f"{name}_percent": 100 * value / abs(base) if base and value is not None else None
           for name, value in (("difference", more), ("low", low), ("high", high))},
        "verdict": verdict,
    }


def _same_loads(ours: dict[int | None, dict], theirs: dict[int | None, dict]) -> bool:
    """Whether each seed means the same work in both results. Kernels and machines may differ, because they are what is
    compared."""
    def work(runs: dict[int | None, dict]) -> dict:
        return {seed: [run["configuration"].get(key) for key in ("script", "data")] for seed, run in runs.items()}

    return work(ours) == work(theirs)


def interval(ours: list[float], theirs: list[float], paired: bool) -> tuple[float, float] | tuple[None, None]:
    """Return the confidence interval of the difference of the means: from the differences of pairs of equal seeds, or by Welch's
    method. (None, None) for single runs.
    """
    if min(len(ours), len(theirs)) < 2:
        return None, None
    more = mean(theirs) - mean(ours)
    if paired:
        wide = repeated.half_width([after - before for before, after in zip(ours, theirs, strict=True)])
        return more - wide, more + wide
    if len(set(ours)) == len(set(theirs)) == 1:
        return more, more
    from scipy.stats import ttest_ind

    found = ttest_ind(theirs, ours, equal_var=False).confidence_interval(repeated.CONFIDENCE)
    return float(found.low), float(found.high)


def _direction(more: float, direction: str | None) -> str:
    if direction is None:
        return "more" if more > 0 else "less"
    return "better" if (more > 0) == (direction == columns.HIGHER) else "worse"


def changed(a: Result, b: Result) -> dict[str, list[list]]:
    """Return the parts of the configuration that differ in rows that both results have: values of A, values of B."""
    found = {}
    sides = [[run["configuration"] for names, runs in one.rows.items() if names in other.rows for run in runs.values()]
             for one, other in ((a, b), (b, a))]
    for key in dict.fromkeys(key for side in sides for configuration in side for key in configuration if key != "title"):
        values = [list({json.dumps(configuration.get(key)): configuration.get(key) for configuration in side}.values())
                  for side in sides]
        if sorted(map(json.dumps, values[0])) != sorted(map(json.dumps, values[1])):
            found[key] = values
    return found


def run(a_path: Path, b_path: Path, every: bool, out: Path | None) -> int:
    """Compare two results: print a table, and write a file if `out` is given."""
    a, b = read(a_path), read(b_path)
    rows, other = compare(a, b, every), changed(a, b)
    if a.form != b.form:
        say(f"compare: A is the {a.form} form, B the {b.form} one: their loads differ")
    for name, one, rest in (("A", a, b), ("B", b, a)):
        print(f"{name}: {one.path}: {one.experiment}, {one.form}, {', '.join(one.git)}")
        alone = [label(names) for names in one.rows if names not in rest.rows]
        if alone:
            say(f"compare: only {name} has {'; '.join(alone)}")
    for key, values in other.items():
        print(f"different {key}" + (": {} and {}".format(*(value for (value,) in values)) if _short(values) else ""))
    show(rows)
    counts = Counter(row["verdict"] for row in rows)
    print(f"{len(rows)} figures: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}; "
          f"{sum(row['paired'] for row in rows)} compared seed by seed")
    if out:
        sides = {name: {"path": str(one.path), "form": one.form, "git": list(one.git)} for name, one in (("a", a), ("b", b))}
        write_whole(out, json.dumps({"experiment": a.experiment, **sides, "confidence": repeated.CONFIDENCE,
                                     "configuration": other, "rows": rows}, indent=1) + "\n")
    return 0


def _short(values: list[list]) -> bool:
    return all(len(side) == 1 and len(str(side[0])) <= 40 for side in values)


def label(names: Names) -> str:
    """Return the name of a row in words."""
    return ", ".join(value if isinstance(value, str) else f"{key} {value}" for key, value in names if value is not None)


def show(rows: list[dict]) -> None:
    """Print the table. Only the first line of a row has its name."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "figure", "unit"):
        table.add_column(heading)
    for heading in ("A", "B", "difference", f"{100 * repeated.CONFIDENCE:g} % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    before = None
    for row in rows:
        name = label(tuple(row["names"].items()))
        shown, percent = ("_percent", " %") if row["difference_percent"] is not None else ("", "")
        ends = [row[f"{end}{shown}"] for end in ("low", "high")]
        table.add_row(name if name != before else "", row["figure"], row["unit"], _with(row["a"], row["a_ci"]),
                      _with(row["b"], row["b_ci"]), f"{_signed(row[f'difference{shown}'])}{percent}",
                      "-" if ends[0] is None else f"{_signed(ends[0])} to {_signed(ends[1])}{percent}", row["verdict"])
        before = name
    console = Console(highlight=False)
    # A terminal folds the names; in a file or a pipe, the table may be as wide as needed.
    if console.is_terminal:
        console.print(table)
    else:
        print_whole(table, console)


def _with(value: float, interval: float | None) -> str:
    return number(value) + (f" ± {number(interval)}" if interval is not None else "")


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)
