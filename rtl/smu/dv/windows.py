# SPDX-License-Identifier: Apache-2.0
"""Windows: whatever software, walkers and rings ask for, the unit touches nothing outside them. REQ: SMU-15"""

from __future__ import annotations

from collections.abc import Iterator

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv import places
from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.memory import Access
from rtl.smu.dv.places import FIRMWARE, FREE_RING, RET_RING
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, REASONS, C, desc, get, mask, of, port, reg, window
from rtl.smu.dv.world import Window

PT, PMD, PUD, QUEUES, DOORBELLS = places.PT[0], places.PMD[0], places.PUD[0], places.SQ[0], places.BELLS[0]
SECRET = 0x5EC2_E75E_C2E7
KIB4 = 4096
TOP = 1 << 56
"""Where physical addresses end."""
LONG = 300
"""Cycles that are enough for everything except a device."""


def page(at: int, memory: bool = True, doorbell: bool = False) -> Window:
    """A window of 4 KiB."""
    return Window(at & -KIB4, at | KIB4 - 1, memory, doorbell)


def everything() -> list[Window]:
    """Windows for all that the bench's operating system uses, and for nothing else."""
    return [Window(PT, PUD + KIB4 - 1), Window(FREE_RING, RET_RING + KIB4 - 1), Window(QUEUES, QUEUES + 0xF_FFFF),
            page(DOORBELLS, memory=False, doorbell=True)]


async def begin(dut: HierarchyObject, windows: list[Window] | None, lock: bool = True, frames: int = 8) -> Bench:
    """Make a bench. First firmware sets it up, then the operating system."""
    bench = Bench(dut)
    await bench.reset()
    if windows is not None:
        await bench.os.set_windows(windows, lock)
    await bench.os.set_up(frames)
    await bench.cycles(60)
    return bench


def watch(bench: Bench) -> list[int]:
    """Let memory take every access from now on, at any address. Return a list of the addresses."""
    world, seen = bench.world, []

    def read(access: Access) -> int:
        seen.append(access.addr)
        return 0

    def write(access: Access, _: dict) -> tuple[int, bool]:
        seen.append(access.addr)
        return 0, True

    world.check_read, world.check_write, world.written = read, write, lambda *_: None
    return seen


async def ask(bench: Bench, addresses: tuple[int, int, int], walker: bool) -> tuple[int, int, int]:
    """Ask with an entry that nobody has armed: outcome, reason, answer."""
    armed = bench.world.armed(0, 77)
    if walker:
        wait = bench.walkers.ask(0, 0, seen=armed, addresses=addresses)
        await bench.answered(wait)
        return wait.outcome, wait.reason, wait.pte
    wait = await bench.os.ask_port(0, 0, seen=armed, addresses=addresses)
    return wait.outcome, wait.reason, wait.pte


def refused(answer: tuple[int, int, int]) -> bool:
    """Whether a request was answered failed(bus)."""
    return answer == (FAILED, reason("BUS"), 0)


async def error(bench: Bench) -> bool:
    """Return whether STATUS.ERROR is set, and clear it. The unit is disabled for this."""
    found = await bench.os.status("ERROR")
    await bench.os.write(reg("CTRL"), 0)
    assert await bench.os.status("ERROR") == 0
    return bool(found)


# ---- what the unit could be made to do


@cocotb.test()
async def a_port_reads_no_memory_outside(dut: HierarchyObject) -> None:
    """REQ: SMU-15. The answer `changed` carries the value read, so the unit must not read firmware's memory."""
    bench = await begin(dut, everything())
    seen = watch(bench)
    bench.world.ram.write(FIRMWARE, SECRET)
    for name in ("PTE_ADDR", "PMD_ADDR", "PUD_ADDR"):
        await bench.os.write(port(0, name), FIRMWARE)
    await bench.os.write(port(0, "ENTRY"), bench.world.armed(0, 0))
    await bench.cycles(100)
    status, answer = await bench.os.read(port(0, "STATUS")), await bench.os.read(port(0, "ANSWER"))
    assert answer != SECRET, f"SMU-15: a port reads firmware's memory: {answer:#x}"
    assert get("PORT_STATUS_OUTCOME", status) == FAILED and get("PORT_STATUS_REASON", status) == reason("BUS")
    assert FIRMWARE not in seen and answer == 0
    assert await bench.os.status("ERROR") == 1 and await bench.os.count("FAIL_BUS") == 1
    bench.keep()


