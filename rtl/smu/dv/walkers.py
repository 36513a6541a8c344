# SPDX-License-Identifier: Apache-2.0
"""The walkers of all harts: they ask, wait, get answers, and take requests back."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from cocotb.handle import HierarchyObject
from cocotb.triggers import Event, RisingEdge

from rtl.smu.dv.coverage import cover
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, OUTCOMES, REASONS
from rtl.smu.dv.world import NEVER, World

REQUEST, ANSWER = 240, 82
"""Bits of smu_req_t and smu_rsp_t."""


@dataclass
class Wait:
    """A request of a hart, from the walker's read of the entry to the answer."""

    hart: int
    page: int
    seen: int
    number: int
    addresses: tuple[int, int, int]
    asked: int = 0
    accepted: int | None = None
    """Place of the request in the order of acceptance."""
    given_up: bool = False
    over: Event = field(default_factory=Event)
    outcome: int = 0
    reason: int = 0
    pte: int = 0
    answered: int = 0

    def payload(self) -> int:
        """The bits of smu_req_t."""
        pte, pmd, pud = self.addresses
        return ((pte << 56 | pmd) << 56 | pud) << 72 | self.seen << 8 | self.number

    def is_(self, outcome: int, reason: int = 0) -> bool:
        """Whether the request was answered with this outcome and reason."""
        return (self.outcome, self.reason) == (outcome, reason)


class Walkers:
    """Drives the request ports and checks what comes back."""

    def __init__(self, dut: HierarchyObject, world: World, rng: random.Random) -> None:
        """No walker asks yet."""
        self.dut, self.world, self.rng = dut, world, rng
        self.harts = world.sizes.harts
        self.waits: list[Wait | None] = [None] * self.harts
        self.numbers = [0] * self.harts
        self.abandoning = 0
        self.answers: list[Wait] = []
        dut.req_valid_i.value = dut.req_i.value = dut.abandon_i.value = 0

    def ask(self, hart: int, page: int, seen: int | None = None, addresses: tuple[int, int, int] | None = None) -> Wait:
        """Ask for a page, by default with the value that its entry has now."""
        assert self.waits[hart] is None, f"hart {hart} waits already"
        world = self.world
        self.numbers[hart] = (self.numbers[hart] + 1) % 256
        at = addresses or (world.pte_at(page), world.pmd_at(page), world.pud_at(page))
        wait = Wait(hart, page, world.pte(page) if seen is None else seen, self.numbers[hart], at, asked=world.cycle + 1)
        self.waits[hart] = wait
        world.accepted[page] = NEVER
        self._drive()
        return wait

    def give_up(self, hart: int) -> None:
        """Stop waiting. Abandon an accepted request. If the request is not accepted yet, take it back, or abandon it in this
        cycle."""
        wait = self.waits[hart]
        if wait is None or wait.given_up:
            return
        if wait.accepted is None and self.rng.random() < 0.5:
            self._end(wait)
            cover("abandon.taken_back")
        else:
            cover("abandon.before_acceptance" if wait.accepted is None else "abandon.accepted")
            if wait.accepted is not None:
                progress = self.world.progress.get(wait.page)
                cover("abandon.during_install" if progress in ("pte", "pmd") else "abandon.before_install")
            wait.given_up = True
            self.abandoning |= 1 << hart
        self._drive()

    def _end(self, wait: Wait) -> None:
        self.waits[wait.hart] = None
        others = any(other and other.accepted is None and other.page == wait.page for other in self.waits)
        if wait.accepted is None and not others and not self.world.port_asks(wait.page):
            self.world.accepted[wait.page] = self.world.acceptances
        wait.over.set()

    def _drive(self) -> None:
        valid = payload = 0
        for hart, wait in enumerate(self.waits):
            if wait is not None and wait.accepted is None:
                valid |= 1 << hart
                payload |= wait.payload() << REQUEST * hart
        self.dut.req_valid_i.value, self.dut.req_i.value, self.dut.abandon_i.value = valid, payload, self.abandoning

    async def run(self) -> None:
        """Look at the ports in each cycle. Also counts the cycles of `world`."""
        clk, world = self.dut.clk_i, self.world
        while True:
            await RisingEdge(clk)
            world.cycle += 1
            ready, answered, moved = int(self.dut.req_ready_o.value), int(self.dut.rsp_valid_o.value), self.abandoning != 0
            if answered:
                answers = int(self.dut.rsp_o.value)
            for hart in range(self.harts):
                wait = self.waits[hart]
                if answered >> hart & 1:
                    self._answer(hart, answers >> ANSWER * hart & 2**ANSWER - 1)
                elif ready >> hart & 1:
                    world.check(wait is not None and wait.accepted is None, "SMU-6", f"hart {hart} does not ask, but is accepted")
                    self._accept(wait)
                    moved = True
                if self.abandoning >> hart & 1 and wait is not None:
                    self._end(wait)
            if moved:
                self.abandoning = 0
                self._drive()

    def _accept(self, wait: Wait) -> None:
        world = self.world
        world.acceptances += 1
        wait.accepted = world.acceptances
        if any(other is not wait and other and other.accepted and other.page == wait.page for other in self.waits):
            cover("join.walkers")
        if world.port_asks(wait.page):
            cover("join.walker_and_port")
        asking = any(other and other.accepted is None and other.page == wait.page for other in self.waits)
        if not asking and not world.port_asks(wait.page):
            world.accepted[wait.page] = wait.accepted
        if world.cycle - wait.asked > 40:
            cover("pmshr.waited")

    def _answer(self, hart: int, bits: int) -> None:
        """REQ: SMU-6."""
        pte, reason, outcome, number = bits & 2**64 - 1, bits >> 64 & 0xff, bits >> 72 & 3, bits >> 74
        wait, world = self.waits[hart], self.world
        told = f"{OUTCOMES.get(outcome, outcome)} {REASONS.get(reason, reason)} {pte:#x} number {number}"
        world.check(wait is not None and wait.accepted is not None, "SMU-6",
                    f"hart {hart} does not wait, but gets the answer {told}")
        world.check(number == wait.number, "SMU-1", f"hart {hart} waits for {wait.number}, but gets the answer {told}")
        if wait.given_up:
            cover("abandon.in_the_answers_cycle")
            return
        wait.outcome, wait.reason, wait.pte, wait.answered = outcome, reason, pte, world.cycle
        self.check_outcome(wait, "walker")
        self.answers.append(wait)
        self.waits[hart] = None
        wait.over.set()

    def check_outcome(self, wait: Wait, who: str) -> None:
        """Check what an answer to a walker or a port promises."""
        world, page = self.world, wait.page
        if wait.outcome == DONE:
            world.check(wait.reason == 0 and world.marked(page), "SMU-3", f"page {page} answered before its marks")
            world.check(wait.pte == world.installs[page], "SMU-6", f"page {page} is done with {wait.pte:#x}")
            cover(f"answer.{who}_done")
        elif wait.outcome == CHANGED:
            world.check(wait.pte != wait.seen or world.tolerates_same, "SMU-2", f"page {page} changed to {wait.pte:#x}, as seen")
            cover(f"answer.{who}_changed")
        else:
            world.check(wait.outcome == FAILED and wait.reason in range(1, 7) and wait.pte == 0, "SMU-6",
                        f"page {page} answered {wait.outcome} {wait.reason} {wait.pte:#x}")
            cover(f"answer.{who}_{REASONS[wait.reason]}")
