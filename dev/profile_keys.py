# SPDX-License-Identifier: Apache-2.0
"""docs/reference/profile-keys.md and drive-keys.md: every key of a machine profile and of a drive. Meanings come from the doc
comments of the types in machine/crates/timing/src, ranges from the checks there, and values from the built-in profiles."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from trapless.base.paths import MACHINE
from trapless.base.ui import UserError

SOURCES = MACHINE / "crates" / "timing" / "src"
PROFILES = MACHINE / "profiles"
MACHINE_SECTIONS = {"machine": "MachineParams", "core": "CoreCosts", "smu": "SmuParams", "detail.caches": "CacheParams",
                    "detail.dram": "DramParams", "detail.tlb": "TlbParams", "detail.predictor": "PredictorParams"}
DRIVE_SECTIONS = {"ssd": "SsdParams", "ssd.flash": "FlashParams"}
"""The Rust type of each section."""
DRIVES = 4
"""Drives side by side in a table."""
UNITS = {"_us": "us", "_ns": "ns", "_hz": "Hz", "_bytes": "bytes", "_kib": "KiB", "_cycles": "cycles", "mb_per_s": "MB/s"}
BOUNDS = {"clock_hz.min(1_000_000_000)": "`machine.clock_hz`, 10^9 at most",
          "fetch_and_transfer": "`fetch_us` and 4 KiB / `mb_per_s`", "fetch": "`fetch_us`",
          "least_buffer": "4 x `max_transfer_pages` + `program_kib`"}
"""Limits that depend on other keys, by their expressions in the rules."""
WORDS = {"cache": "in lines: its ways x a power of two", "tlb": "its ways x a power of two",
         "of": "0 (where there is none) to 16,777,216", "shape": "pairs, both rising", "latency": "constant, shape",
         "Flag": "true, false", "Text": "a name"}
"""Texts for rules that have no bounds, or whose bounds depend on other keys."""
DEFAULTS = {"one_thread": "1", "a_thousand": "1,000", "smu_timed": "true", "Paging": "sv39", "Latency": "constant", "u32": "0",
            "u64": "0"}
"""Meaning of an absent key, by the function that gives its value, or by its type."""

_STRUCT = r"((?: *///[^\n]*\n)*)(?:#\[[^\n]*\n)*pub struct {} \{{\n(.*?)\n\}}"
_FIELD = re.compile(r"((?:    (?:///|#\[)[^\n]*\n)*)    pub (\w+): ([^\n]+),\n")
_ENTRY = re.compile(r"(?<=\n {8})\((?=\"([\w.]+)\", )")
_NAMED = re.compile(r"let (cycles|some|ns) = (Rule::[^\n]*);")
_COMMENT = re.compile(r"//[^\n]*")

MADE = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by ./trapless dev reference from the types of machine/crates/timing and the files of machine/profiles. -->
"""
PROFILE = MADE + """\
# Keys of a machine profile

A profile describes the machine: core, SMU, drive, and what detailed timing needs. `./trapless run --profile FILE.toml` takes one,
and `--set smu.cam_cycles=9` changes one value. A file may begin with `extends = "server"` and name only what differs. Its `ssd`
is the name of a drive, or a section with [keys of a drive](drive-keys.md).

The last columns are the built-in profiles. The word in brackets is a value's source, which the comments of
[machine/profiles](../../machine/profiles/) explain: `choice` has no measurement behind it. A value in parentheses is what an
absent key means. `vc707` has no section `detail`, so it cannot run with `--detail`.
"""
DRIVE = MADE + """\
# Keys of a drive

A drive is a TOML file with these keys, or the section `ssd` of a [profile](profile-keys.md). `--ssd FILE.toml` takes a file, and
`--set ssd.read_us=3` changes one value. A file may begin with `extends = "tlc"` and name only what differs. [Add an SSD
profile](../how-to/add-an-ssd-profile.md) shows how to write one.
"""
BUILT_IN = """
## The built-in drives

[nvme.md](nvme.md#drives-how-to-attach-and-choose-them) says what each drive is. The word in brackets is a value's source, which
the comments of [machine/profiles/ssd](../../machine/profiles/ssd/) explain.

"""


