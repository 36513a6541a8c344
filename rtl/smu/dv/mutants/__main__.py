# SPDX-License-Identifier: Apache-2.0
"""Checks whether the short suites see faults. Yosys puts faults (mutants) into the unit; one model has them all. The suite of
machine/crates/smu-world runs on each mutant, and the benches run on those that survive it.

    rtl/run python -m rtl.smu.dv.mutants [--seed N] [--again] [--only NUMBER ...] [--jobs N]

A mutant is caught when a test fails or does not end. survivors.toml must explain each mutant that survives. Fails if fewer than
97 of 100 are caught, not counting those that survivors.toml calls equivalent, or if a survivor is not explained there. The
results are in .trapless/rtl/mutants: verdicts.json, report.txt."""

import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rtl.smu.dv import test_dv
from rtl.smu.sim import build
from rtl.smu.synth import yosys
from rtl.tools import env

HERE = Path(__file__).resolve().parent
SEED = 20
# Mutants of each module: LEAST, plus a share of REST that depends on its size.
LEAST, REST = 1, 100
LIMIT_S = 120
"""Limit of processor time in s for the tests of one filter. On a correct unit the tests take at most 10 s."""
GOAL = 0.97
# Quick tests first.
FILTERS = ("rules::", "ports::", "the_models_logic", "entries::", "queues::", "registers", "numbers::", "errors::", "fabric::",
           "interrupts::", "windows::", "random::", "lockstep")
PARAMETERS = {"pmshr": 4, "prefetch": 2}
DOORBELL_CYCLES = 512
# The benches on the netlist, whose sizes are fixed. Most benches use two of its devices; each_device.py and one soak use all
# eight. late.py and windows.py need more entries or windows than the netlist has.
SIZES = {"SMU_PMSHR": 4, "SMU_DEVICES": 2, "SMU_HARTS": 4, "SMU_POLL": 4, "SMU_DOORBELL": DOORBELL_CYCLES}
ALL = {"SMU_DEVICES": 8}
SOAK = {"SMU_SEED": 1, "SMU_CYCLES": 20_000}
BENCHES = [("each_device", ALL), ("soak", {**SOAK, **ALL}), ("soak", {**SOAK, "SMU_SEED": 3}),
           *((name, settings) for name, settings in test_dv.MODULES.items() if name not in ("each_device", "late", "windows"))]


def model(seed: int, out: Path) -> list[dict]:
    """Build the model with the mutants in `out`, and return the list of mutants."""
    class Baked(build.Parameters):
        """Parameters of the netlist: it has none left to set."""

        def generics(self) -> list[str]:
            return []

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.environ.update(env.environment())
    parameters = Baked(**PARAMETERS)
    settings = dict(item.removeprefix("-G").split("=") for item in build.Parameters(**PARAMETERS).generics())
    settings["DoorbellCycles"] = str(DOORBELL_CYCLES)
    request = {"out": str(out), "read": yosys.read(settings), "seed": seed, "least": LEAST, "rest": REST}
    with (out / "yosys.log").open("w") as log:
        command = [env.RTL / "run", "python", HERE / "netlist.py"]
        subprocess.run(command, input=json.dumps(request), text=True, stdout=log, stderr=log, check=True)
    build.sources = lambda: [out / "smu.v", out / "select.sv"]
    build._build(parameters, False, None, build._tool("verilator"), build._tool(*build.COMPILERS), out)
    return json.loads((out / "mutants.json").read_text())


def suite() -> str:
    """Build the test program with cargo, and return its path."""
    command = ["cargo", "test", "--locked", "-q", "-p", "trapless-smu-world", "--features", "rtl", "--test", "rtl"]
    found = subprocess.run(
        [*command, "--no-run", "--message-format=json"], cwd=env.ROOT / "machine", stdout=subprocess.PIPE, text=True, check=True
    )
    # cargo also builds smu-soak, before or after it.
    told = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    return next(item["executable"] for item in told if item.get("executable") and item["target"]["kind"] == ["test"])


