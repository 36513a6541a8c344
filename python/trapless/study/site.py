# SPDX-License-Identifier: Apache-2.0
"""`./trapless report`: makes a static site of all results: an overview with the papers' values beside ours, and a page for each
experiment. It reads the JSON that experiments write, and needs no network.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from markupsafe import Markup

from trapless.base.cache import disk_error
from trapless.base.outputs import output_folder, write_whole
from trapless.base.paths import ROOT
from trapless.base.ui import UserError, say
from trapless.results import plots, table
from trapless.results.columns import Column, from_json, word
from trapless.results.templates import render
from trapless.study import breakdown
from trapless.study.catalogue import ALL, EXPERIMENTS

_FOLDER = ROOT / "python" / "trapless" / "results"
_FILES = ("experiment.json", "results.json", "columns.json", "runs.jsonl", "results.md")


def run(source: Path, out: Path) -> int:
    """Make the site of the results in `source`/NAME."""
    if out.resolve() == source.resolve():
        raise UserError(f"--out {out}: this is also the folder of --from; name another one for the pages")
    found = {name: read(source / name) for name in EXPERIMENTS if (source / name / "experiment.json").is_file()}
    if not found:
        raise UserError(f"--from {source}: there are no results (./trapless study all --quick measures everything)")
    write(found, source, out)
    missing = len(EXPERIMENTS) - len(found)
    say(f"report: {out / 'index.html'}, {len(found)} experiments" + (f"; {missing} are not measured yet" if missing else ""))
    return 0


def read(folder: Path) -> dict:
    """Read the results of an experiment that its page shows."""
    path = folder / "experiment.json"
    try:
        found = json.loads(path.read_text())
        page(folder.name, found)
        return found
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f"{path}: written by another version ({error!r}); measure it again") from None


def write(found: dict[str, dict], source: Path, out: Path) -> None:
    """Write all pages."""
    import plotly
    from plotly.offline import get_plotlyjs

    output_folder(out)
    plotly_file = f"plotly-{plotly.__version__}.min.js"
    write_whole(out / plotly_file, get_plotlyjs())
    for name in ("site.css", "site.js"):
        write_whole(out / name, (_FOLDER / name).read_text())
    for name, experiment in found.items():
        files = _copy(source / name, out / name)
        write_whole(out / f"{name}.html", render("site.html", **page(name, experiment), files=files,
                                                 plotly=plotly_file))
    write_whole(out / "index.html", render(
        "site.html", title="Trapless: the papers' figures", overview=overview(found), confidence=_confidence(found),
        state=f"{sum(one['form'] == 'quick' for one in found.values())} of {len(found)} are quick forms: smaller loads."))


def _copy(source: Path, out: Path) -> list[str]:
    """Copy an experiment's files beside its page; return their names relative to the page."""
    try:
        out.mkdir(exist_ok=True)
        paths = [source / name for name in _FILES if (source / name).is_file()] + sorted(source.glob("*.svg"))
        return [f"{out.name}/{Path(shutil.copy(path, out)).name}" for path in paths]
    except OSError as error:
        raise disk_error(error, out) from error


def _confidence(found: dict[str, dict]) -> str:
    return f"{100 * next(iter(found.values()))['confidence']:g}"


def page(name: str, experiment: dict) -> dict:
    """Return the content of an experiment's page."""
    return {
        "title": f"{name}: {experiment['title']}",
        "about": experiment["about"],
        "figures": [{"id": f"figure-{drawn}", "title": figure["ylabel"], "data": _json(figure)}
                    for drawn, figure in experiment["figures"].items()],
        "breakdown": _breakdown(experiment.get("breakdown", [])),
        "compared": [beside(one) for one in experiment["compared"]],
        "confidence": f"{100 * experiment['confidence']:g}",
        "tables": [_table(f"Table {known}", [from_json(entry) for entry in shown["columns"]], shown["rows"])
                   for known, shown in experiment["tables"].items()],
        "command": experiment["command"],
        "environment": [("form", experiment["form"]), ("version (git describe)", experiment["git"] or "-"),
                        ("runs", experiment["runs"]), ("host seconds of this measurement", _seconds(experiment)),
                        *((key, " ".join(value) if isinstance(value, list) else value)
                          for key, value in experiment["environment"].items())],
    }


def _table(caption: str, columns: list[Column], rows: list[dict]) -> dict:
    return {"caption": caption, "heads": table.heads(columns), "rows": [table.cells(row, columns) for row in rows]}


def _seconds(experiment: dict) -> str:
    """Return the time of the measurement, and the original time of the runs that it took from the cache."""
    known = experiment.get("runs_known", 0)
    return f"{experiment['host_seconds']:.0f}" + (
        f"; {known} runs taken from the cache once took {experiment['host_seconds_known']:.0f}, one after another"
        if known else "")


def _breakdown(rows: list[dict]) -> dict | None:
    """Return the figure and the table of where a miss's time goes; None if no run has steps."""
    parts = breakdown.parts(rows)
    if not parts:
        return None
    steps = list(dict.fromkeys(part["part"] for part in parts))
    columns = [word("row", "row", "Which run."), *(Column(step, step, "Mean time of a step.", "us", None,
                                                          ".3f") for step in steps)]
    return {"data": _json(plots.describe(breakdown.FIGURE, parts)), "heads": table.heads(columns),
            "rows": [table.cells({"row": row["row"], **row["steps"]}, columns) for row in rows]}


def _json(value: object) -> Markup:
    """Return the value as JSON inside a script element: nothing in it may end the element."""
    return Markup(json.dumps(value).replace("<", "\\u003c"))


def overview(found: dict[str, dict]) -> list[dict]:
    """Return the groups of the first page."""
    groups = []
    for study in ALL.values():
        names = list(study.experiments)
        rows = [{"name": name, "form": found[name]["form"], **beside(one)} for name in names if name in found
                for one in found[name]["compared"]]
        with_rows = {row["name"] for row in rows}
        groups.append({
            "title": study.title, "rows": rows,
            "others": [{"name": name, **found[name]} for name in names if name in found and name not in with_rows],
            "missing": [{"name": name, "title": EXPERIMENTS[name].title} for name in names if name not in found]})
    return groups


def beside(one: dict) -> dict:
    """Return a quantity's cells: the paper's value or range, ours, and by how much ours is outside the range."""
    low, high = one["ours"]
    ours = _range(low, high)
    if one["interval"] is not None:
        ours += f" ± {table.number(one['interval'])}"
    return {**one, "paper": _range(*one["paper"]) if one["paper"] else "-", "ours": ours, "difference": _difference(one)}


def _difference(one: dict) -> str:
    """Return by how much the ends of our range are outside the paper's range, in percent of the paper's value; if that is 0, the
    difference itself."""
    if not one["paper"]:
        return "-"
    (low, high), (least, most) = one["paper"], one["ours"]
    found = []
    if low is not None and least < low:
        found.append(f"{100 * (least - low) / abs(low):+.0f} %" if low else f"{table.number(-least)} below 0")
    if high is not None and most > high:
        found.append(f"{100 * (most - high) / abs(high):+.0f} %" if high else f"{table.number(most)} above 0")
    return ", ".join(found) or "within"


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at least {table.number(low)}" if high is None else f"at most {table.number(high)}"
    return table.number(low) if low == high else f"{table.number(low)} to {table.number(high)}"
