# SPDX-License-Identifier: Apache-2.0
"""The devices' ends of the doorbell ports `m_db_*`: each takes and answers writes at its own pace, or does not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import RisingEdge

from rtl.smu.dv.coverage import cover
from rtl.smu.dv.memory import OKAY, Access


@dataclass
class End:
    """One device's end: the parts of a write that it has taken, and when it answers."""

    addr: int | None = None
    data: int | None = None
    due: int = 0
    shown: tuple[int, int] | None = None
    """Address and data that were shown but not taken."""


class Doorbells:
    """All ports. `world.check_write` sees each write when it takes effect and gives its response."""

    def __init__(self, dut: HierarchyObject, world, rng: random.Random) -> None:  # noqa: ANN001
        """Make the ends. By default, they take everything at once."""
        self.dut, self.world, self.rng = dut, world, rng
        self.ends = [End() for _ in range(len(dut.m_db_awvalid))]
        self.latency: Callable[[], int] = lambda: 0
        self.pauses = 0.0
        """How often a channel is not ready."""
        self.silent: set[int] = set()
        """Devices that take nothing."""
        self.mute: set[int] = set()
        """Devices that take a write, but neither act on it nor answer."""
        dut.m_db_awready.value = dut.m_db_wready.value = dut.m_db_bvalid.value = dut.m_db_bresp.value = 0
        cocotb.start_soon(self._run())

    def ringing(self, d: int) -> bool:
        """Whether a write to this device is shown, or waits for its answer."""
        end = self.ends[d]
        return end.shown is not None or end.addr is not None or end.data is not None

    async def _run(self) -> None:
        dut, ends = self.dut, self.ends
        aw_ready = w_ready = answered = 0
        responses = [OKAY] * len(ends)
        while True:
            await RisingEdge(dut.clk_i)
            aw, w = self._bits(dut.m_db_awvalid), self._bits(dut.m_db_wvalid)
            taken = answered & self._bits(dut.m_db_bready) if answered else 0
            if aw or w:
                addresses, data = int(dut.m_db_awaddr.value), int(dut.m_db_wdata.value)
            for d, end in enumerate(ends):
                bit = 1 << d
                if (aw | w) & bit:
                    self._take(d, end, addresses >> 64 * d & 2**64 - 1 if aw & bit else None,
                               data >> 32 * d & 2**32 - 1 if w & bit else None, bool(aw_ready & bit), bool(w_ready & bit))
                else:
                    end.shown = None
                if taken & bit:
                    ends[d] = End()
                    answered &= ~bit
                elif (end.addr is not None and end.data is not None and not answered & bit and end.due <= self.world.cycle
                      and d not in self.mute):
                    responses[d] = self._ring(d, end)
                    answered |= bit
            able = [0 if d in self.silent else 1 for d in range(len(ends))]
            aw_ready, w_ready = (sum(a << d for d, a in enumerate(able) if self.rng.random() >= self.pauses) for _ in range(2))
            dut.m_db_awready.value, dut.m_db_wready.value, dut.m_db_bvalid.value = aw_ready, w_ready, answered
            dut.m_db_bresp.value = sum(resp << 2 * d for d, resp in enumerate(responses))

    @staticmethod
    def _bits(signal) -> int:  # noqa: ANN001
        return int(signal.value) if signal.value.is_resolvable else 0

    def _take(self, d: int, end: End, addr: int | None, data: int | None, aw_ready: bool, w_ready: bool) -> None:
        """Note which halves are shown in this cycle, and which of them are taken."""
        if end.shown:
            for was, now, what in ((end.shown[0], addr, "address"), (end.shown[1], data, "data")):
                self.world.check(was is None or was == now, "SMU-14", f"doorbell {d}: {what} not held until taken")
        if addr is not None and aw_ready:
            end.addr, addr = addr, None
        if data is not None and w_ready:
            end.data, data = data, None
        end.shown = (addr, data) if addr is not None or data is not None else None
        if addr is not None:
            cover("stall.m_db_aw")
        if data is not None:
            cover("stall.m_db_w")
        end.due = self.world.cycle + self.latency()

    def _ring(self, d: int, end: End) -> int:
        """Let the write take effect, and return its response."""
        access = Access(0, -1 - d, end.addr, 1, 2, False)
        words = {end.addr & ~7: (end.data << 32, 0xf0) if end.addr & 4 else (end.data, 0x0f)}
        resp, effect = self.world.check_write(access, words)
        if effect:
            self.world.written(access, words, resp)
        return resp