def verdict(program: str, library: Path, number: int) -> str:
    """The first test of the suite that fails on a mutant, or the filter that runs out of time, or "" for a survivor."""
    settings = {"TRAPLESS_SMU_RTL": library, "TRAPLESS_MUTANT": number, "RUST_BACKTRACE": 0, "PROPTEST_MAX_SHRINK_ITERS": 0}
    environment = os.environ | {name: str(value) for name, value in settings.items()}
    for name in FILTERS:
        command = ["prlimit", f"--cpu={LIMIT_S}", program, name, "--test-threads", "1"]
        run = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            for line in run.stdout or ():
                if line.startswith("test ") and line.rstrip().endswith("FAILED"):
                    return line.split()[1]
            if run.wait() == -signal.SIGXCPU:
                return f"{name} in time"
            if run.returncode != 0:
                return f"{name} ended with status {run.returncode}"
        finally:
            run.kill()
            run.wait()
    return ""


def benches(number: int, out: Path) -> str:
    """The first bench that fails on a mutant, or "" for a survivor."""
    netlist = test_dv.Build("netlist", {})
    # Each run has a different name, which determines its addresses in memory.
    for n, (module, settings) in enumerate(BENCHES):
        try:
            test_dv.bench(netlist, module, f"mutant-{number}-{n}", [out / "smu.v", out / "select.sv"],
                          **{**SIZES, **settings, "TRAPLESS_MUTANT": number})
        except AssertionError:
            return f"bench {module}"
    return ""


def report(run: list[dict], lost: list[dict]) -> list[str]:
    """Report lines: how many mutants of each part were caught, by which tests, and why the others were not."""
    told = []
    parts, gone = (collections.Counter(mutant["part"] for mutant in some) for some in (run, lost))
    told += [f"{part}: {count - gone[part]} of {count}" for part, count in sorted(parts.items())]
    tests = collections.Counter(mutant["caught_by"] for mutant in run if mutant["caught_by"])
    told += ["", *(f"{count:4} by {test}" for test, count in tests.most_common()), ""]
    told += [f"survived ({mutant['kind']}): {mutant['name']}: {' '.join(mutant['why'].split())}" for mutant in lost]
    return told


def main() -> int:
    """Make the mutants, run the tests on them, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, nargs="*", help="run only these mutants, and keep the other results of the last run")
    parser.add_argument("--again", action="store_true", help="use the existing model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants run at a time (default: one per processor)")
    options = parser.parse_args()
    out = env.BUILDS / "mutants"
    found = "verdicts.json" if options.only and (out / "verdicts.json").exists() else "mutants.json"
    try:
        built = suite()
        mutants = model(options.seed, out) if not options.again else json.loads((out / found).read_text())
    except subprocess.CalledProcessError as error:
        print(f"mutants: {Path(error.cmd[0]).name} failed with status {error.returncode}", file=sys.stderr)
        return 1
    # A copy, because the suite may be built again meanwhile.
    program = shutil.copy(built, out / "suite")
    if wrong := verdict(program, out / "smu.so", 0) or benches(0, out):
        print(f"mutants: the unit without a mutant fails a test, so no mutant is run: {wrong}", file=sys.stderr)
        return 1
    survivors = tomllib.loads((HERE / "survivors.toml").read_text()).get("survivor", [])
    known = {entry.pop("mutant"): entry for entry in survivors}
    unknown = {"kind": "unexplained", "why": ""}
    chosen = [mutant for mutant in mutants if not options.only or mutant["number"] in options.only]

    def judge(mutant: dict) -> None:
        number = mutant["number"]
        mutant["caught_by"] = verdict(program, out / "smu.so", number)
        if not mutant["caught_by"] and known.get(mutant["name"], unknown)["kind"] != "equivalent":
            mutant["caught_by"] = benches(number, out)
        print(f"{mutant['number']:4} {mutant['caught_by'] or 'SURVIVED'}: {mutant['name']}", flush=True)
        (out / "verdicts.json").write_text(json.dumps(mutants, indent=1))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, chosen))
    run = [mutant for mutant in mutants if "caught_by" in mutant]
    lost = [mutant | known.get(mutant["name"], unknown) for mutant in run if not mutant["caught_by"]]
    equivalent = sum(mutant["kind"] == "equivalent" for mutant in lost)
    unexplained = sum(mutant["kind"] == "unexplained" for mutant in lost)
    share = (len(run) - len(lost)) / max(len(run) - equivalent, 1)
    told = report(run, lost)
    caught = f"{len(run) - len(lost)} of {len(run)} caught"
    told.append(f"{caught}, {equivalent} equivalent: {100 * share:.1f} % of the others; {unexplained} unexplained")
    (out / "report.txt").write_text("\n".join(told) + "\n")
    print("\n".join(told))
    return 0 if share >= GOAL and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