@dataclass(frozen=True)
class Key:
    """A key of a section."""

    name: str
    type: str
    meaning: str
    default: str | None


def _text(name: str) -> str:
    return (SOURCES / name).read_text()


def keys(struct: str, text: str) -> tuple[str, list[Key]]:
    """Return the doc comment of a type, and its keys."""
    match = re.search(_STRUCT.format(struct), text, re.DOTALL)
    if not match:
        raise UserError(f"machine/crates/timing: no struct {struct}: dev/profile_keys.py names it")
    found = []
    for marks, name, kind in _FIELD.findall(match[2] + "\n"):
        default = re.search(r"serde\(default(?: = \"(\w+)\")?", marks)
        absent = None
        if default:
            absent = DEFAULTS[default[1]] if default[1] else DEFAULTS.get(kind)
        found.append(Key(name, kind, _said(marks), absent))
    return _said(match[1]), found


def _said(comments: str) -> str:
    lines = [line.strip().removeprefix("///").strip() for line in comments.splitlines() if line.strip().startswith("///")]
    return " ".join(lines)


def ranges(text: str) -> dict[str, str]:
    """Return the allowed values that a function with rules gives, by key. It reads the lines `("key", Rule::...),` and named
    rules."""
    text = _COMMENT.sub("", text)
    named = dict(_NAMED.findall(text))
    return {found[1]: _allowed(_inside(text, found.start()).partition(",")[2].strip(), named) for found in _ENTRY.finditer(text)}


def _allowed(rule: str, named: dict[str, str]) -> str:
    """Return a rule in the form for readers."""
    word = rule.removesuffix(",").removesuffix(".clone()").strip()
    word = named.get(word, word)
    kind, _, rest = word.removeprefix("Rule::").partition("(")
    if kind in WORDS:
        return WORDS[kind]
    bounds = _split(rest.rpartition(")")[0])
    if kind in ("Among", "OneOf"):
        return ", ".join(one.strip('"') if one.startswith('"') else _number(one) for one in _split(bounds[0].strip("&[]")))
    if bounds[-1] == "i64::MAX":
        return f"{_number(bounds[0])} or more"
    between = " to ".join(map(_number, bounds[:2]))
    return {"Whole": between, "Number": between, "PowerOfTwo": f"a power of two, {between}",
            "Multiple": f"{between}, a multiple of 4,096"}[kind]


