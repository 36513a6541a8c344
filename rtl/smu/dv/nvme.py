# SPDX-License-Identifier: Apache-2.0
"""NVMe controllers: the other end of the queue pairs. They answer out of order, late, with errors, with identifiers of no
command, or never."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from rtl.smu.dv.coverage import cover
from rtl.smu.dv.spec import C, get, of
from rtl.smu.dv.world import BLOCKS, NEVER, World


@dataclass
class Command:
    """A command that the device has fetched."""

    cid: int
    lba: int
    frame: int
    due: int
    status: int


class Device:
    """One controller's queue pair."""

    def __init__(self, world: World, index: int, rng: random.Random) -> None:
        """Make the queues as they are after their creation."""
        self.world, self.index, self.rng = world, index, rng
        self.delay: Callable[[], int] = lambda: NEVER
        """Cycles from doorbell to completion of each command. With NEVER only the test completes it, if at all."""
        self.status: Callable[[], int] = lambda: 0
        self.posted: Callable[[int], None] = lambda at: None
        """Called with the address of each completion queue entry."""
        self.past: int | None = None
        """Identifier of the latest completion."""
        self.reset()

    def reset(self) -> None:
        """Delete the queue pair and make it again."""
        self.sq_head = self.cq_tail = self.cq_head = self.wraps = 0
        self.pending: list[Command] = []
        self.deleted = False
        """Whether the queue pair is deleted; then doorbells are ignored."""
        self.owed = 0
        """Commands in the submission queue, minus completions that the SMU has taken."""
        self.answers: list[bool] = []
        """For each completion queue entry that the SMU has not taken yet: whether it belongs to a command."""
        for at in range(self.world.cq(self.index), self.world.cq(self.index) + 16 * self.world.sizes.depth, 8):
            self.world.ram.words.pop(at, None)

    def taken(self, head: int) -> None:
        """Note that the SMU has taken the entries before `head`."""
        while self.cq_head != head:
            self.world.check(bool(self.answers), "SMU-9", f"completion queue {self.index}: head {head} is beyond the last entry")
            self.owed -= self.answers.pop(0)
            self.cq_head = (self.cq_head + 1) % self.world.sizes.depth

    def fetch(self, tail: int) -> None:
        """Fetch the commands that the doorbell announces."""
        depth = self.world.sizes.depth
        if (tail - self.sq_head) % depth > 1:
            cover("nvme.merged")
        while self.sq_head != tail:
            cid, lba, frame = self.world.command(self.index, self.world.sq(self.index) + C["NVME_SQE_SIZE"] * self.sq_head)
            twice = any(command.cid == cid for command in self.pending)
            self.world.check(not twice, "SMU-7", f"command identifier {cid} used again")
            index = get("CID_INDEX", cid)
            self.world.check(self.world.commands.get(index) != cid, "SMU-9", f"generation of {cid:#x} used again")
            self.world.commands[index] = cid
            self.pending.append(Command(cid, lba, frame, self.world.cycle + self.delay(), self.status()))
            self.sq_head = (self.sq_head + 1) % depth
            if self.sq_head == 0:
                cover("nvme.sq_wrap")
        busy = sum(1 for device in self.world.devices if device.pending)
        if busy > 1:
            cover("nvme.two_devices")
        if len(self.pending) == self.world.sizes.pmshr:
            cover("nvme.as_many_as_pmshr")

    def step(self) -> None:
        """Complete one of the commands that are due, chosen at random."""
        due = [command for command in self.pending if command.due <= self.world.cycle]
        if due:
            self.complete(self.pending.index(self.rng.choice(due)))

    def complete(self, which: int = 0, status: int | None = None) -> bool:
        """Complete a command. Return whether there was a command, and room for its entry. The device writes the data whatever the
        status is."""
        if which >= len(self.pending):
            return False
        command = self.pending[which]
        status = command.status if status is None else status
        if not self.post(command.cid, status, answer=True):
            return False
        self.pending.pop(which)
        self.past = command.cid
        world, page = self.world, command.lba // BLOCKS % self.world.sizes.pages
        place = world.places[command.frame]
        world.check(place == "smu", "SMU-7", f"device wrote frame {command.frame} of {place}")
        drained = world.drained[self.index]
        world.check(world.accepted[page] > drained, "SMU-8", f"device wrote for page {page} after a drain over it")
        world.content[command.frame] = command.lba if status == 0 else None
        cover("nvme.out_of_order" if which else "nvme.in_order")
        if status:
            cover("nvme.error")
        return True

    def post(self, cid: int, status: int, answer: bool = False) -> bool:
        """Write a completion queue entry, if there is room."""
        depth = self.world.sizes.depth
        if (self.cq_tail + 1) % depth == self.cq_head:
            cover("nvme.cq_full")
            return False
        at = self.world.cq(self.index) + C["NVME_CQE_SIZE"] * self.cq_tail
        phase = 1 - self.wraps % 2
        # SQ head and SQ identifier are wrong on purpose.
        upper = of("CQE_SQHD", 0xbeef) | of("CQE_SQID", 0xdead)
        upper |= of("CQE_CID", cid) | of("CQE_PHASE", phase) | of("CQE_STATUS", status)
        self.world.ram.write(at, self.rng.getrandbits(64))
        self.world.ram.write(at + C["NVME_CQE_DW2"], upper)
        self.answers.append(answer)
        self.cq_tail = (self.cq_tail + 1) % depth
        self.wraps += self.cq_tail == 0
        if self.cq_tail == 0:
            cover("nvme.cq_wrap")
        self.posted(at)
        return True

    def stray(self, cid: int, kind: str) -> None:
        """Post a completion that belongs to no command of this device."""
        if all(command.cid != cid for command in self.pending) and self.post(cid, 0):
            cover(f"nvme.stray_{kind}")

    def late(self) -> None:
        """Send the latest completion again, although its entry may have another command by now."""
        if self.past is not None:
            self.stray(self.past, "late")
