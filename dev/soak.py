# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev soak`: causes many misses of hwdp mappings under memory pressure, on a kernel that checks itself.

The guest has four harts, and memory for a quarter of the data. Programs of all sorts map, unmap and advise while others read.
Futexes, vfork(), direct I/O, control groups with limits, a drive that hangs and memory that goes offline are mixed in. Every byte
is compared. At the end the kernel must have reported nothing, no real-time task may have waited a second for a hart, and every
frame given to the unit must be accounted for. A long soak consists of several boots with different seeds. A boot that passed is
not run again.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trapless.base.cache import CACHE, cached, check_room, content_key, file_key
from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, say, step
from trapless.guest import atomic, build
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import Job
from trapless.guest.programs import cross

MISSES = 2_000_000
RECIPE = "soak 1"
"""Part of the key of passed boots, and of their images. Raise it when a boot checks more or does something else."""
SCRIPT = Path(__file__).with_suffix(".sh")
KERNELS = {"debug": ("debug.config", "soak.config", "hwdp-kunit.config"),
           "kcsan": ("kcsan.config", "soak.config", "hwdp-kunit.config"),
           "plain": ()}
"""Kernels, with fragments of linux/configs. KCSAN finds racing accesses. It exists only for x86_64 and excludes KASAN, so that
kernel runs on QEMU, with the unit in software."""
DEBUG_MIB = 256
"""MiB of memory that the debug kernel itself uses: KASAN's shadow, page owners, stacks, lock tables. Part of it is at
the end of memory."""
PARTS_MIB = 48
"""MiB of memory that the parts of the mix use: page tables, stacks, anonymous memory."""
DEBUG_HZ = 1_000_000_000
"""Clock of the debug kernel's harts, ten times the usual one. This kernel executes more than ten times as many instructions per
miss, so with the usual clock, ticks and the periods of the parts would leave no time for misses."""
BLOCK_MIB = 128
"""Size in MiB of a memory block, which the debug kernel takes offline and back. Its guest gets this much additional memory."""
PER_BOOT = 250_000
"""Misses of one boot."""
LEAST_MIB = 256
"""Minimum size of the data in MiB. With less, the files of the parts do not fit on the disk."""
HUNG_DISK = guests.DATA_DISK + 1
HUNG = f"hang,disk={HUNG_DISK},op=read,skip=300,every=1500,count=1000000"
"""Mounting the drive takes fewer reads than are skipped."""
LATE_US = 1_000_000
"""Longest time in us that anything may keep a hart from a real-time task."""
MIX = ("watch", "futex", "vfork", "direct", "cgroups")
DEBUG_MIX = ("offline", "compact")
# Messages of the kernel when one of its checks fails.
REPORT = re.compile(
    r"BUG[: ]|WARNING: |KASAN|UBSAN|KFENCE|Oops|general protection|[Cc]all [Tt]race|INFO: (task|rcu|trying|possible)"
    r"|possible (circular|recursive|irq)|inconsistent lock|suspicious RCU|sleeping function|Bad (page|rss)|bad pte|nonzero"
    r"|not ok \d|list_(add|del) corruption|refcount_t|unreferenced object|stack-out-of-bounds|hung_task|Kernel panic")
# In Linux 6.12.117, nvme_timeout() freezes the queues and another worker thaws them; lockdep reports this once.
LINUX = re.compile(r"^.*BUG: workqueue leaked .*\n.*workfn=blk_mq_timeout_work\n(?:.*\n)*?.*ret_from_fork.*$", re.MULTILINE)
OURS = re.compile(r"hwdp|trapless|\bsoft_")
"""Functions of the feature. KCSAN, which names both sides of a race, finds some races in every Linux."""
LINUX_READS = re.compile(r"\b(kthread_is_per_cpu|page_vma_mapped_walk)\b")
"""Functions of Linux whose plain reads are harmless. The first reads only flags of another task. That task changes other flags
meanwhile, in inlined functions like memalloc_noreclaim_save(), so KCSAN names our function beside it. The second reads PUD
entries for the table's frame, while only the mark changes."""
STALLED = re.compile(r"soft lockup|rcu.*stall|blocked for more than")
# Counters that add up to the frames put into the free ring, one for each way out of it.
FRAMES_OUT = ("pages_adopted", "pages_discarded", "frames_returned")


@dataclass(frozen=True)
class Request:
    """Options that the user gave."""

    misses: int = MISSES
    checks: str = "debug"
    """Name in KERNELS."""
    kind: str = "hwdp"
    kernel: Path | None = None
    """An image to use instead of a kernel in KERNELS; then `checks` is plain."""
    out: Path = Path("out/soak")
    data_mib: int = 1024
    seed: int = 1
    """Seed of the first boot; each further boot adds 1."""


