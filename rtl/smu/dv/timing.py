# SPDX-License-Identifier: Apache-2.0
"""Measures how many cycles a miss takes without memory accesses, and how many with all entries in use."""

from __future__ import annotations

import json
import os

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import RisingEdge

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.places import BELLS
from rtl.smu.dv.spec import DONE, reg
from rtl.tools.env import BUILDS

TO_DOORBELL, TO_ANSWER, PER_MISS = 12, 10, 40
"""Limits in cycles: from request to doorbell, and from visible completion to answer, without memory accesses and the interval of
the poller; per miss, with all entries in use."""


class Watch:
    """Counts the cycles in which an access of the miss itself is under way: from its first valid to its response."""

    def __init__(self, bench: Bench) -> None:
        """Count from now on."""
        self.bench, self.cycle, self.memory = bench, 0, 0
        self.flying: dict[tuple[str, int], int] = {}
        self.doorbell = self.answer = (0, 0)
        """Cycle of the event, and the number of memory cycles before it."""
        self.task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut = self.bench.dut

        def high(name: str) -> bool:
            return getattr(dut, name).value == 1

        shown: dict[str, bool] = {"ar": False, "aw": False}
        rung_before = 0
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            self.memory += bool(self.flying)
            if int(dut.rsp_valid_o.value):
                self.answer = (self.cycle, self.memory)
            for channel, answer in (("ar", "r"), ("aw", "b")):
                if high(f"m_axi_{answer}valid") and high(f"m_axi_{answer}ready") and (answer == "b" or high("m_axi_rlast")):
                    self.flying.pop((channel, int(getattr(dut, f"m_axi_{answer}id").value)), None)
                if high(f"m_axi_{channel}valid"):
                    at, key = int(getattr(dut, f"m_axi_{channel}addr").value), int(getattr(dut, f"m_axi_{channel}id").value)
                    if not shown[channel]:
                        area = self.bench.world.area(at)[0]
                        if area != "free":
                            self.flying[channel, key] = at
                    shown[channel] = not high(f"m_axi_{channel}ready")
            rung = int(dut.m_db_awvalid.value)
            if rung & ~rung_before & 1 and int(dut.m_db_awaddr.value) & 2**64 - 1 == BELLS[0]:
                self.doorbell = (self.cycle, self.memory)
            rung_before = rung


def note(**figures: float) -> None:
    """Save figures for reports."""
    path = BUILDS / "dv" / f"timing-{os.environ['SMU_RUN']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(old | figures, indent=1) + "\n")
    print("timing:", ", ".join(f"{name} {value}" for name, value in figures.items()))


@cocotb.test()
@cocotb.parametrize(latency=[0, 20], snooped=[False, True])
async def an_idle_miss_takes_few_cycles_of_logic(dut: HierarchyObject, latency: int, snooped: bool) -> None:
    """REQ: SMU-9. The limits hold at any phase of the poller."""
    bench = await Bench.start(dut, frames=16)
    bench.snooping = float(snooped)
    bench.memory.latency = lambda: latency
    worst_ask = worst_answer = 0
    for phase in range(16):
        await bench.os.refill(1)
        await bench.cycles(80)
        watch, device = Watch(bench), bench.world.devices[0]
        await bench.cycles(2)
        wait = bench.walkers.ask(0, 0)
        watch.cycle = watch.memory = 0  # the next edge sees the request
        await bench.at_device(0)
        await bench.cycles(1)  # the watch has seen the edge, too
        # The count began one edge before the edge that sees the request.
        cycle, memory = watch.doorbell
        assert cycle, "no doorbell seen"
        worst_ask = max(worst_ask, cycle - 1 - memory)
        await bench.cycles(30 + phase)
        device.complete()
        watch.cycle = watch.memory = 0
        await bench.answered(wait)
        assert wait.outcome == DONE
        await bench.cycles(1)
        cycle, memory = watch.answer
        worst_answer = max(worst_answer, cycle - memory)
        watch.task.cancel()
        await bench.os.withdraw(0)
        bench.os.arm(0)
    case = f"latency_{latency}{'_snooped' if snooped else ''}"
    note(**{f"request_to_doorbell_{case}": worst_ask, f"completion_to_answer_{case}": worst_answer})
    assert worst_ask <= TO_DOORBELL, f"{worst_ask} cycles from request to doorbell"
    interval = int(os.environ["SMU_POLL"])
    assert worst_answer <= TO_ANSWER + interval, f"{worst_answer} cycles from completion to answer"
    await bench.finish()


@cocotb.test(skip=int(os.environ.get("SMU_HARTS", "0")) < int(os.environ.get("SMU_PMSHR", "0")))
async def misses_overlap(dut: HierarchyObject) -> None:
    """REQ: SMU-6. As many misses are under way as there are entries, and the device is never the limit."""
    pmshr = int(os.environ["SMU_PMSHR"])
    bench = Bench(dut, pages=2 * pmshr, frames=160, free_entries=256, ret_entries=256)
    await bench.reset()
    await bench.os.set_up(128)
    world, walkers, answers = bench.world, bench.walkers, []
    for device in world.devices:
        device.delay = lambda: 100

    async def keep_asking(hart: int) -> None:
        while True:
            wait = walkers.ask(hart, hart)
            await wait.over.wait()
            assert wait.outcome == DONE, wait
            answers.append(world.cycle)
            pte = world.pte(hart)
            world.take_back(world.frame(pte >> 10))
            world.ram.write(world.pte_at(hart), 0)
            bench.os.arm(hart)
            await RisingEdge(dut.clk_i)

    async def keep_filling() -> None:
        while True:
            await bench.os.refill(64)

    tasks = [cocotb.start_soon(keep_asking(hart)) for hart in range(pmshr)]
    tasks.append(cocotb.start_soon(keep_filling()))
    first, last = 3 * pmshr, 15 * pmshr
    await bench.until(lambda: len(answers) > last, 100 * last)
    for task in tasks:
        task.cancel()
    per_miss = (answers[last] - answers[first]) / (last - first)
    note(cycles_per_miss=round(per_miss, 1), outstanding=pmshr)
    assert per_miss <= PER_MISS, f"{per_miss} cycles per miss, more than {PER_MISS}"
    assert await bench.os.read(reg("CNT_PMSHR_FULL")) == 0
    await bench.os.axil.wait()
    await bench.finish()
