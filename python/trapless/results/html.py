# SPDX-License-Identifier: Apache-2.0
"""report.html of the miss latency experiment: one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trapless.results import table
from trapless.results.columns import Column
from trapless.results.templates import render


@dataclass(frozen=True)
class PaperBar:
    """A bar of the FPGA paper's figure 8, in us: the total, and the part of the device (or of hardware and device together)."""

    label: str
    total: float
    device: float


# FPGA figure 8 and section V-B: 823.9, 69.1 (28.1 disk), 45.8 (16.0 outside the hardware), 27.9; SSD 28.16 us.
PAPER = {
    "osdp": PaperBar("OSDP, paper", 823.9, 28.16),
    "emulated": PaperBar("Emulated, paper", 69.1, 28.1),
    "trap": PaperBar("HWDP-trap, paper", 45.8, 29.8),
    "hwdp": PaperBar("HWDP, paper", 27.9, 27.9),
}
PAPER_MEAN_US = {"osdp": 921.9, "ideal": 109.4}
# In SVG units, of which a phone shows about one per pixel: width, and height of a row (a line of text with its bar below).
_WIDTH, _ROW = 380, 40


def write(records: list[dict], path: Path, columns: Sequence[Column]) -> None:
    """Write the page for these records, with a table of these columns."""
    by_kind = {record["kind"]: record for record in records}
    hwdp = by_kind.get("hwdp", {})
    page = render(
        "template.html",
        title="Trapless: what a page miss costs",
        summary=_summary(by_kind),
        chart=chart(by_kind),
        headings=[column.heading for column in columns],
        rows=[table.cells(record, columns) for record in records],
        steps=list(hwdp.get("hw_miss", {}).get("steps", {}).items()),
        comparison=_comparison(by_kind),
        configuration=_configuration(records[0]),
    )
    path.write_text(page)


def miss_time(record: dict) -> float | None:
    """Return the time of one miss in us: from the machine's timestamps if hardware served it, otherwise by difference to
    ideal."""
    if "hw_miss" in record:
        return record["hw_miss"]["mean_us"]
    return record.get("miss_by_difference_us")


def chart(by_kind: dict[str, dict]) -> dict:
    """Compute the geometry of the bars. Our bars and the paper's alternate."""
    bars = []
    for kind, paper in PAPER.items():
        record = by_kind.get(kind)
        total = miss_time(record) if record else None
        if record and total is not None:
            bars.append((kind.upper() if kind != "trap" else "HWDP-trap", total, min(record["device_us"], total), False))
        bars.append((paper.label, paper.total, paper.device, True))
    scale = _WIDTH / max(total for _, total, _, _ in bars)
    drawn = [
        {"label": label, "y": number * _ROW, "device_width": device * scale, "rest_width": (total - device) * scale,
         "text": f"{total:.1f} ({device:.1f} + {total - device:.1f})", "paper": paper}
        for number, (label, total, device, paper) in enumerate(bars)
    ]
    return {"bars": drawn, "width": _WIDTH, "height": len(drawn) * _ROW + 36}


def _number(value: float | None, unit: str = "", digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}{unit}"


def _summary(by_kind: dict[str, dict]) -> str:
    hwdp, osdp = by_kind.get("hwdp"), by_kind.get("osdp")
    if not hwdp or not osdp or not hwdp["distinct_pages"]:
        return ""
    share = 100 * hwdp["hw_misses"] / hwdp["distinct_pages"]
    return (f"Unmodified fio reads {hwdp['ops']:,} cold pages at random through a mapping. "
            f"Hardware served {share:.2f} % of them. Each miss spent {_number(hwdp['nondevice_us'])} us outside the device. "
            f"A read took {_number(hwdp['mean_us'], digits=1)} us on average instead of "
            f"{_number(osdp['mean_us'], digits=1)} us with page faults.")


def _comparison(by_kind: dict[str, dict]) -> list[tuple[str, str, str]]:
    rows = []
    for kind in ("ideal", "osdp"):
        if kind in by_kind:
            rows.append((f"{kind}: mean latency of a read", _number(by_kind[kind]["mean_us"], " us", 1),
                         _number(PAPER_MEAN_US[kind], " us", 1)))
    for kind in ("osdp", "hwdp"):
        if kind in by_kind and miss_time(by_kind[kind]) is not None:
            rows.append((f"{kind}: time of a miss", _number(miss_time(by_kind[kind]), " us", 1),
                         _number(PAPER[kind].total, " us", 1)))
    hwdp, osdp = by_kind.get("hwdp"), by_kind.get("osdp")
    if hwdp and osdp and miss_time(hwdp) and miss_time(osdp):
        rows.append(("time of a miss, osdp divided by hwdp", _number(miss_time(osdp) / miss_time(hwdp), " x", 1),
                     _number(PAPER["osdp"].total / PAPER["hwdp"].total, " x", 1)))
        rows.append(("mean latency, osdp divided by hwdp", _number(osdp["mean_us"] / hwdp["mean_us"], " x"),
                     "5.35 - 6.78 x (figure 9)"))
        rows.append(("kernel instructions per operation, hwdp divided by osdp",
                     _number(100 * hwdp["kernel_instructions_share_of_osdp"], " %", 1), "-"))
    return rows


def _configuration(record: dict) -> list[tuple[str, str]]:
    return [
        ("profile", record["profile"]),
        ("settings", " ".join(record["settings"]) or "as in the profile"),
        ("load", f"{record['fio'] or 'fio'}, mmap engine, 4 KiB random reads, {record['read_bytes'] >> 20} MiB of "
                 f"{record['file_bytes'] >> 20} MiB, {record['threads']} thread(s), seed {record['fio_seed']}, "
                 f"readahead {record.get('readahead_kb') or 0} KB"),
        ("version", record["git"] or "-"),
    ]