def run(request: Request) -> int:
    """Run the soak and print the verdict. Return 0 if nothing was found."""
    output_folder(request.out)
    if request.checks == "kcsan":
        request = replace(request, kind="emulated")
    kernel = request.kernel or build.kernel(arch=_arch(request), configs=KERNELS[request.checks])
    boots = max(1, -(-request.misses // PER_BOOT))
    faulty = 0
    for number in range(boots):
        misses = min(PER_BOOT, request.misses - number * PER_BOOT)
        boot = replace(request, misses=misses, seed=request.seed + number, out=request.out / f"seed-{request.seed + number}")
        faulty += not _passes(boot, kernel)
    print(f"{boots - faulty} passed, {faulty} failed")
    return 1 if faulty else 0


def _arch(request: Request) -> build.Arch:
    return build.ARCHS["x86_64"] if request.checks == "kcsan" else build.RISCV


def _passes(boot: Request, kernel: Path) -> bool:
    """Run one boot, unless it passed before. Return whether nothing was found."""
    source = mix(_arch(boot))
    data, hung = dataset.image(boot.data_mib * ext4.MIB), hung_image()
    program = None if boot.checks == "kcsan" else build.machine()
    key = content_key(repr(replace(boot, out=Path(), kernel=None)), *map(file_key, (kernel, data, hung, source)),
                      file_key(program) if program else "", SCRIPT, RECIPE)
    output_folder(boot.out)
    passed = boot.out / "passed"
    if passed.exists() and passed.read_text() == key:
        say(f"seed {boot.seed} passed before: {boot.out}")
        return True
    if passed.exists():
        say(f"seed {boot.seed} passed before with other misses, data, kernel, machine or version: running it again")
    for old in boot.out.rglob("*"):
        if old.is_file():
            old.unlink()
    guest = _guest(boot, kernel, data)
    script = f"sh {SCRIPT.name} {boot.kind} {boot.misses} {_sum(data)} {boot.seed}"
    with step(f"{boot.misses:,} misses, kind {boot.kind}, seed {boot.seed}"):
        try:
            if program:
                guest = replace(guest, faults=(HUNG,), options=("--disk", f"{hung},snapshot", *atomic.options(kernel)))
                script += f" {_sum(hung)}"
                outcome = guests.run_on_machine(program, guest, Job(script, (SCRIPT, source)), boot.out, show=True)
            else:
                outcome = guests.run_on_qemu(guest, Job(script, (SCRIPT, source)), boot.out, show=True)
        except guests.GuestError as error:
            (boot.out / "console.txt").write_text(error.outcome.console)
            print(f"seed {boot.seed}: {error}")
            return False
    (boot.out / "console.txt").write_text(outcome.console)
    found = [*([f"the guest's script ended with status {outcome.status}"] if outcome.status else []), *faults(boot.out)]
    found += unmixed(boot.out, (*MIX, *(DEBUG_MIX if boot.checks != "plain" else ()), *(("hung",) if program else ())),
                     late=bool(program))
    if program:
        found += _seen_by_machine(outcome.stats)
    for line in found:
        print(f"seed {boot.seed}: {line}")
    if not program and any(map(STALLED.search, found)):
        say("QEMU's harts run in host time: other work on this host may be the reason. Run this soak alone")
    pages = counters(boot.out).get("pages_adopted", 0)
    say(f"{pages:,} pages served and adopted with {usable(boot.out)} MiB of memory for {boot.data_mib} MiB of data, "
        f"{outcome.host_seconds:.0f} s here ({pages / max(outcome.host_seconds, 1):.0f} misses per second); files in {boot.out}")
    if not found:
        write_whole(passed, key)
    return not found


def _guest(boot: Request, kernel: Path, data: Path) -> guests.Guest:
    """Return a guest with four harts and scarce memory."""
    memory, words, settings = boot.data_mib // 4 + PARTS_MIB, ["page_owner=on", "hwdp.ring=1024", "nvme_core.io_timeout=1"], ()
    if boot.checks != "plain":
        memory = -(-memory // BLOCK_MIB) * BLOCK_MIB + BLOCK_MIB + DEBUG_MIB
        # The upper half can go offline, except its end, a fifth of the whole, which the debug kernel allocates first.
        memory = -(-memory // (2 * BLOCK_MIB)) * 2 * BLOCK_MIB
        # The preemption model alternates with the seed: a task loses its hart anywhere, or nowhere.
        words += ["ignore_loglevel", f"movablecore={memory // 2}M", f"preempt={'full' if boot.seed % 2 else 'none'}"]
    if boot.checks == "debug":
        settings = (f"machine.clock_hz={DEBUG_HZ}",)
    if boot.checks == "kcsan":
        words = [word for word in words if not word.startswith("nvme_core")] + ["log_buf_len=4M"]
    arch = _arch(boot)
    return guests.Guest(kernel, rootfs.image(arch, more=("stress-ng",)), data, memory=f"{memory}M", append=" ".join(words),
                        populate=None, quiet=boot.checks == "plain", settings=settings, arch=arch,
                        threads=boot.checks == "kcsan", max_seconds=7200 if boot.checks == "kcsan" else None)


def _seen_by_machine(stats: dict[str, Any]) -> list[str]:
    """Return the errors in the machine's record."""
    found = [] if any(fault["struck"] for fault in stats["faults"]) else ["the drive never hung"]
    looked = atomic.line(stats)
    if atomic.reports(stats):
        found.append(looked)
    elif looked:
        say(looked)
    return found


def mix(arch: build.Arch) -> Path:
    """Return the program that the guest's script mixes with its readers."""
    return cross.compile_program("soak_mix", [Path(__file__).with_name("soak_mix.c")], ("-pthread",), arch=arch)


def hung_image() -> Path:
    """Return the image of the drive that hangs: ext4 with a file random.bin, without the label of the data disk."""
    def make(out: Path) -> None:
        tree = out / "tree"
        tree.mkdir()
        dataset.write_random(tree / dataset.FILE, 8 * ext4.MIB, seed=7)
        ext4.make(ext4.Volume("hung", 24 * ext4.MIB, ext4.LEAN), tree, out / "hung.img")

    return cached("hung", content_key(ext4.RECIPE, dataset.RECIPE, RECIPE), "making a drive that hangs",
                  make) / "hung.img"


def unmixed(folder: Path, parts: tuple[str, ...], late: bool = True) -> list[str]:
    """Return the parts of the mix that did not work, and real-time tasks that waited too long. `late`: whether times count; on
    QEMU they depend on the host."""
    found = []
    for part in parts:
        counts = {name: int(value) for name, value in (line.split() for line in _lines(folder / "mix" / part))}
        found += [f"mix: {name} is 0" for name, value in counts.items() if not value and name != "latest_us"]
        if not counts:
            found.append(f"mix: {part} wrote no counts")
        if late and counts.get("latest_us", 0) > LATE_US:
            found.append(f"a real-time task was {counts['latest_us']} us late")
    return found


def _sum(data: Path) -> str:
    """Return mapsum's result for the data disk's file, read with the host's read()."""
    check_room(data.stat().st_size, CACHE, f"a copy of the file in {data.name}")
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        copy = Path(folder) / dataset.FILE
        subprocess.run(["debugfs", "-R", f"dump /{dataset.FILE} {copy}", data], check=True, capture_output=True)
        return subprocess.run([build.host_mapsum(), "-r", copy], check=True, capture_output=True, text=True).stdout.strip()


def counters(folder: Path) -> dict[str, int]:
    """Return the kernel's counters at the end."""
    try:
        text = (folder / "stats").read_text()
    except OSError:
        raise UserError("the guest wrote no counters: see console.txt") from None
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def usable(folder: Path) -> int:
    """Return the MiB of memory that the kernel had for others."""
    found = re.search(r"MemTotal: +(\d+) kB", (folder / "meminfo.before").read_text())
    return int(found[1]) >> 10 if found else 0


def faults(folder: Path) -> list[str]:
    """Return all errors, one line each."""
    found = [line for line in _lines(folder / "failures")]
    found += [f"kernel: {line}" for line in LINUX.sub("", _text(folder / "dmesg")).splitlines() if REPORT.search(line)
              and ("KCSAN" not in line or (OURS.search(line) and not LINUX_READS.search(line)))]
    found += [f"kmemleak: {line}" for line in _lines(folder / "kmemleak") if line.startswith("unreferenced")]
    before, after = (sum(int(line.split()[1]) for line in _lines(folder / name) if line.startswith("nr_base_pages"))
                     for name in ("page_owner.before", "page_owner"))
    if after:
        found.append(f"{after} frames of the ring are still allocated (page_owner)")
    if (folder / "page_owner").exists() and not before:
        found.append("page_owner listed no frame of the full ring, so its list at the end proves nothing")
    stats = counters(folder)
    lost = stats["frames_refilled"] - sum(stats[name] for name in FRAMES_OUT)
    if lost:
        found.append(f"{lost} frames lost: {stats['frames_refilled']} refilled, "
                     + ", ".join(f"{stats[name]} {name}" for name in FRAMES_OUT))
    return found


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
