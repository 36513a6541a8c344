# SPDX-License-Identifier: Apache-2.0
"""Memory behind the SMU's AXI4 master: any latency on each access, pauses on each channel, reordering between identifiers,
exclusive pairs, the atomic accesses of AXI5, and bus errors where world.py asks for them. A write that meets a bus error may take
effect or not. world.py checks what the accesses mean."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus
from cocotbext.axi.axi_channels import AxiARSink, AxiBSource, AxiRSource, AxiWSink
from cocotbext.axi.stream import define_stream

from rtl.smu.dv.coverage import cover

OKAY, EXOKAY, SLVERR, DECERR = range(4)
INCR, WRAP = 1, 2

SET, COMPARE = 0b010011, 0b110001
"""AWATOP: AtomicStore SET, AtomicCompare."""

AxiAWBus, _, _, AxiAWSink, _ = define_stream(
    "AxiAW", signals=["awid", "awaddr", "awlen", "awsize", "awburst", "awlock", "awatop", "awvalid", "awready"],
)


@dataclass
class Ram:
    """Words of 8 bytes. Any write ends the exclusive claims on its word."""

    words: dict[int, int] = field(default_factory=dict)
    claims: dict[int, int] = field(default_factory=dict)
    """For each AXI identifier, the word that it has read exclusively."""

    def read(self, at: int) -> int:
        """The word at an address."""
        return self.words.get(at & ~7, 0)

    def write(self, at: int, value: int, strobe: int = 0xff) -> None:
        """Write the bytes of a word that the strobe names."""
        at &= ~7
        bits = sum(0xff << 8 * i for i in range(8) if strobe >> i & 1)
        self.words[at] = self.read(at) & ~bits | value & bits
        self.claims = {key: word for key, word in self.claims.items() if word != at}


@dataclass
class Access:
    """A burst: when it may be served, and its beats."""

    due: int
    id: int
    addr: int
    beats: int
    size: int
    lock: bool
    atop: int = 0
    """AWATOP."""
    burst: int = INCR
    data: list[tuple[int, int]] = field(default_factory=list)


class Memory:
    """The AXI4 slave. `world.check_read` and `world.check_write` see each burst when it takes effect and give its response;
    the latter also says whether a write takes effect, because a write that meets a bus error may or may not."""

    def __init__(self, dut: HierarchyObject, ram: Ram, world, rng: random.Random) -> None:  # noqa: ANN001
        """Listen on the ports `m_axi_*`."""
        bus = AxiBus.from_prefix(dut, "m_axi")
        pins = (dut.clk_i, dut.rst_ni, False)
        self.aw = AxiAWSink(AxiAWBus.from_prefix(dut, "m_axi"), *pins)
        self.w, self.b = AxiWSink(bus.write.w, *pins), AxiBSource(bus.write.b, *pins)
        self.ar, self.r = AxiARSink(bus.read.ar, *pins), AxiRSource(bus.read.r, *pins)
        self.clk, self.ram, self.world, self.rng = dut.clk_i, ram, world, rng
        self.bytes = len(dut.m_axi_wdata) // 8
        self.latency: Callable[[], int] = lambda: 0
        self.claims_lost = 0.0
        """Share of exclusive writes that fail without a reason that the SMU can see."""
        self.failed_beats: set[int] | None = None
        """Beats with the error in a read that meets a bus error; None: at random, at least one."""
        self.exclusive = True
        """Whether this memory supports exclusive accesses."""
        self.atomics = "done"
        """How atomic accesses are handled: "done"; "refused" by a bus error; "plain": taken for writes of their data; "unset": an
        AtomicStore does nothing; or a name of `_compared`: an AtomicCompare is done wrongly."""
        self.atomic_ids: dict[int, int] = {}
        """Identifiers of unanswered atomic accesses, and the number of answers due. No other access may use these identifiers."""
        self.atomic_errors: tuple[tuple[bool, bool], ...] = ((True, True), (True, False), (False, True))
        """On which channels an AtomicCompare may report an error: data, response."""
        cocotb.start_soon(self._serve(self.ar, self._take_read, self._read))
        cocotb.start_soon(self._serve(self.aw, self._take_write, self._write))

    def pause(self, share: float, longest: int = 8) -> None:
        """Stop each channel at random: for this `share` of the time, at most `longest` cycles at once."""
        for channel in (self.aw, self.w, self.b, self.ar, self.r):
            channel.set_pause_generator(self._pauses(share, longest) if share else None)
            channel.pause = False

    def _pauses(self, share: float, longest: int) -> Iterator[bool]:
        while True:
            held = self.rng.randint(1, longest)
            yield from itertools.repeat(True, held)
            yield from itertools.repeat(False, max(1, round(self.rng.random() * 2 * held * (1 - share) / share)))

    async def _serve(self, channel: AxiARSink | AxiAWSink, take: Callable[[], Awaitable[Access]],
                     effect: Callable[[Access], None]) -> None:
        """Take bursts and let each wait its time. Bursts of one identifier are served in order, others in any order."""
        waiting: list[Access] = []
        while True:
            if not waiting and channel.empty():
                await channel.wait()
            while not channel.empty():
                waiting.append(await take())
            now = self.world.cycle
            first = {access.id: access for access in reversed(waiting)}
            ready = [access for access in first.values() if access.due <= now]
            if ready and effect is self._read and self.r.count() > 8:
                ready = []
            if ready:
                access = self.rng.choice(ready)
                waiting.remove(access)
                effect(access)
            await RisingEdge(self.clk)

    async def _take_read(self) -> Access:
        ar = self.ar.recv_nowait()
        assert int(ar.arid) not in self.atomic_ids, f"AXI: a read has the identifier {int(ar.arid)} of an atomic access"
        assert int(ar.arburst) == INCR, f"AXI: a read of burst type {int(ar.arburst)}"
        return Access(self.world.cycle + self.latency(), int(ar.arid), int(ar.araddr), int(ar.arlen) + 1, int(ar.arsize),
                      bool(ar.arlock))

    async def _take_write(self) -> Access:
        aw = self.aw.recv_nowait()
        access = Access(self.world.cycle + self.latency(), int(aw.awid), int(aw.awaddr), int(aw.awlen) + 1, int(aw.awsize),
                        bool(aw.awlock), int(aw.awatop), int(aw.awburst))
        assert access.id not in self.atomic_ids, f"AXI: a write has the identifier {access.id} of an atomic access"
        if access.atop and self.atomics != "plain":
            self.atomic_ids[access.id] = 2 if access.atop == COMPARE else 1
        for beat in range(access.beats):
            w = await self.w.recv()
            assert bool(w.wlast) == (beat == access.beats - 1), "WLAST is wrong"
            access.data.append((int(w.wdata), int(w.wstrb)))
        access.due = max(access.due, self.world.cycle)
        return access

    def _read(self, access: Access) -> None:
        resp = self.world.check_read(access)
        if access.lock and resp == OKAY and self.exclusive:
            self.ram.claims[access.id] = access.addr
            resp = EXOKAY
        failed = self._failed_beats(access.beats) if resp not in (OKAY, EXOKAY) else set()
        for beat in range(access.beats):
            at = access.addr + (beat << access.size)
            data = self._line(at)
            if beat in failed:
                data ^= sum(1 << self.rng.randrange(12, 40) + 64 * i for i in range(self.bytes // 8))
            answer = resp if beat in failed or not failed else OKAY
            fields = {"rid": access.id, "rdata": data, "rresp": answer, "rlast": beat == access.beats - 1}
            # Data of another identifier may come between the beats of a burst.
            if beat and self.rng.random() < 0.5:
                cocotb.start_soon(self._answer(self.r, self.rng.randint(1, 12), **fields))
            else:
                self.r.send_nowait(self.r._transaction_obj(**fields))

    def _failed_beats(self, beats: int) -> set[int]:
        """Beats of a burst that meet the error; one is enough. Their data are wrong, but look plausible."""
        failed = self.failed_beats or {beat for beat in range(beats) if self.rng.random() < 0.5} or {self.rng.randrange(beats)}
        if beats > 1:
            cover("bus.all_beats" if len(failed) == beats else f"bus.{'last' if beats - 1 in failed else 'first'}_beat")
        return failed

    def _line(self, at: int) -> int:
        """The data on all lanes of the bus for an address."""
        line = at & ~(self.bytes - 1)
        return sum(self.ram.read(line + 8 * i) << 64 * i for i in range(self.bytes // 8))

    def _operands(self, access: Access) -> tuple[int, int]:
        """The value with which an AtomicCompare compares, and the value that it writes. Its data begin at the address. In the
        upper half of 16 bytes the burst wraps, and the value to write comes first (AXI5, attributes of atomic transactions)."""
        upper = access.addr & 8 != 0
        assert access.beats << access.size == 16 and access.burst == (WRAP if upper else INCR), f"AXI: {access}"
        lane = access.addr % self.bytes & ~15
        strobes = [0xff, 0xff] if access.beats == 2 else [0xffff << lane]
        assert [strobe for _, strobe in access.data] == strobes, f"AXI: strobes of {access}"
        both = access.data[0][0] | access.data[1][0] << 64 if access.beats == 2 else access.data[0][0] >> 8 * lane
        first, second = both & 2**64 - 1, both >> 64 & 2**64 - 1
        return (second, first) if upper else (first, second)

    def _compared(self, access: Access) -> tuple[int, int]:
        """Do an AtomicCompare, or do it wrongly: swap its operands ("swapped"), or only those of a wrapping burst ("unwrapped");
        never write ("unwritten"), always write ("always"), or return another value than the one found ("other"). Returns the
        response, and which bits of the returned data are wrong."""
        compared, new = self._operands(access)
        kind, resp, found = self.atomics, OKAY, self.ram.read(access.addr)
        if kind == "done":
            return self.world.exchange(access, compared, new), 0
        if kind == "swapped" or (kind == "unwrapped" and access.burst == WRAP):
            compared, new = new, compared
        if kind == "always" or (kind != "unwritten" and found == compared):
            self.ram.write(access.addr, new)
        return resp, int(kind == "other")

    def _atomic(self, access: Access) -> None:
        """Let an atomic access take effect, or do with it what `atomics` says."""
        compares, resp, old = access.atop == COMPARE, OKAY, self._line(access.addr)
        assert not access.lock and access.atop in (SET, COMPARE), f"AXI: {access}"
        if self.atomics == "refused":
            resp = SLVERR
        elif compares:
            resp, wrong_bits = self._compared(access)
            old ^= wrong_bits << 8 * (access.addr % self.bytes & ~7)
        elif self.atomics != "unset":
            assert access.beats << access.size == 8 and access.burst == INCR, f"AXI: {access}"
            (data, strobe), lane = access.data[0], access.addr % self.bytes & ~7
            assert strobe == 0xff << lane, f"AXI: strobes of {access}"
            words = {access.addr: (self.ram.read(access.addr) | data >> 8 * lane & 2**64 - 1, 0xff)}
            resp, done = self.world.check_write(access, words)
            if done:
                self.ram.write(access.addr, words[access.addr][0])
        if compares:
            on_data, on_response = self.rng.choice(self.atomic_errors) if resp else (False, False)
            gap = self.rng.choice((20, 20, 20, 100))
            first = self.rng.randint(0, gap)
            wrong = self.rng.getrandbits(8 * self.bytes) if on_data else 0
            told = resp if on_data else OKAY
            cocotb.start_soon(self._answer(self.r, first, rid=access.id, rdata=old ^ wrong, rresp=told, rlast=1))
            cocotb.start_soon(self._answer(self.b, gap - first, bid=access.id, bresp=resp if on_response else OKAY))
        else:
            self.atomic_ids.pop(access.id)
            self.b.send_nowait(self.b._transaction_obj(bid=access.id, bresp=resp))

    async def _answer(self, channel: AxiRSource | AxiBSource, after: int, **fields: int) -> None:
        """Answer after some cycles."""
        for _ in range(after):
            await RisingEdge(self.clk)
        channel.send_nowait(channel._transaction_obj(**fields))
        key = fields.get("rid", fields.get("bid"))
        if key in self.atomic_ids:
            self.atomic_ids[key] -= 1
            if not self.atomic_ids[key]:
                del self.atomic_ids[key]

    def _write(self, access: Access) -> None:
        if access.atop and self.atomics != "plain":
            self._atomic(access)
            return
        assert access.burst == INCR or access.atop, f"AXI: {access}"
        words: dict[int, tuple[int, int]] = {}
        for beat, (data, strobe) in enumerate(access.data):
            at = access.addr + (beat << access.size)
            line = at & ~(self.bytes - 1)
            for i in range(self.bytes // 8):
                if part := strobe >> 8 * i & 0xff:
                    words[line + 8 * i] = (data >> 64 * i & 2**64 - 1, part)
        resp, done = OKAY, False
        holds = self.ram.claims.get(access.id) == access.addr and self.rng.random() >= self.claims_lost
        if access.atop:
            for at, (value, part) in words.items():
                self.ram.write(at, value, part)
            self.world.trace.append(("ret_tried", 0))
        elif not access.lock or (holds and self.exclusive):
            resp, done = self.world.check_write(access, words)
            if done:
                for at, (value, part) in words.items():
                    self.ram.write(at, value, part)
                self.world.written(access, words, resp)
            if resp == OKAY and access.lock:
                resp = EXOKAY
        elif access.lock:
            self.world.exclusive_failed(access)
        self.ram.claims.pop(access.id, None)
        self.b.send_nowait(self.b._transaction_obj(bid=access.id, bresp=resp))
