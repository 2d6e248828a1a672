"""A real manager with two segments of one prompt, two requests that read both, and who may come in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from unittest.mock import patch

from hitproof.engine import Engine, load
from hitproof.engine.cache import Answer, CacheManager, Hold, PlainMemory, Prompt
from hitproof.engine.cache.log import StepLog
from hitproof.engine.table import TransitionTable
from hitproof.rules.profiles import load_profile
from hitproof.rules.profiles.slim import slimmed
from hitproof.spec.repair import RepairJob, RepairOutcome
from hitproof.spec.steplog import StepTaken
from tests.agreement.interleavings.baton import Baton
from tests.engine.cache.cases import IDENTITY, payload, prompt_tokens

__all__ = ["CASTS", "FIRST", "GROUP", "WIDER", "World", "engine", "table"]

UNIT = 16
TOKENS = prompt_tokens(2 * UNIT)
OTHERS = prompt_tokens(UNIT, seed=5)
GROUP = "full"
BLOCKS = 6

FIRST = {"home": (), "demoted": ("B",)}
"""Which of the segments A and B lie in host memory when a run begins, by its name."""

CASTS: tuple[tuple[str, ...], ...] = (
    ("reader", "sender", "evict A", "demote B"),
    ("reader", "sender", "promote B", "demote B"),
    ("reader", "sender", "evict A", "writer"),
    ("reader", "sender", "defragment", "demote B"),
    ("reader", "sender", "promote B", "keeper"),
    ("reader", "sender", "demote B", "spoiler"),
)
"""Two requests, and two of those who move, give up, write or spoil segments. Who moves does it again and again."""

WIDER: tuple[tuple[str, ...], ...] = (
    ("reader", "sender", "demote B", "promote B", "defragment", "evict A"),
    ("reader", "sender", "writer", "evict A", "demote B", "keeper"),
)
"""Two requests, and four others at once."""


@cache
def engine() -> Engine:
    """The shipped rulebook for full attention alone: one group with bytes, and its manifest."""
    profile = load_profile("gemma-3-27b")
    groups = tuple(group for group in profile.groups if group.id in (GROUP, "prefix_manifest"))
    return load(slimmed(profile.model_copy(update={"groups": groups}), 1))


@cache
def table() -> TransitionTable:
    """The engine's table, which holds no segment, for all runs; whoever breaks how it is made clears this cache."""
    return TransitionTable(engine().bound)


class Launch:
    """A read that the device has not completed, until it has."""

    def __init__(self) -> None:
        self.over = False

    def done(self) -> bool:
        """Whether the device has read."""
        return self.over

    def wait(self) -> None:
        """Nobody waits for the device here."""
        raise AssertionError("a request waits for the device under the lock")


