# SPDX-License-Identifier: Apache-2.0
"""An operating system that keeps its side of the contract: rings, descriptors, ports, fences, arming and withdrawal."""

from __future__ import annotations

import random

from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from rtl.smu.dv.coverage import cover
from rtl.smu.dv.places import BELLS, FREE_RING, NSID, PFN, RET_RING
from rtl.smu.dv.spec import COUNTERS, PFN_MASK, REASONS, C, desc, get, mask, of, port, reg, window
from rtl.smu.dv.walkers import Wait, Walkers
from rtl.smu.dv.world import BLOCKS, NEVER, L, Window, World


class System:
    """Accesses registers as Linux does."""

    def __init__(self, dut: HierarchyObject, world: World, walkers: Walkers, rng: random.Random) -> None:
        """Connect to the register port. Nothing is set up yet."""
        bus = AxiLiteBus.from_prefix(dut, "s_axil")
        self.axil = AxiLiteMaster(bus, dut.clk_i, dut.rst_ni, reset_active_level=False)
        self.clk, self.world, self.walkers, self.rng = dut.clk_i, world, walkers, rng
        self.generation = 0
        self.halves = 0.0
        """Share of register writes that are done by two halves."""
        self.wandering = False
        """Whether a page that is armed again may be on another device."""
        self.withdrawn: set[int] = set()
        """Pages that were withdrawn, with a fence that must be over before they are armed again."""
        self.tail = self.head = 0
        """Tail of the free ring, and head of the return ring."""
        self.port_waits: dict[int, Wait] = {}

    # ---- registers

    async def read(self, offset: int) -> int:
        """Read a whole register."""
        answer = await self.axil.read(offset, 8)
        assert int(answer.resp) == 0, f"SMU-10: read of {offset:#x} is answered {answer.resp!r}"
        return int.from_bytes(answer.data, "little")

    async def write(self, offset: int, value: int, size: int = 8) -> None:
        """Write a register, or `size` bytes of it; sometimes by halves, where the effect is the same."""
        field = (offset - C["DESC_BASE"]) % C["DESC_STRIDE"] if C["DESC_BASE"] <= offset < C["PORT_BASE"] else None
        whole = offset >= C["PORT_BASE"] or field in (C["DESC_RELEASE"], C["DESC_EXPIRE"])
        if size == 8 and not whole and self.rng.random() < self.halves:
            for part in (0, 4):
                await self.write(offset + part, value >> 8 * part & 0xffff_ffff, 4)
            return
        answer = await self.axil.write(offset, value.to_bytes(size, "little"))
        assert int(answer.resp) == 0, f"SMU-10: write of {offset:#x} is answered {answer.resp!r}"

    async def status(self, field: str) -> int:
        """A field of STATUS."""
        return get(f"REG_STATUS_{field}", await self.read(reg("STATUS")))

    async def count(self, name: str) -> int:
        """A counter."""
        return await self.read(reg(f"CNT_{name}"))

    async def failed_with_error(self, offset: int, value: int) -> bool:
        """Write a register. Return whether STATUS.ERROR is set afterwards."""
        await self.write(offset, value)
        return await self.status("ERROR") == 1

    # ---- setting up

    async def set_windows(self, windows: list[Window], lock: bool = True) -> None:
        """Set the windows, as firmware does before it starts an operating system (REQ: SMU-15)."""
        count = get("REG_CAP_WINDOWS", await self.read(reg("CAP")))
        assert len(windows) <= count
        self.world.windows = None  # check no windows until all are set
        for w in range(count):
            found = windows[w] if w < len(windows) else Window(0, 0, False, False)
            ctrl = of("WINDOW_CTRL_MEMORY", found.memory) | of("WINDOW_CTRL_DOORBELL", found.doorbell)
            for name, value in (("CTRL", 0), ("FIRST", found.first), ("LAST", found.last), ("CTRL", ctrl)):
                await self.write(window(w, name), value)
        if lock:
            await self.write(reg("WINDOW_LOCK"), 1)
        assert await self.status("ERROR") == 0, "SMU-15: a window is refused at rest"
        self.world.windows = windows

    async def set_up(self, frames: int) -> None:
        """Arm all pages, set up rings and descriptors, enable the unit, and put frames into the ring."""
        world = self.world
        for page in range(world.sizes.pages):
            world.ram.write(world.pte_at(page), world.armed(page, 0))
        for name, value in (("FREE_BASE", FREE_RING), ("FREE_SIZE", world.sizes.free_entries), ("RET_BASE", RET_RING),
                            ("RET_SIZE", world.sizes.ret_entries)):
            await self.write(reg(name), value)
        for d in range(world.sizes.devices):
            await self.set_up_descriptor(d)
        await self.write(reg("CTRL"), 1)
        assert await self.read(reg("CTRL")) == 1, "SMU-16: ENABLE is refused although nothing is wrong"
        await self.refill(frames)
        assert await self.status("ERROR") == 0

    async def set_up_descriptor(self, d: int) -> None:
        """Set up a descriptor for a queue pair."""
        world, bell = self.world, BELLS[d]
        for name, value in (("SQ_BASE", world.sq(d)), ("CQ_BASE", world.cq(d)), ("SQ_DB", bell), ("CQ_DB", bell + 4),
                            ("DEPTH", world.sizes.depth), ("NSID", NSID[d]), ("BLOCKS", BLOCKS.bit_length() - 1), ("CTRL", 1)):
            await self.write(desc(d, name), value)

    async def invalidate(self, d: int) -> None:
        """Clear VALID: no more commands go to this device."""
        await self.write(desc(d, "CTRL"), 0)

    async def release(self, d: int) -> None:
        """Delete the queue pair, then write RELEASE."""
        if await self.read(desc(d, "CTRL")) & mask("DESC_CTRL_VALID"):
            return
        quarantined = await self.read(desc(d, "QUARANTINED"))
        if quarantined:
            cover("release.quarantined")
        if len(self.world.devices[d].pending) > quarantined:
            cover("release.at_device")
        self.world.devices[d].pending.clear()
        self.world.devices[d].deleted = True
        await self.write(desc(d, "RELEASE"), 0)
        await self.rung(d)
        self.world.devices[d].reset()

    async def rung(self, d: int) -> None:
        """Wait until no doorbell write of an old queue pair is under way."""
        while await self.read(desc(d, "CTRL")) & mask("DESC_CTRL_RINGING"):
            cover("release.ringing")
            await ClockCycles(self.clk, 10)

    # ---- rings

    async def refill(self, frames: int, spoil_pfn: int = 0, spoil_dma: int = 0) -> int:
        """Put frames into the free ring: `frames`, or fewer if there are fewer frames or less room. Return their number. The bits
        of `spoil_*` are added to each entry."""
        world, size = self.world, self.world.sizes.free_entries
        head, put = await self.read(reg("FREE_HEAD")), 0
        # A frame that the unit will return with MAPPED is not given before that, so that the test can tell its two uses apart.
        ours = [frame for frame, place in enumerate(world.places) if place == "os" and frame not in world.doubts]
        while put < frames and (self.tail - head) % 2**32 < size and ours:
            frame = ours.pop(0)
            at = FREE_RING + C["FREE_ENTRY_SIZE"] * (self.tail % size)
            world.ram.write(at + C["FREE_ENTRY_PFN"], PFN[frame] | spoil_pfn)
            world.ram.write(at + C["FREE_ENTRY_DMA"], world.dma(frame) | spoil_dma)
            world.places[frame] = "smu"
            self.tail, put = (self.tail + 1) % 2**32, put + 1
            if self.tail % size == 0:
                cover("free.wrap")
        if put:
            await self.write(reg("FREE_TAIL"), self.tail)
        return put

    async def take_returned(self) -> list[str]:
        """Empty the return ring, and return the reasons in order."""
        world, size = self.world, self.world.sizes.ret_entries
        tail, reasons = await self.read(reg("RET_TAIL")), []
        if (tail - self.head) % 2**32 == size:
            cover("return.full")
        while self.head != tail:
            at = RET_RING + C["RET_ENTRY_SIZE"] * (self.head % size)
            frame = world.frame(world.ram.read(at + C["RET_ENTRY_PFN"]) & PFN_MASK)
            word = world.ram.read(at + C["RET_ENTRY_REASON"])
            reason = REASONS[get("RETURNED_REASON", word)]
            if get("RETURNED_MAPPED", word):
                cover("return.mapped")
                reason += " mapped"
            if world.returns.pop(0):  # software would look for an entry that maps the frame
                assert frame is not None and world.places[frame] == "returned", "SMU-5: a returned frame was never given"
                world.take_back(frame)
            cover(f"return.{REASONS[get('RETURNED_REASON', word)]}")
            reasons.append(reason)
            self.head = (self.head + 1) % 2**32
            if self.head % size == 0:
                cover("return.wrap")
        await self.write(reg("RET_HEAD"), self.head)
        return reasons

    async def mend_return_ring(self) -> None:
        """Set the return ring up again, as after a bus error. This resets its indices, so entries that come after the last look
        would be lost. So first wait until none has come for a while."""
        while True:
            await self.take_returned()
            await ClockCycles(self.clk, 300)
            if await self.read(reg("RET_TAIL")) == self.head:
                break
        await self.write(reg("RET_BASE"), RET_RING)
        self.head = 0

    # ---- fences (REQ: SMU-8)

    async def begin(self, d: int, kind: str = "FENCE") -> None:
        """Begin a fence or a drain of a descriptor."""
        await self.write(desc(d, "FENCE"), mask(f"DESC_FENCE_{kind}"))

    async def busy(self, d: int, kind: str = "FENCE") -> bool:
        """Whether a fence or a drain of a descriptor is under way."""
        return bool(await self.read(desc(d, "FENCE")) & mask(f"DESC_FENCE_{kind}"))

    async def fence(self, d: int, kind: str = "FENCE") -> None:
        """Begin a fence or a drain, wait until it is over, and check what it promises."""
        world = self.world
        cover(f"fence.{kind.lower()}_{'pending' if await self.status('LIVE') else 'idle'}")
        if await self.busy(d, kind):
            cover("fence.again")
        before = world.acceptances
        await self.begin(d, kind)
        first = True
        while await self.busy(d, kind):
            cover(f"fence.{kind.lower()}_waits")
            if not first and world.acceptances > before + 2:
                cover("fence.requests_meanwhile")
            first = False
            await ClockCycles(self.clk, 10)
        world.fenced[d] = max(world.fenced[d], before)
        if kind == "DRAIN":
            world.drained[d] = max(world.drained[d], before)
        left = [wait for wait in self.walkers.waits
                if wait and wait.accepted and wait.accepted <= before and get("PTE_DEVICE", wait.seen) == d]
        world.check(not left, "SMU-8", f"{left} still waits after {kind.lower()} of {d}")

    async def expire(self, d: int) -> None:
        """Let the time of all commands at the device run out."""
        await self.write(desc(d, "EXPIRE"), self.rng.getrandbits(64))

    async def withdraw(self, page: int) -> None:
        """Take a page, armed or present, out of the page table; then fence."""
        world, pte = self.world, self.world.pte(page)
        if page in self.withdrawn:
            return
        self.withdrawn.add(page)
        world.ram.write(world.pte_at(page), 0)
        if pte & mask("PTE_V"):
            frame = world.frame(get("PTE_PFN", pte))
            if frame is not None:
                world.take_back(frame)
        await self.fence(world.device_of(page))
        self.withdrawn.discard(page)

    def arm(self, page: int, other_block: bool = True, soft: bool = False) -> bool:
        """Arm a page that is withdrawn and fenced, with another block or the same one. Return whether it was armed."""
        world = self.world
        if world.pte(page) or page in self.withdrawn:
            return False
        self.generation += other_block
        if self.wandering:
            world.device[page] = self.rng.randrange(world.sizes.devices)
        world.ram.write(world.pte_at(page), world.armed(page, self.generation) | (mask("PTE_SOFT") if soft else 0))
        world.lost_marks.discard(page)
        return True

    def adopt(self, page: int) -> None:
        """Do what kpted does: clear the marks from the top, then look below (OS-6)."""
        world = self.world
        for at in (world.pud_at(page), world.pmd_at(page)):
            world.ram.write(at, world.ram.read(at) & ~L)
        for p in range(world.sizes.pages):
            if world.pud_at(p) == world.pud_at(page) and world.pte(p) & mask("PTE_V"):
                world.ram.write(world.pte_at(p), world.pte(p) & ~L)
        cover("install.adopted_meanwhile" if "pte" in world.progress.values() else "install.adopted")

    # ---- software request ports (REQ: SMU-11)

    async def ask_port(self, number: int, page: int, seen: int | None = None, addresses: tuple[int, int, int] | None = None,
                       halves: bool = False) -> Wait:
        """Ask through a port, and poll until the answer is there."""
        world = self.world
        at = addresses or (world.pte_at(page), world.pmd_at(page), world.pud_at(page))
        for name, value in zip(("PTE_ADDR", "PMD_ADDR", "PUD_ADDR"), at, strict=True):
            await self.write(port(number, name), value)
        wait = Wait(-1, page, world.pte(page) if seen is None else seen, 0, at)
        world.ports[number], world.accepted[page] = page, NEVER
        if halves:
            await self.write(port(number, "ENTRY"), wait.seen & 0xffff_ffff, 4)
            assert not await self.read(port(number, "STATUS")) & mask("PORT_STATUS_BUSY"), "SMU-11: the low half starts a request"
            await self.write(port(number, "ENTRY") + 4, wait.seen >> 32, 4)
            cover("register.port_halves")
        else:
            await self.write(port(number, "ENTRY"), wait.seen)
        while (status := await self.read(port(number, "STATUS"))) & mask("PORT_STATUS_BUSY"):
            world.check(get("PORT_STATUS_OUTCOME", status) == 0, "SMU-11", "a port shows an outcome while it is busy")
            await ClockCycles(self.clk, 5)
        wait.outcome, wait.reason = get("PORT_STATUS_OUTCOME", status), get("PORT_STATUS_REASON", status)
        wait.pte = await self.read(port(number, "ANSWER"))
        del world.ports[number]
        asking = any(other and other.accepted is None and other.page == page for other in self.walkers.waits)
        if not asking and not world.port_asks(page):
            world.accepted[page] = min(world.accepted[page], world.acceptances + 1)
        if addresses is None:
            self.walkers.check_outcome(wait, "port")
        return wait

    # ---- the end

    async def finish(self) -> None:
        """Let everything end, shut the SMU down in order, and check what is left."""
        world, walkers = self.world, self.walkers
        world.faults.clear()
        for device in world.devices:
            device.delay = lambda: 0
            for command in device.pending:
                command.due = 0
        for _ in range(200):
            await self.take_returned()
            if not await self.status("LIVE") and not any(walkers.waits) and not world.ports:
                break
            await ClockCycles(self.clk, 100)
        world.check(await self.status("LIVE") == 0, "SMU-10", f"a miss hangs: {walkers.waits}")
        world.check(not any(walkers.waits), "SMU-6", f"never answered: {walkers.waits}")
        world.check(not world.ports, "SMU-11", f"ports never answered: {world.ports}")
        await self.write(reg("CTRL"), 0)
        for d in range(world.sizes.devices):
            await self.invalidate(d)
            await self.release(d)
        await self.mend_return_ring()
        want = mask("REG_STATUS_IDLE") | mask("REG_STATUS_NO_DMA") | mask("REG_STATUS_NO_FRAMES")
        for _ in range(50):
            await ClockCycles(self.clk, 50)
            await self.take_returned()
            status = await self.read(reg("STATUS")) & ~mask("REG_STATUS_ERROR")
            if status == want:
                break
        world.check(status == want, "SMU-5", f"the unit does not come to rest: status {status:#x}")
        for d in range(world.sizes.devices):
            world.check(await self.read(desc(d, "FENCE")) == 0, "SMU-8", f"a fence of {d} is not over")
        await self._check_frames()
        self._check_marks()
        counts = {name: await self.count(name) for name in COUNTERS}
        outcomes = sum(count for name, count in counts.items() if name in ("COALESCED", "INSTALLED", "CHANGED") or "FAIL" in name)
        world.check(counts["REQUESTS"] == outcomes, "SMU-10", f"counters do not add up: {counts}")
        world.check(counts["REQUESTS"] - counts["PORT_REQUESTS"] == world.acceptances, "SMU-10",
                    f"{world.acceptances} requests of walkers accepted, counted {counts}")

    async def _check_frames(self) -> None:
        """Check that no frame is lost: each frame that the SMU was given and did not install or return is still in the free
        ring."""
        world, size = self.world, self.world.sizes.free_entries
        head, at = await self.read(reg("FREE_HEAD")), lambda i: FREE_RING + C["FREE_ENTRY_SIZE"] * (i % size)
        ring = sorted(world.frame(world.ram.read(at(head + i)) & PFN_MASK) for i in range((self.tail - head) % 2**32))
        given = [frame for frame, place in enumerate(world.places) if place == "smu"]
        world.check(ring == given, "SMU-5", f"frames {given} given, {ring} in the ring")

    def _check_marks(self) -> None:
        """Check that each page not yet adopted can be found by the marks above it."""
        world = self.world
        for page in range(world.sizes.pages):
            pte = world.pte(page)
            if pte & mask("PTE_V") and pte & L and page not in world.lost_marks:
                found = world.ram.read(world.pmd_at(page)) & world.ram.read(world.pud_at(page)) & L
                world.check(found != 0, "SMU-3", f"page {page} is installed, but its marks are not set, so kpted cannot find it")