@cocotb.test()
async def the_return_ring_writes_no_memory_outside(dut: HierarchyObject) -> None:
    """REQ: SMU-15. The unit uses no return ring in firmware's memory, not even one that is moved there while a frame waits."""
    bench = await begin(dut, everything(), frames=0)
    world, os = bench.world, bench.os
    seen = watch(bench)
    await os.write(reg("CTRL"), 0)
    await os.write(reg("RET_SIZE"), 1)
    await os.write(reg("CTRL"), 1)
    for entry in range(2):  # the second one waits: the return ring is full
        world.ram.write(FREE_RING + C["FREE_ENTRY_SIZE"] * entry, 0xDEAD_BEEF_1234_5678)
        world.ram.write(FREE_RING + C["FREE_ENTRY_SIZE"] * entry + C["FREE_ENTRY_DMA"], 0)
    await os.write(reg("FREE_TAIL"), 2)
    await bench.cycles(LONG)
    await os.write(reg("CTRL"), 0)
    await os.write(reg("RET_BASE"), FIRMWARE)
    await bench.cycles(LONG)
    assert world.ram.read(FIRMWARE) == 0, f"SMU-15: the return ring writes {world.ram.read(FIRMWARE):#x} where firmware is"
    await os.write(reg("CTRL"), 1)
    assert await error(bench) and await os.read(reg("CTRL")) == 0, "SMU-15: enabled with a return ring outside"
    assert not any(FIRMWARE <= at < FIRMWARE + KIB4 for at in seen)
    assert await os.status("NO_FRAMES") == 0, "SMU-5: the frame is lost"
    cover("window.ring_outside")
    for base in (FIRMWARE + KIB4, FIRMWARE, RET_RING):  # the frame waits while the ring moves
        await os.write(reg("RET_BASE"), base)
    await bench.cycles(LONG)
    assert await os.read(reg("RET_TAIL")) == 1 and world.ram.read(FIRMWARE) == 0
    assert world.ram.read(RET_RING) == 0x0EEF_1234_5678, f"SMU-15: {world.ram.read(RET_RING):#x} is no frame number"
    assert REASONS[world.ram.read(RET_RING + C["RET_ENTRY_REASON"])] == "bad_entry"
    bench.keep()


@cocotb.test()
@cocotb.parametrize(value=[0xDEAD_BEEF_1234_5678, 1 << 63, 1 << 44, (1 << 44) - 1])
async def only_the_bits_of_a_frame_number_come_back(dut: HierarchyObject, value: int) -> None:
    """REQ: SMU-15. With windows or without."""
    bench = await Bench.start(dut, frames=0)
    seen = watch(bench)
    bench.world.ram.write(FREE_RING, value)
    bench.world.ram.write(FREE_RING + C["FREE_ENTRY_DMA"], 1)
    await bench.os.write(reg("FREE_TAIL"), 1)
    await bench.until(lambda: RET_RING in seen)
    await bench.cycles(20)
    found = bench.world.ram.read(RET_RING)
    assert found == value % 2**44, f"SMU-15: {value:#x} comes back as {found:#x}"
    bench.keep()


# ---- requests


def borders(low: int, high: int) -> Iterator[tuple[int, bool]]:
    """Entries at the borders of a window, and whether they are inside."""
    yield from ((low - 8, False), (low, True), (high - 7, True), (high + 1, False))
    yield from ((low ^ 1 << 55, False), (low ^ 1 << 40, False))