class World:
    """One run: a manager, its log, and its actors at their points.

    Args:
        first: Which segments are demoted when it begins; one of `FIRST`.
        actors: Who takes part; see `CASTS`.
        told: Gets every step of the log.
        broken: Called with the manager before anybody acts.
    """

    def __init__(
        self,
        first: str,
        actors: tuple[str, ...],
        told: Callable[[StepTaken], object],
        broken: Callable[[CacheManager], None] = lambda _: None,
    ) -> None:
        self.phases = dict.fromkeys(actors, "")
        self.holds: dict[str, Hold] = {}
        self.misread = ""
        self.spoiled = False
        self.left: dict[str, tuple[tuple[int, int], ...]] = {}
        self._baton: Baton | None = None
        bound = engine()
        self.memory = PlainMemory(bound.bound, BLOCKS)
        with patch("hitproof.engine.cache.core.TransitionTable", lambda _: table()):
            self.manager = CacheManager(
                bound, self.memory, _nothing, unit=UNIT, host_bytes=1 << 20, request=IDENTITY, at=self._at
            )
        self.log = StepLog(self.manager._core, told, lambda: self._at("unlocked"))
        broken(self.manager)
        self.prompt = self.manager.prompt([*TOKENS, 1])
        for length in (UNIT, 2 * UNIT):
            self._write(self.manager.prompt(TOKENS[:length]))
        self.slots = dict(zip("AB", self.manager.slots(GROUP), strict=True))
        for name in FIRST[first]:
            self.manager.demote(self.slots[name])
        bodies = {
            "reader": lambda: self._read("reader", late=False),
            "sender": lambda: self._read("sender", late=True),
            "writer": lambda: self._write(self.manager.prompt(OTHERS)),
            "evict A": lambda: self._again(lambda: self.manager.evict(self.slots["A"])),
            "demote B": lambda: self._again(lambda: self.manager.demote(self.slots["B"])),
            "promote B": lambda: self._again(lambda: self.manager.promote(self.slots["B"]), "turn"),
            "defragment": lambda: self._again(lambda: self.manager.defragment(GROUP)),
            "keeper": lambda: self._again(self.manager.housekeep, "turn"),
            "spoiler": self._spoil,
        }
        self._baton = Baton({name: bodies[name] for name in actors})
        for name in actors:
            # Up to the first point nothing happens to the manager.
            self.step(name)

    @property
    def baton(self) -> Baton:
        """Who steers the actors."""
        if self._baton is None:
            raise AssertionError("the run has not begun")
        return self._baton

    def _at(self, point: str) -> None:
        if self._baton is None:
            return
        if self.log.lock.mine:
            self.misread = f"the point '{point}' lies within a step"
            return
        self._baton.at(point)

    def _again(self, operation: Callable[[], object], point: str = "") -> None:
        """An operation again and again; `point` is for one that may do nothing without coming by a point."""
        while True:
            if point:
                self._at(point)
            operation()

    def _spoil(self) -> None:
        """The entry of A in the page table leads elsewhere, and nobody has said so."""
        self._at("turn")
        self.log.faulted(self.slots["A"], _divert)
        self.spoiled = True

    def _read(self, name: str, *, late: bool) -> None:
        """One request's life; a late one releases before the device has read."""
        answer: Answer = self.manager.acquire(self.prompt)
        hold = answer.hold
        if hold is None:
            self.phases[name] = answer.verdict
            return
        self.holds[name] = hold
        self.phases[name] = "checked"
        if not hold.confirm():
            self.phases[name] = "turned away"
            hold.release()
            return
        self.phases[name] = "confirmed"
        if any(held.facts.mapped_generation != held.slot.facts.mapped_generation for held in hold.reads()):
            self.misread = "a page table entry was changed after the check, and the confirmation said nothing of it"
        self._at("use")
        launch = Launch()
        self.log.used(hold)
        self.phases[name] = "using"
        self._compare(hold)
        if late:
            hold.release(launch)
            self.phases[name] = "releasing"
        self._at("complete")
        self._compare(hold)
        launch.over = True
        if late:
            self.phases[name] = "completed"
            self.manager.housekeep()
        else:
            self.log.completed(hold)
            self.phases[name] = "completed"
            hold.release()
        self.phases[name] = "released"

    def _compare(self, hold: Hold) -> None:
        """What the device reads must be what was written for the tokens."""
        reached = 0
        for held in hold.reads():
            start, end = held.facts.start, held.facts.end
            if self.memory.read(held.extent) != self._rows(self.prompt, start, end, held.extent.rows):
                self.misread = f"the rows of [{start}, {end}) are not those that were checked"
            reached = max(reached, end) if start <= reached else reached
        if reached < hold.usable:
            self.misread = f"{hold.usable} tokens are reused, and {reached} are read"

    def _write(self, prompt: Prompt) -> None:
        answer = self.manager.acquire(prompt)
        if answer.hold is None:
            return
        writing = self.manager.begin(prompt, answer.hold)
        if writing is not None:
            for start, end, extent in writing.extents.get(GROUP, ()):
                writing.put(extent, 0, self._rows(prompt, start, end, extent.rows))
            writing.commit()
        answer.hold.release()

    def _rows(self, prompt: Prompt, start: int, end: int, rows: int) -> bytes:
        size = self.memory.shape(GROUP).payload_bytes(rows)
        return payload(size, start, end, prompt.digest(end))

    def step(self, name: str) -> None:
        """Let one actor take its next step."""
        self.baton.step(name)
        self.left[name] = self.epochs()

    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Which life of which slot, and its epoch."""
        return tuple((slot.incarnation, slot.facts.epoch) for slot in self.manager._core.slots[GROUP])


def _divert(facts: Any) -> None:
    facts.mapped_generation = None if facts.mapped_generation is None else facts.mapped_generation + 1


def _nothing(_: RepairJob) -> RepairOutcome:
    return RepairOutcome("failed", {}, "nothing here can compute it")
