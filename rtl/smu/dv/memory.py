# SPDX-License-Identifier: Apache-2.0
"""Memory behind the SMU's AXI4 master: any latency on each access, pauses on each channel, reordering between identifiers,
exclusive pairs, and bus errors where the world says so, on writes that take effect and on others. What the accesses mean is the
world's business."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus
from cocotbext.axi.axi_channels import AxiARSink, AxiAWSink, AxiBSource, AxiRSource, AxiWSink

from rtl.smu.dv.coverage import cover

OKAY, EXOKAY, SLVERR, DECERR = range(4)


@dataclass
class Ram:
    """Words of 8 bytes. A write by anybody ends the exclusive claims on its word."""

    words: dict[int, int] = field(default_factory=dict)
    claims: dict[int, int] = field(default_factory=dict)
    """AXI identifier to the word that it has read exclusively."""

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
    data: list[tuple[int, int]] = field(default_factory=list)


class Memory:
    """The AXI4 slave. `world.check_read` and `world.check_write` see each burst when it takes effect and give its response;
    the latter says besides whether a write takes effect, which one that meets a bus error may or may not."""

    def __init__(self, dut: HierarchyObject, ram: Ram, world, rng: random.Random) -> None:  # noqa: ANN001
        """Listen on the ports `m_axi_*`."""
        bus = AxiBus.from_prefix(dut, "m_axi")
        pins = (dut.clk_i, dut.rst_ni, False)
        self.aw, self.w, self.b = AxiAWSink(bus.write.aw, *pins), AxiWSink(bus.write.w, *pins), AxiBSource(bus.write.b, *pins)
        self.ar, self.r = AxiARSink(bus.read.ar, *pins), AxiRSource(bus.read.r, *pins)
        self.clk, self.ram, self.world, self.rng = dut.clk_i, ram, world, rng
        self.bytes = len(dut.m_axi_wdata) // 8
        self.latency: Callable[[], int] = lambda: 0
        self.claims_lost = 0.0
        """How often an exclusive write fails for no reason that the SMU can see."""
        self.failed_beats: set[int] | None = None
        """Which beats of a read that meets a bus error; None: any, one at least."""
        self.exclusive = True
        """Whether this memory knows exclusive accesses."""
        cocotb.start_soon(self._serve(self.ar, self._take_read, self._read))
        cocotb.start_soon(self._serve(self.aw, self._take_write, self._write))

    def pause(self, share: float, longest: int = 8) -> None:
        """Stop each channel now and then: this share of the time, for up to so many cycles."""
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
        """Take bursts, let each wait its time, and serve those of one identifier in order, others in any."""
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
        return Access(self.world.cycle + self.latency(), int(ar.arid), int(ar.araddr), int(ar.arlen) + 1, int(ar.arsize),
                      bool(ar.arlock))

    async def _take_write(self) -> Access:
        aw = self.aw.recv_nowait()
        access = Access(self.world.cycle + self.latency(), int(aw.awid), int(aw.awaddr), int(aw.awlen) + 1, int(aw.awsize),
                        bool(aw.awlock))
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
            line = at & ~(self.bytes - 1)
            data = sum(self.ram.read(line + 8 * i) << 64 * i for i in range(self.bytes // 8))
            if beat in failed:
                data ^= sum(1 << self.rng.randrange(12, 40) + 64 * i for i in range(self.bytes // 8))
            answer = resp if beat in failed or not failed else OKAY
            self.r.send_nowait(self.r._transaction_obj(rid=access.id, rdata=data, rresp=answer, rlast=beat == access.beats - 1))

    def _failed_beats(self, beats: int) -> set[int]:
        """Which beats of a burst meet the error: one is enough. Their data are wrong, but look right."""
        failed = self.failed_beats or {beat for beat in range(beats) if self.rng.random() < 0.5} or {self.rng.randrange(beats)}
        if beats > 1:
            cover("bus.all_beats" if len(failed) == beats else f"bus.{'last' if beats - 1 in failed else 'first'}_beat")
        return failed

    def _write(self, access: Access) -> None:
        words: dict[int, tuple[int, int]] = {}
        for beat, (data, strobe) in enumerate(access.data):
            at = access.addr + (beat << access.size)
            line = at & ~(self.bytes - 1)
            for i in range(self.bytes // 8):
                if part := strobe >> 8 * i & 0xff:
                    words[line + 8 * i] = (data >> 64 * i & 2**64 - 1, part)
        resp, done = OKAY, False
        holds = self.ram.claims.get(access.id) == access.addr and self.rng.random() >= self.claims_lost
        if not access.lock or (holds and self.exclusive):
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