@cocotb.test()
@cocotb.parametrize(walker=[False, True])
async def entries_are_held_to_the_windows(dut: HierarchyObject, walker: bool) -> None:
    """REQ: SMU-15. Each of the three addresses is tried just inside and just outside each border. Outside, no memory is read.
    REQ: SMU-11"""
    bench = await begin(dut, everything())
    seen = watch(bench)
    good = (PT, PMD, PUD)
    for which in range(3):
        for at, inside in borders(PT, PUD + KIB4 - 1):
            seen.clear()
            addresses = tuple(at if i == which else good[i] for i in range(3))
            answer = await ask(bench, addresses, walker)
            entry = bench.world.ram.read(addresses[0])
            assert answer == (CHANGED, 0, entry) if inside else refused(answer), f"SMU-15: {answer} for {addresses}"
            assert inside or not seen, f"SMU-15: memory read for {addresses}"
        cover(f"window.{('pte', 'pmd', 'pud')[which]}_outside")
    # A window has one kind, so doorbells are not memory. Addresses between two windows are in no window.
    for at in (DOORBELLS, RET_RING + KIB4, FREE_RING - KIB4):
        seen.clear()
        assert refused(await ask(bench, (at, PMD, PUD), walker)) and not seen
    assert await bench.os.status("ERROR") == 1 and (await bench.last_error())[1] == reason("BUS")
    bench.keep()


@cocotb.test()
async def misses_are_served_within_windows(dut: HierarchyObject) -> None:
    """REQ: SMU-15. The scoreboard sees every access. A bad request beside good ones is refused, and joins no miss."""
    bench = await begin(dut, everything())
    world = bench.world
    waits = [bench.walkers.ask(hart, page) for hart, page in ((0, 0), (1, 1))]
    await bench.at_device(0)
    await bench.at_device(1)
    # A miss for the PTE of this request is under way. Without windows, the request would join it. Now it must be refused.
    bad = bench.walkers.ask(2, 0, addresses=(world.pte_at(0), FIRMWARE, world.pud_at(0)))
    world.tolerates_same = True
    await bench.answered(bad)
    assert bad.is_(FAILED, reason("BUS"))
    for device in world.devices:
        device.complete()
    await bench.answered(*waits)
    assert all(wait.is_(DONE) for wait in waits)
    # Frames come back, too: that of a malformed entry, and that of a miss which the device fails.
    await bench.os.refill(1, spoil_dma=8)
    wait = bench.walkers.ask(3, 2)
    await bench.at_device(0)
    world.devices[0].complete(status=5)
    await bench.answered(wait)
    await bench.finish()


# ---- rings


async def set_ring(bench: Bench, ring: str, base: int, size: int) -> bool:
    """Set a ring up while the unit is disabled, then enable the unit. Return whether there was no error."""
    os = bench.os
    await os.write(reg("CTRL"), 0)
    await bench.cycles(LONG)
    assert not await error(bench)
    await os.write(reg(f"{ring}_BASE"), base)
    await os.write(reg(f"{ring}_SIZE"), size)
    assert await os.status("ERROR") == 0, "SMU-15: a ring that is half set up is reported as an error"
    await os.write(reg("CTRL"), 1)
    return not await error(bench)


@cocotb.test()
@cocotb.parametrize(ring=["FREE", "RET"])
async def rings_are_held_to_the_windows(dut: HierarchyObject, ring: str) -> None:
    """REQ: SMU-15. A ring that does not lie in one window as a whole is not used."""
    bench = Bench(dut)
    await bench.reset()
    os, low, high = bench.os, FREE_RING, FREE_RING + 2 * KIB4
    # Two windows lie side by side; another one ends with the address space.
    await os.set_windows([Window(low, high - 1), page(high), Window(TOP - KIB4, TOP - 1), page(DOORBELLS, False, True)])
    seen = watch(bench)
    other = "RET" if ring == "FREE" else "FREE"
    await os.write(reg(f"{other}_BASE"), low)
    await os.write(reg(f"{other}_SIZE"), 16)
    cases = ((low, 16, True), (low - 16, 16, False), (low + KIB4 - 16, 16, True), (high - 256, 16, True), (high - 240, 16, False),
             (low, 512, True), (low, 1024, False), (low + 16, 512, False), (high, 256, True), (high, 512, False),
             (high + KIB4, 16, False), (TOP - 256, 16, True), (TOP - 240, 16, False), (TOP - 256, 1 << 31, False),
             (TOP - 16, 1, True), (low, 1 << 31, False), (low - 16, 1, False), (low, 1, True), (DOORBELLS, 16, False),
             (FIRMWARE, 0, ring == "FREE"))  # size 0: without a return ring no frame can come back (REQ: SMU-16)
    for base, size, inside in cases:
        seen.clear()
        assert await set_ring(bench, ring, base, size) == inside, f"SMU-15: {ring} ring of {size} at {base:#x}"
        assert inside or not seen, f"SMU-15: {ring} ring of {size} at {base:#x} is used"
    cover("window.ring_outside")
    # First only the base is outside, then only the end.
    seen.clear()
    await os.write(reg(f"{ring}_BASE"), low)
    await os.write(reg(f"{ring}_SIZE"), 1024)
    await os.write(reg("CTRL"), 1)
    if ring == "FREE":
        await os.write(reg("FREE_TAIL"), 4)
    await bench.cycles(LONG)
    assert await error(bench) and not seen, "SMU-15: a ring outside is used"
    await os.write(reg(f"{ring}_SIZE"), 512)
    await os.write(reg("CTRL"), 1)
    await os.write(reg("FREE_TAIL"), 4)
    await bench.cycles(LONG)
    assert await os.status("ERROR") == 0 and seen, "SMU-15: a ring inside is not used"
    bench.keep()