def _inside(text: str, start: int) -> str:
    """Return the content of the bracket at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if not depth:
            return text[start + 1:at]
    return ""


def _split(words: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for letter in words:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _number(word: str) -> str:
    """Return a bound in the form for readers."""
    if word in BOUNDS:
        return BOUNDS[word]
    plain = word.replace("_", "")
    if shift := re.fullmatch(r"(\d+) << (\d+)", plain):
        return f"{int(shift[1]) << int(shift[2]):,}"
    try:
        return f"{float(plain):,.15g}"
    except ValueError:
        raise UserError(f"machine/crates/timing: unknown bound {word}: add it to BOUNDS in dev/profile_keys.py") from None


def all_ranges() -> dict[str, str]:
    """Return the ranges of all keys."""
    profile = _text("profile.rs")
    found = {}
    for section, name, function in (("machine", "profile.rs", "machine_rules"), ("smu", "profile.rs", "smu_rules"),
                                    ("ssd", "drive.rs", "rules"), ("detail", "detail.rs", "rules")):
        body = re.search(rf"^(?:pub\(crate\) )?fn {function}\([^\n]*Vec<[^\n]*\n(.*?)^\}}", _text(name), re.DOTALL | re.MULTILINE)
        if not body:
            raise UserError(f"machine/crates/timing/src/{name}: no function {function}: dev/profile_keys.py looks for it")
        found |= {f"{section}.{key}": said for key, said in ranges(body[1]).items()}
    costs = re.search(r"CORE_COSTS\.map\(\|key\| \(key, (Rule::[^\n]*)\)\)\);", profile)
    if not costs:
        raise UserError("machine/crates/timing/src/profile.rs: no range of core.*: dev/profile_keys.py looks for it")
    _, core = keys("CoreCosts", profile)
    return found | {f"core.{key.name}": _allowed(costs[1], {}) for key in core}


def values(path: Path) -> dict[str, str]:
    """Return for each key of a TOML file its value, with its source in brackets."""
    text, section, found = path.read_text(), "", {}
    data = tomllib.loads(text)
    for line in text.splitlines():
        if match := re.fullmatch(r"\[([\w.]+)\]", line.strip()):
            section = match[1]
        elif match := re.match(r"(\w+) = (\[?)(?:[^#]*)(?:# \[(\w+)\])?", line):
            value = data
            for part in [*filter(None, section.split(".")), match[1]]:
                value = value[part]
            shown = str(value)
            if match[2]:
                shown = "a list"
            elif isinstance(value, bool):
                shown = shown.lower()
            elif isinstance(value, int):
                shown = f"{value:,}"
            found[".".join(filter(None, (section, match[1])))] = f"{shown} [{match[3]}]" if match[3] else shown
    return found


def pages() -> dict[str, str]:
    """Return both pages by name."""
    profiles = {name: values(PROFILES / f"{name}.toml") for name in _built_in("profile.rs")}
    drives = {name: values(PROFILES / "ssd" / f"{name}.toml") for name in _built_in("drive.rs")}
    # A page shows at most seven columns.
    tables = "\n".join(_drive_table(part) for part in (dict(islice(drives.items(), first, first + DRIVES))
                                                       for first in range(0, len(drives), DRIVES)))
    return {"profile-keys.md": PROFILE + _sections(MACHINE_SECTIONS, profiles),
            "drive-keys.md": DRIVE + _sections(DRIVE_SECTIONS, {}) + BUILT_IN + tables}


def _drive_table(drives: dict[str, dict[str, str]]) -> str:
    rows = [[f"`{name}`", *(known.get(name, "-") for known in drives.values())]
            for name in dict.fromkeys(name for known in drives.values() for name in known) if name != "name"]
    return _table(["key", *drives], rows)


def _sections(sections: dict[str, str], shown: dict[str, dict[str, str]]) -> str:
    text, limits = "".join(_text(name) for name in ("profile.rs", "detail.rs", "drive.rs")), all_ranges()
    parts = []
    for section, struct in sections.items():
        said, own = keys(struct, text)
        rows = [[f"`{key.name}`", _unit(section, key), _range(f"{section}.{key.name}", key, limits), _meaning(section, key),
                 *(_value(f"{section}.{key.name}", key, known) for known in shown.values())]
                for key in own if key.type != "Option<FlashParams>"]
        parts.append(f"\n## {section}\n\n{said}\n\n" + _table(["key", "unit", "range", "meaning", *shown], rows))
    return "".join(parts)


def _built_in(name: str) -> list[str]:
    return re.findall(r"\(\"([\w-]+)\", include_str!", _text(name))


def _unit(section: str, key: Key) -> str:
    if section == "core":
        return "cycles"
    return next((unit for end, unit in UNITS.items() if key.name.endswith(end)), "")


def _meaning(section: str, key: Key) -> str:
    """Return the meaning of a key without its unit, which has a separate column."""
    unit = _unit(section, key)
    return re.sub(rf", {unit}(?=[.;])", "", key.meaning) if unit else key.meaning


def _range(name: str, key: Key, limits: dict[str, str]) -> str:
    if name not in limits:
        raise UserError(f"machine/crates/timing: {name}: no rule that dev/profile_keys.py can read")
    return limits[name]


def _value(name: str, key: Key, known: dict[str, str]) -> str:
    """Return a key's value, or a dash for a profile without the section."""
    if not any(other.startswith(name.rpartition(".")[0] + ".") for other in known):
        return "-"
    return known.get(name) or (f"({key.default})" if key.default else "-")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
