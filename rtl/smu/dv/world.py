# SPDX-License-Identifier: Apache-2.0
"""Page tables, rings and queues around the SMU, and the scoreboard: it sees every access and fails the test at the first
breach of a rule (spec/smu.md)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from rtl.smu.dv import places
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.memory import DECERR, OKAY, SLVERR, Access, Ram
from rtl.smu.dv.places import FREE_RING, RET_RING
from rtl.smu.dv.spec import PFN_MASK, C, get, installed, mask, names_block, of

BLOCKS = 8
"""Number of blocks of 512 bytes in a page."""
L = mask("PTE_L")
NEVER = 1 << 60


@dataclass
class Sizes:
    """Sizes of the bench. Rings are smaller than a driver would make them, so that they get full."""

    pmshr: int = 8
    harts: int = 4
    devices: int = 2
    pages: int = 24
    frames: int = 24
    free_entries: int = 16
    ret_entries: int = 8

    @property
    def depth(self) -> int:
        """Entries of a queue: as few as allowed, and an odd number, so that wraps happen at any place."""
        return self.pmshr + 1


@dataclass(frozen=True)
class Window:
    """Addresses that the unit may use, from the first byte to the last (REQ: SMU-15)."""

    first: int
    last: int
    memory: bool = True
    doorbell: bool = False


@dataclass
class World:
    """The scoreboard."""

    sizes: Sizes
    rng: random.Random
    ram: Ram = field(default_factory=Ram)
    cycle: int = 0
    faults: set[str] = field(default_factory=set)
    """Areas in which accesses meet a bus error. With names like `pte.write` only writes do."""
    fault_share: float = 1.0
    """Share of accesses in these areas that meet a bus error."""
    atomics: bool = False
    """Whether the unit changes entries by atomic accesses instead of exclusive pairs."""
    effect_share: float = 0.0
    """Share of writes with a bus error that take effect all the same."""

    def __post_init__(self) -> None:
        """Nothing has happened yet."""
        self.device = [page % self.sizes.devices for page in range(self.sizes.pages)]
        """The descriptor that each page's entries name."""
        self.frames = {places.PFN[frame]: frame for frame in range(self.sizes.frames)}
        kinds = (("pte", places.PT, 1), ("pmd", places.PMD, 4), ("pud", places.PUD, 12))
        self.entries = {at[i]: (name, i) for name, at, share in kinds for i in range(-(-self.sizes.pages // share))}
        """Page table entries by address: kind, and number."""
        self.places: list[str | int] = ["os"] * self.sizes.frames
        """Where each frame is: os, smu, returned, or the page that maps it."""
        self.content: list[int | None] = [None] * self.sizes.frames
        self.devices: list = []
        self.commands: dict[int, int] = {}
        """The latest command identifier of each of the unit's entries."""
        self.windows: list[Window] | None = None
        """Windows that are in force, or None if there are none."""
        self.progress: dict[int, str] = {}
        """Last step of each page's install."""
        self.updating: dict[int, int] = {}
        """For each AXI identifier, the page that it is installing."""
        self.errors: dict[int, tuple[int, int, int, bool]] = {}
        """For each AXI identifier, the install whose PTE write met a bus error and was not read back: page, entry seen, frame,
        and whether the write took effect."""
        self.doubts: dict[int, bool] = {}
        """Frames of which the unit cannot know whether a page maps them, and whether one does (REQ: SMU-13)."""
        self.returns: list[bool] = []
        """For each entry of the return ring: whether the unit had the frame, so that the operating system has it again."""
        self.lost_marks: set[int] = set()
        self.acceptances = 0
        self.accepted = [0] * self.sizes.pages
        """Place in the order of acceptance of each page's latest request; NEVER while one may still be accepted."""
        self.fenced, self.drained = [0] * self.sizes.devices, [0] * self.sizes.devices
        """For each descriptor, the last place in the order of acceptance that its finished fences and drains cover."""
        self.ports: dict[int, int] = {}
        """For each software request port that waits, the page that it has asked for."""
        self.tolerates_same = False
        """Whether `changed` may come with the value that was seen. This happens after joining a miss whose first request saw
        another value, or if exclusive pairs fail so often that the unit gives up the exchange."""
        self.tried: dict[int, list[int]] = {}
        """Words at which the unit tests the fabric: the value before the test, and the number of plain writes since."""
        self.installs: dict[int, int] = {}
        """For each page, the entry that was installed last, or that the unit tried to install."""
        self.trace: list[tuple[str, int]] = []
        """Accesses that took effect, by area and index."""

    def check(self, holds: bool, rule: str, what: str) -> None:
        """Fail the test unless `holds` is true."""
        assert holds, f"{rule}: {what} (cycle {self.cycle})"

    # ---- addresses

    def pte_at(self, page: int) -> int:
        """Address of the page's leaf entry."""
        return places.PT[page]

    def pmd_at(self, page: int) -> int:
        """Address of the page's PMD entry; four pages share one."""
        return places.PMD[page // 4]

    def pud_at(self, page: int) -> int:
        """Address of the page's PUD entry; twelve pages share one."""
        return places.PUD[page // 12]

    def sq(self, d: int) -> int:
        """Address of the submission queue."""
        return places.SQ[d]

    def cq(self, d: int) -> int:
        """Address of the completion queue."""
        return places.CQ[d]

    def area(self, at: int) -> tuple[str, int]:
        """The area to which an address belongs, and its number there: page table entry, ring entry or descriptor."""
        sizes = self.sizes
        if at in self.entries:
            return self.entries[at]
        for name, base, count in (("free", FREE_RING, sizes.free_entries), ("ret", RET_RING, sizes.ret_entries)):
            if base <= at < base + count * 16:
                return name, (at - base) // 16
        for d in range(sizes.devices):
            for name, base, size in (("sq", self.sq(d), 64), ("cq", self.cq(d), 16)):
                if base <= at < base + size * sizes.depth:
                    return name, d
            if at & ~4 == places.BELLS[d]:
                return "cq_bell" if at & 4 else "sq_bell", d
        return "nowhere", 0

    def device_of(self, page: int) -> int:
        """The descriptor that a page's entries name."""
        return self.device[page]

    def armed(self, page: int, generation: int) -> int:
        """The armed entry of a page; its block encodes page and generation."""
        lba = BLOCKS * (page + self.sizes.pages * (generation + places.LBA))
        flags = L | mask("PTE_U") | mask("PTE_R") | mask("PTE_A")
        return flags | of("PTE_LBA", lba) | of("PTE_DEVICE", self.device_of(page))

    def pte(self, page: int) -> int:
        """The present value of the leaf entry."""
        return self.ram.read(self.pte_at(page))

    def frame(self, pfn: int) -> int | None:
        """The frame with this frame number, or None."""
        return self.frames.get(pfn)

    def dma(self, frame: int) -> int:
        """Address by which a device reaches the frame."""
        return places.DMA[frame]

    def take_back(self, frame: int) -> None:
        """Give the frame back to the operating system."""
        self.places[frame], self.content[frame] = "os", None

    def marked(self, page: int) -> bool:
        """Whether the page's last install has set both marks."""
        return self.progress.get(page) == "pud"

    def port_asks(self, page: int) -> bool:
        """Whether a port waits for the page."""
        return page in self.ports.values()

    # ---- accesses

    def held(self, at: int, size: int, doorbell: bool = False) -> None:
        """Check that an access lies in a window of its kind."""
        if self.windows is not None:
            inside = any(w.first & -4096 <= at and at + size <= (w.last | 4095) + 1 and (w.doorbell if doorbell else w.memory)
                         for w in self.windows)
            self.check(inside, "SMU-15", f"access to {size} bytes at {at:#x}, which is in no window")

    def _fault(self, area: str, write: bool = False) -> int:
        """The response of an access: an error if a fault is set for its area."""
        if area not in self.faults and not (write and f"{area}.write" in self.faults):
            return OKAY
        if self.rng.random() >= self.fault_share:
            return OKAY
        if area in ("pmd", "pud"):
            self.lost_marks |= {page for page in range(self.sizes.pages) if self.progress.get(page) in ("pte", "pmd")}
        cover(f"bus.{area}")
        resp = self.rng.choice((SLVERR, DECERR))
        cover("bus.slverr" if resp == SLVERR else "bus.decerr")
        return resp

    def check_read(self, access: Access) -> int:
        """Check a read that takes effect, and return its response."""
        area, index = self.area(access.addr)
        want = 16 if area == "free" else 8
        tried = area == "ret" and index == 0 and (self.atomics or access.lock and access.addr == RET_RING)
        self.check(not (self.atomics and access.lock), "SMU-16", f"an exclusive {access}")
        self.check(area in ("pte", "pmd", "pud", "free", "cq") or tried, "SMU-10", f"read of {access.addr:#x} ({area})")
        size = access.beats << access.size
        self.held(access.addr, size)
        self.check(size == want and access.addr % 8 == 0, "SMU-10", f"read of {size} bytes at {access.addr:#x} ({area})")
        if area == "cq":
            self.check(self.devices[index].owed > 0, "SMU-9", f"completion queue {index} is read while no command is outstanding")
        resp = self._fault(area)
        if area == "pte" and access.id in self.errors:
            self._read_back(access.id, index, resp)
        if resp:
            return resp
        if tried and (access.lock or access.addr not in self.tried):
            self.tried[access.addr] = [self.ram.read(access.addr), 0]
        self.trace.append((area, index))
        if area in ("pmd", "pud"):
            self._mark(access, area, self.ram.read(access.addr) & L != 0, found=True)
        return OKAY

    def check_write(self, access: Access, words: dict[int, tuple[int, int]]) -> tuple[int, bool]:
        """Check a write before it takes effect: its response, and whether it takes effect."""
        area, index = self.area(access.addr)
        size = {"pte": 8, "pmd": 8, "pud": 8, "sq": 64, "ret": 16, "sq_bell": 4, "cq_bell": 4}.get(area, 0)
        written = sum(part.bit_count() for _, part in words.values())
        if tried := area == "ret" and index == 0 and (access.lock or self.atomics and written == 8):
            size = 8
        self.check(size != 0, "SMU-10", f"write to {access.addr:#x} ({area})")
        self.held(access.addr, size, doorbell=area.endswith("bell"))
        self.check(written == size and access.addr % size == 0, "SMU-10", f"write of {written} at {access.addr:#x} ({area})")
        atomic = access.atop != 0 if self.atomics else access.lock
        self.check(atomic == (area in ("pte", "pmd", "pud")) or tried, "SMU-3", f"{area} written by {access}")
        port = -1 - access.id if access.id < 0 else None
        self.check(port == (index if area.endswith("bell") else None), "SMU-9", f"{area} {index} written by port {port}")
        resp = self._fault(area, write=True)
        effect = not resp or self.rng.random() < self.effect_share
        if resp:
            cover(f"write_error.{area}_{'done' if effect else 'not_done'}")
        value = words[access.addr & ~7][0] if access.addr & ~7 in words else 0
        if area == "pte":
            seen = self.ram.read(access.addr)
            frame = self._install(access.id, index, seen, value, effect)
            if resp:
                self.errors[access.id] = index, seen, frame, effect
        if tried:
            self._try(access, value)
        if not effect:
            return resp, False
        self.trace.append(("ret_tried" if tried else area, index))
        if area in ("pmd", "pud"):
            self.check(value == self.ram.read(access.addr) | L, "SMU-3", f"{area} {index} written as {value:#x}")
            self._mark(access, area, True, found=False)
        return resp, True

    def _try(self, access: Access, value: int) -> None:
        """Check a write of the fabric's test before it takes effect (REQ: SMU-16). A pair writes the word back unchanged. Atomic
        accesses come between a first plain write and a second one, which restores the word."""
        self.check(access.addr in self.tried, "SMU-16", f"{access.addr:#x} is written by the test, but was not read before")
        word, plain = self.tried[access.addr]
        if access.lock:
            self.check(value == word, "SMU-16", f"the test writes {value:#x} instead of {word:#x}")
        elif not access.atop:
            self.tried[access.addr][1] += 1
            self.check(plain == 0 or value == word, "SMU-16", f"the test restores {value:#x} instead of {word:#x}")
            if plain:
                del self.tried[access.addr]

    def written(self, access: Access, words: dict[int, tuple[int, int]], resp: int) -> None:
        """Note a write that has taken effect, with its response. A ring or queue entry whose write met an error is beyond the
        tail, where nobody looks."""
        area, index = self.area(access.addr)
        if area == "ret" and access.beats << access.size == 16 and not resp:
            self._returned(self.ram.read(access.addr), self.ram.read(access.addr + C["RET_ENTRY_REASON"]))
        elif area == "sq" and not resp:
            self.devices[index].owed += 1
        elif area.endswith("bell"):
            word, part = words[access.addr & ~7]
            value = word >> 32 if part == 0xf0 else word & 0xffff_ffff
            self.check(value < self.sizes.depth, "SMU-9", f"doorbell {area} {index} rung with {value}")
            if self.devices[index].deleted:
                cover("nvme.doorbell_of_old")
            elif area == "sq_bell":
                self.devices[index].fetch(value)
            else:
                self.devices[index].taken(value)

    def exchange(self, access: Access, compared: int, new: int) -> int:
        """Let an AtomicCompare take effect, and return its response."""
        words = {access.addr: (new, 0xff)}
        if self.ram.read(access.addr) == compared:
            resp, done = self.check_write(access, words)
            if done:
                self.ram.write(access.addr, new)
            return resp
        area, page = self.area(access.addr)
        self.held(access.addr, 8)
        if access.addr in self.tried:
            self.trace.append(("ret_tried", page))
            return self._fault(area, write=True)
        self.check(area == "pte" and names_block(compared), "SMU-3", f"{area} {page} compared with {compared:#x}")
        cover("atomic.changed")
        if resp := self._fault(area, write=True):
            self.updating[access.id] = page
            self.errors[access.id] = page, compared, self.frame(get("PTE_PFN", new)), False
        return resp

    def exclusive_failed(self, access: Access) -> None:
        """Note an exclusive write that failed."""
        cover(f"exclusive.failed_{self.area(access.addr)[0]}")

    def _returned(self, pfn: int, word: int) -> None:
        """Check a frame in the return ring: its reason must have MAPPED exactly if a page may map it (REQ: SMU-13)."""
        self.check(pfn <= PFN_MASK, "SMU-15", f"{pfn:#x} returned, which is no frame number")
        frame = self.frame(pfn)
        mapped, told = self.doubts.pop(frame, None), get("RETURNED_MAPPED", word)
        blind = any(error[2] == frame for error in self.errors.values())
        self.check(not blind, "SMU-13", f"frame {frame} is returned before the unit has read back whether a page maps it")
        self.check(told == (mapped is not None), "SMU-13", f"frame {frame} returned with MAPPED={told}, but in doubt: {mapped}")
        self.returns.append(not mapped)
        if mapped:  # a page has it, or the operating system by now
            return
        held = frame is not None and self.places[frame] == "smu"
        self.check(held, "SMU-5", f"frame {pfn:#x} returned, which the SMU did not hold")
        self.places[frame] = "returned"

    def _read_back(self, key: int, read: int, resp: int) -> None:
        """Note what the unit learns when it reads back a PTE after a bus error on its write (REQ: SMU-13)."""
        page, seen, frame, effect = self.errors.pop(key)
        self.check(read == page, "SMU-13", f"page {read} is read, but page {page} must be read back after its error")
        value = self.ram.read(self.pte_at(page))
        ours = bool(value & mask("PTE_V")) and self.frame(get("PTE_PFN", value)) == frame
        if not resp and value == seen:
            self.check(not effect, "SMU-8", f"page {page} armed again during its miss")
            cover("read_back.as_seen")
        elif not resp and ours:
            self.progress[page] = "pte"
            cover("read_back.installed" if value == installed(seen, places.PFN[frame]) else "read_back.installed_and_changed")
        else:
            self.progress[page], self.doubts[frame] = "pte", effect
            cover("read_back.other" if not resp else "read_back.failed")

    def _install(self, key: int, page: int, seen: int, new: int, effect: bool) -> int:
        """Check a write of the PTE, also one that takes no effect. Return the frame."""
        fenced = self.fenced[get("PTE_DEVICE", seen)]
        self.check(self.accepted[page] > fenced, "SMU-8", f"page {page} installed after a fence over its request")
        self.check(names_block(seen), "SMU-3", f"page {page} is overwritten although its entry is {seen:#x}, which is not armed")
        frame = self.frame(get("PTE_PFN", new))
        self.check(frame is not None, "SMU-3", f"page {page} gets a frame that was never given: {new:#x}")
        self.check(self.places[frame] == "smu", "SMU-3", f"frame {frame} is installed, but it belongs to {self.places[frame]}")
        lba = get("PTE_LBA", seen)
        self.check(self.content[frame] == lba, "SMU-4", f"page {page} installed with block {self.content[frame]}, not {lba}")
        self.check(new == installed(seen, places.PFN[frame]), "SMU-3", f"page {page} installed as {new:#x}")
        self.installs[page] = new
        self.progress[page] = "pte" if effect else "begun"
        self.updating[key] = page
        if effect:
            self.places[frame] = page
            cover("install.soft" if seen & mask("PTE_SOFT") else "install.armed")
        return frame

    def _mark(self, access: Access, area: str, has_mark: bool, found: bool) -> None:
        page = self.updating.get(access.id)
        self.check(page is not None, "SMU-3", f"{area} is touched by identifier {access.id} before it has written a PTE")
        at = self.pmd_at(page) if area == "pmd" else self.pud_at(page)
        before = "pte" if area == "pmd" else "pmd"
        self.check(access.addr == at, "SMU-3", f"{area} is touched, but it does not belong to page {page}")
        last = self.progress.get(page)
        self.check(last == before, "SMU-3", f"page {page}: {area} marked after {last}")
        if has_mark:
            self.progress[page] = area
            cover(f"mark.{area}_{'found' if found else 'set'}")

    def command(self, d: int, at: int) -> tuple[int, int, int]:
        """Check a command in a submission queue. Return its identifier, block and frame."""
        cdw0, nsid = self.ram.read(at) & 0xffff_ffff, self.ram.read(at) >> 32
        prp1, slba, cdw12 = (self.ram.read(at + C[f"NVME_SQE_{name}"]) for name in ("PRP1", "SLBA", "CDW12"))
        rest = [self.ram.read(at + offset) for offset in (8, 16, 32, 56)]
        frame = places.DMA.index(prp1) if prp1 in places.DMA[:self.sizes.frames] else None
        sound = cdw0 & 0xffff == C["NVME_OPC_READ"] and cdw12 == BLOCKS - 1 and nsid == places.NSID[d]
        sound = sound and not any(rest)
        self.check(sound and frame is not None, "SMU-9", f"command {cdw0:#x} {nsid} {prp1:#x} {slba:#x} {cdw12:#x} {rest}")
        return cdw0 >> 16, slba, frame