@cocotb.test()
async def a_free_ring_outside_gives_no_frame(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-15"""
    bench = await begin(dut, everything(), frames=0)
    seen = watch(bench)
    os, world = bench.os, bench.world
    await os.write(reg("CTRL"), 0)
    await os.write(reg("FREE_BASE"), FIRMWARE)
    await os.write(reg("CTRL"), 1)
    await os.write(reg("FREE_TAIL"), 8)
    wait = bench.walkers.ask(0, 0, seen=world.pte(0))
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("DISABLED")) and FIRMWARE not in seen
    assert await os.status("ERROR") == 1 and await os.read(reg("FREE_HEAD")) == 0
    bench.keep()


# ---- descriptors


async def valid(bench: Bench, d: int, **fields: int) -> bool:
    """Set a descriptor's fields and VALID. Return whether VALID was set. VALID is cleared afterwards."""
    os = bench.os
    for name, value in fields.items():
        await os.write(desc(d, name), value)
    assert not await error(bench)
    await os.write(desc(d, "CTRL"), 1)
    took = bool(await os.read(desc(d, "CTRL")) & mask("DESC_CTRL_VALID"))
    await os.write(desc(d, "CTRL"), 0)
    assert await error(bench) != took, "SMU-15: STATUS.ERROR does not report a descriptor outside"
    return took


@cocotb.test()
@cocotb.parametrize(d=[0, 1])
async def queues_and_doorbells_are_held_to_the_windows(dut: HierarchyObject, d: int) -> None:
    """REQ: SMU-9, SMU-15. All four addresses are tried just inside and just outside windows of their kind. So is the end of a
    queue, which its depth moves."""
    bench = Bench(dut)
    await bench.reset()
    os, near, far, bell = bench.os, QUEUES, TOP - 4 * KIB4, TOP - 8 * KIB4
    await os.set_windows([page(near), Window(far, TOP - 1), page(DOORBELLS, False, True), Window(bell, bell + 3, False, True)])
    watch(bench)
    fields = {"SQ_BASE": near, "CQ_BASE": near, "SQ_DB": DOORBELLS, "CQ_DB": DOORBELLS + KIB4 - 4, "DEPTH": 9}
    assert await valid(bench, d, **fields)
    wide = fields | {"SQ_BASE": far, "CQ_BASE": far}
    cases = [(fields, {"DEPTH": 64}, True), (fields, {"DEPTH": 65}, False), (wide, {"DEPTH": 256}, True),
             (wide, {"DEPTH": 257}, False), (wide, {"CQ_BASE": near, "DEPTH": 256}, True),
             (wide | {"SQ_BASE": far - KIB4}, {"DEPTH": 256}, False)]
    for name in ("SQ_BASE", "CQ_BASE"):
        for base, inside in ((near - KIB4, False), (near + KIB4, False), (far, True), (TOP - KIB4, True), (far - KIB4, False),
                             (DOORBELLS & -KIB4, False), (FIRMWARE, False)):
            cases.append((fields, {name: base}, inside))
        cases.append((fields | {"SQ_BASE": far, "DEPTH": 256}, {"CQ_BASE": far + 3 * KIB4}, True))
    for name in ("SQ_DB", "CQ_DB"):
        for at, inside in ((DOORBELLS & -KIB4, True), ((DOORBELLS & -KIB4) - 4, False), ((DOORBELLS | KIB4 - 4) + 4, False),
                           (near, False), (bell, True), (bell + KIB4 - 4, True), (bell + KIB4, False), (bell | 1 << 60, False),
                           (DOORBELLS | 1 << 56, False)):
            cases.append((fields, {name: at}, inside))
    for start, change, inside in cases:
        assert await valid(bench, d, **start | change) == inside, f"SMU-15: a descriptor with {change} on {start}"
    cover("window.queue_outside")
    cover("window.doorbell_outside")
    bench.keep()


# ---- the windows themselves


async def takes(bench: Bench, w: int, name: str, value: int) -> bool:
    """Whether a window's register takes a new value. Checks that a refusal is reported."""
    os = bench.os
    before = await os.read(window(w, name))
    await os.write(window(w, name), value)
    after, told = await os.read(window(w, name)), await os.status("ERROR")
    assert after in (before, value) and before != value
    assert told or after == value, "SMU-15: STATUS.ERROR does not report a refused write"
    return after == value


@cocotb.test()
async def a_locked_window_never_changes(dut: HierarchyObject) -> None:
    """REQ: SMU-15. A lock lasts until reset. Writes by halves do not change the window either."""
    bench = Bench(dut)
    await bench.reset()
    os, windows = bench.os, everything()
    count = get("REG_CAP_WINDOWS", await os.read(reg("CAP")))
    assert count == len(windows)
    await os.set_windows(windows, lock=False)
    await os.write(reg("WINDOW_LOCK"), 0)
    assert await os.read(reg("WINDOW_LOCK")) == 0 and not await error(bench)
    assert await takes(bench, 0, "LAST", PUD | 0xFFF000) and not await error(bench)
    await os.write(reg("WINDOW_LOCK"), 1)
    assert await os.read(reg("WINDOW_LOCK")) == 1 and not await error(bench)
    held = [[await os.read(window(w, name)) for name in ("FIRST", "LAST", "CTRL")] for w in range(8)]
    assert not any(any(row) for row in held[count:])
    for w in range(count):
        for name, value in (("FIRST", 0), ("LAST", TOP - KIB4), ("CTRL", 0), ("CTRL", 3)):
            await os.write(window(w, name), value)
            assert await error(bench), "SMU-15: STATUS.ERROR does not report a write to a locked window"
            await os.write(window(w, name) + 4, 0xFF_FFFF, 4)
            assert await error(bench)
    for value in (0, 1):
        await os.write(reg("WINDOW_LOCK"), value)
        assert await error(bench)
    now = [[await os.read(window(w, name)) for name in ("FIRST", "LAST", "CTRL")] for w in range(8)]
    assert now == held and await os.read(reg("WINDOW_LOCK")) == 1, f"SMU-15: a locked window has changed: {held} {now}"
    cover("window.locked")
    dut.rst_ni.value = 0
    await bench.cycles(4)
    dut.rst_ni.value = 1
    await bench.cycles(4)
    assert await os.read(reg("WINDOW_LOCK")) == 0 and await os.read(window(0, "CTRL")) == 0
    assert await takes(bench, 0, "FIRST", FIRMWARE)
    bench.keep()


@cocotb.test()
async def windows_change_only_at_rest(dut: HierarchyObject) -> None:
    """REQ: SMU-15. Not while the unit is enabled, a descriptor is valid, a command is outstanding, or a doorbell is under way."""
    bench = await begin(dut, everything(), lock=False)
    os, world = bench.os, bench.world
    now = 0

    async def refused_now() -> bool:
        nonlocal now
        now += 1
        return not await takes(bench, 3, "FIRST", (DOORBELLS & -KIB4) - now * KIB4)

    assert await refused_now(), "SMU-15: a window of an enabled unit changes"
    await os.write(reg("WINDOW_LOCK"), 1)
    assert await os.read(reg("WINDOW_LOCK")) == 0
    await os.write(reg("CTRL"), 0)
    assert await refused_now(), "SMU-15: a window changes while a descriptor is valid"
    await os.write(reg("TIMEOUT"), 100)
    await os.write(reg("CTRL"), 1)
    wait = bench.walkers.ask(0, 0)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("TIMEOUT"))
    await os.write(reg("CTRL"), 0)
    for d in range(world.sizes.devices):
        await os.invalidate(d)
    assert await refused_now(), "SMU-15: a window changes while a command is in quarantine"
    bench.doorbells.silent.add(0)
    world.devices[0].complete()  # its head doorbell is not taken
    await bench.until(lambda: bench.doorbells.ringing(0))
    await bench.cycles(20)
    assert await os.status("NO_DMA") == 1
    assert await refused_now(), "SMU-15: a window changes while a doorbell is under way"
    bench.doorbells.silent.clear()
    await bench.cycles(100)
    assert not await refused_now(), "SMU-15: a window does not change although all is at rest"
    cover("window.in_use")
    world.windows = None
    await os.take_returned()
    await bench.finish()


@cocotb.test()
async def windows_come_before_or_behind_rings(dut: HierarchyObject) -> None:
    """REQ: SMU-15. Rings that were set up before the windows are checked when the unit is enabled."""
    bench = await begin(dut, None)
    os = bench.os
    await os.write(reg("CTRL"), 0)
    for d in range(bench.world.sizes.devices):
        await os.invalidate(d)
    await bench.cycles(LONG)
    await os.take_returned()
    for spoilt in (FREE_RING, RET_RING):
        windows = [page(other) for other in (FREE_RING, RET_RING) if other != spoilt]
        await os.set_windows(windows, lock=False)
        await os.write(reg("CTRL"), 1)
        assert await error(bench), f"SMU-15: the ring at {spoilt:#x} is in no window"
    await os.set_windows(everything(), lock=True)
    await os.write(reg("CTRL"), 1)
    assert await os.status("ERROR") == 0
    for d in range(bench.world.sizes.devices):
        await os.set_up_descriptor(d)
    await os.refill(4)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(windows=["none", "empty", "disabled", "doorbell"])
async def windows_that_hold_nothing_forbid_everything(dut: HierarchyObject, windows: str) -> None:
    """REQ: SMU-15. A lock without windows; a last address before the first; a window without a kind; only doorbells."""
    bench = Bench(dut)
    await bench.reset()
    whole = Window(0, TOP - 1, False, windows == "doorbell")
    some = {"none": [], "empty": [Window(PUD, PT + KIB4 - 1), page(DOORBELLS, False, True)], "disabled": [whole],
            "doorbell": [whole]}[windows]
    await bench.os.set_windows(some, lock=windows != "empty")
    seen = watch(bench)
    assert not await set_ring(bench, "RET", RET_RING, 16), "SMU-15: enabled with a ring in no window"
    for walker in (False, True):
        assert await ask(bench, (PT, PMD, PUD), walker) == (FAILED, reason("DISABLED"), 0)
    assert not seen
    fields = {"SQ_BASE": QUEUES, "CQ_BASE": QUEUES, "SQ_DB": DOORBELLS, "CQ_DB": DOORBELLS, "DEPTH": 9}
    assert not await valid(bench, 0, **fields)
    bench.keep()


@cocotb.test()
async def without_windows_everything_is_allowed(dut: HierarchyObject) -> None:
    """REQ: SMU-15. While no window is in force, software is trusted."""
    bench = await Bench.start(dut)
    assert await bench.os.read(reg("WINDOW_LOCK")) == 0
    watch(bench)
    bench.world.ram.write(FIRMWARE, of("PTE_LBA", 5))
    assert await ask(bench, (FIRMWARE, FIRMWARE, FIRMWARE), walker=True) == (CHANGED, 0, of("PTE_LBA", 5))
    bench.keep()
