"""A request in a soak: it asks, waits a while, confirms, reads as a device does, and writes what it adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

from hitproof.engine.cache.hold import Answer, Hold
from hitproof.engine.soak.judge import Wrong
from hitproof.engine.soak.ledger import Place
from hitproof.engine.soak.mixing import masked
from hitproof.engine.soak.prompts import UNIT, Asked
from hitproof.engine.soak.stage import Stage
from hitproof.engine.soak.world import Prefix
from hitproof.spec.memory import Extent

__all__ = ["Launch", "Requester", "UNSEEN_KINDS"]

UNSEEN_KINDS = frozenset({"bit_flip", "swapped_blocks", "wrong_generation", "wrong_object"})
"""Kinds that change bytes on the device behind everybody's back; whoever does not measure at a use cannot see them."""


_LATE = 0.3
_KEPT = 256
_ABORTS = 0.04
_WRITES_LITTLE = 0.05
_KEEPS_INPUTS = 0.7
_RULES = {
    "generation_current": "wrong_generation",
    "mapping_current": "stale_table",
    "encoding_matches": "other_kernel",
    "kernel_version_matches": "other_kernel",
    "scale_matches": "other_kernel",
    "same_weights": "hash_collision",
    "same_adapter": "hash_collision",
    "same_media": "hash_collision",
    "same_salt": "hash_collision",
}
"""Checks whose failure tells of a fault that no measurement of bytes shows."""


class Launch:
    """A read that was issued to the device; it takes place when the device gets to it, and is a fence until then.

    Args:
        read: Judges the rows as they are when the read takes place.
        spared: What keeps faults out of the rows since they were confirmed.
    """

    def __init__(self, read: Callable[[], object], spared: ExitStack) -> None:
        self._read, self._spared, self._done = read, spared, False

    def done(self) -> bool:
        """Whether the read has taken place."""
        return self._done

    def wait(self) -> None:
        """Let it take place."""
        if not self._done:
            with self._spared:
                self._read()
            self._done = True


@dataclass(frozen=True, slots=True)
class _Held:
    asked: Asked
    prompt: Any
    prefix: Prefix
    answer: Answer
    hold: Hold
    kernels: Mapping[str, Any]


class Requester:
    """Asks for prompts of the crowd, one operation a turn.

    Args:
        stage: The machine.
        name: Its name.
        draw: Decides what it does.
    """

    every = 0

    def __init__(self, stage: Stage, name: str, draw: Random) -> None:
        self.name = name
        self._stage, self._draw = stage, draw
        self._held: list[_Held] = []
        self._launches: list[Launch] = []
        self._known: dict[Asked, tuple[Any, Prefix]] = {}

    def turn(self) -> str:
        """Let a late read take place, use what is held, or ask anew."""
        with self._stage.ledger.turn() as words:
            if self._launches and self._draw.random() < 0.5:
                self._launches.pop(0).wait()
                words.append("the device has read")
            elif self._held and (len(self._held) > 2 or self._draw.random() < 0.5):
                self._use(self._held.pop(0), words)
            else:
                self._ask(words)
        return "; ".join(words)

    def reset(self) -> None:
        """Forget everything; the process that held it is gone."""
        self._held, self._launches, self._known = [], [], {}

    def stop(self) -> None:
        """Let every read take place, and give back what is held."""
        for launch in self._launches:
            launch.wait()
        for held in self._held:
            held.hold.release()
        self.reset()

    def _ask(self, words: list[str], before: _Held | None = None) -> None:
        """Ask for a prompt: that of a hold that could not be used, or another."""
        stage = self._stage
        asked = stage.crowd.ask(self._draw) if before is None else before.asked
        prompt, prefix = self._prompt(asked)
        if before is None and self._draw.random() < stage.settings.rate("hash_collision"):
            other = stage.crowd.other(asked, self._draw)
            theirs, asked = prompt, other
            prompt, prefix = self._prompt(other)
            stage.injector.collide(stage.core, prompt, theirs)
        kernels = dict(stage.core.kernels)
        with stage.ledger.during("a repair's postcondition"):
            answer = stage.manager.acquire(prompt)
        stage.count("answers")
        stage.count(f"verdict {answer.verdict}")
        self._notice(prompt, answer)
        words.append(_told(answer))
        if answer.hold is None:
            stage.count(f"{answer.verdict}: {answer.why}")
            return
        held = _Held(asked, prompt, prefix, answer, answer.hold, kernels)
        if before is None and self._draw.random() < stage.settings.waits:
            self._held.append(held)
        else:
            self._use(held, words, again=before is None)

    def _prompt(self, asked: Asked) -> tuple[Any, Prefix]:
        """A prompt as the manager takes it, and the truth about it; those asked for before are kept."""
        known = self._known.get(asked)
        if known is None:
            stage = self._stage
            if len(self._known) >= _KEPT:
                self._known.clear()
            prompt = stage.manager.prompt(asked.tokens, asked.facts)
            known = self._known[asked] = prompt, stage.world.prefix(asked.tokens, asked.facts)
        return known

    def _use(self, held: _Held, words: list[str], *, again: bool = True) -> None:
        """Confirm right before the launch, read, write what is missing, and give everything back."""
        stage, hold = self._stage, held.hold
        spared = ExitStack()
        spared.enter_context(stage.ledger.reading(_places(hold)))
        with stage.ledger.during("confirm"):
            confirmed = hold.confirm()
        if not confirmed or not self._same_kernels(held):
            spared.close()
            self._refuse(hold)
            hold.release()
            words.append("asked anew")
            if again:
                self._ask(words, held)
            return
        stage.ledger.name("confirm", "")
        launch = Launch(lambda: self._read(held), spared)
        if hold.usable:
            stage.count("leases confirmed")
        late = self._draw.random() < _LATE
        if not late:
            stage.at("use")
            launch.wait()
        if held.prompt.length - hold.usable > UNIT or self._draw.random() < _WRITES_LITTLE:
            words.append(self._write(held))
        if late:
            self._launches.append(launch)
        hold.release(launch)

    def _read(self, held: _Held) -> None:
        """Read as the device does; what is wrong is the fault of whatever lies there."""
        stage = self._stage
        if held.hold.usable:
            wrong = stage.judge.use(held.prefix, held.hold.usable, held.hold.tables, held.kernels)
            self._blame(held.hold, wrong)

    def _blame(self, hold: Hold, wrong: Iterable[Wrong]) -> None:
        stage = self._stage
        for one in wrong:
            slots = [piece.slot for piece in hold.tables.get(one.group, ())]
            odd = any(stage.memory.oddity(one.group, block) for block in one.blocks[:1])
            spoiled = [
                fault
                for fault in stage.ledger.of((one.group, block) for block in one.blocks)
                if odd or fault.kind != "odd_address"
            ]
            told = stage.injector.done_to(slots)
            faults = spoiled or [fault for fault in told if not fault.caught] or told
            stage.ledger.use(faults)
            if not any(fault.kind in UNSEEN_KINDS for fault in faults):
                stage.count("wrong without a fault")

    def _refuse(self, hold: Hold) -> None:
        """Note why a confirmation failed."""
        stage = self._stage
        why = f"confirm: {hold.broken}" if hold.broken else "confirm: another kernel was loaded"
        stage.count(why)
        stage.ledger.name("confirm", why)
        slots = [piece.slot for pieces in hold.tables.values() for piece in pieces]
        for kind in ("stale_table", "wrong_generation"):
            stage.ledger.catch(stage.injector.of(slots, kind), why)

    def _same_kernels(self, held: _Held) -> bool:
        """A launch uses the kernels that were decided for; one that was replaced meanwhile is not launched."""
        current = self._stage.core.kernels
        return all(current[group] is kernel for group, kernel in held.kernels.items())

    def _write(self, held: _Held) -> str:
        """Write what the prompt adds to what is reused."""
        stage = self._stage
        length = held.prompt.length
        ends = [end for end in stage.crowd.ends if end < length]
        boundaries = {(length - 1) // UNIT * UNIT, *(self._draw.sample(ends, 1) if ends else ())}
        with stage.ledger.during("commit: measured against what was written"):
            inputs = self._draw.random() < _KEEPS_INPUTS
            writing = stage.manager.begin(held.prompt, held.hold, boundaries=sorted(boundaries), inputs=inputs)
            if writing is None:
                stage.count("not written: no room")
                return "no room to write"
            recorded, places = {}, writing.extents
            for slot in writing.slots:
                if slot.extent is not None:
                    recorded[slot.extent] = self._put(held.prefix, writing, places[slot.group.id], slot)
            if self._draw.random() < _ABORTS:
                writing.abort()
                return "aborted"
            why = writing.commit(recorded)
        stage.count("commits refused" if why else "commits")
        return "nothing published" if why else "committed"

    def _put(self, prefix: Prefix, writing: Any, places: Iterable[tuple[int, int, Extent]], slot: Any) -> str:
        """Write one segment in two parts; answers the fingerprint of what was meant."""
        stage = self._stage
        start, end = next((start, end) for start, end, extent in places if extent == slot.extent)
        rows = masked(prefix.rows(slot.group.id, start, end), slot.facts.encoding, slot.facts.scale_version)
        half = rows.shape[1] // 2
        for first, part in ((0, rows[:, :half]), (half, rows[:, half:])):
            if part.shape[1]:
                writing.put(slot.extent, first, part.tobytes())
        return stage.memory.digest(slot.group.id, rows.tobytes())

    def _notice(self, prompt: Any, answer: Answer) -> None:
        """Checks that failed name the faults that were done to tables, keys and kernels of segments on the path."""
        stage, decision = self._stage, answer.decision
        rules = () if decision is None else decision.failed
        known = [rule for rule in rules if rule.partition("/")[2] in _RULES]
        if not known:
            return
        core = stage.core
        with core.lock:
            slots = sorted(core.index.find(prompt)[1], key=lambda slot: slot.number)
        for rule in known:
            group, _, check = rule.partition("/")
            layer = next(one.layer for one in core.groups[group].checks if one.id == check)
            of_group = [slot for slot in slots if slot.group.id == group]
            stage.ledger.catch(stage.injector.of(of_group, _RULES[check]), f"decision: {layer}/{check}")


def _places(hold: Hold) -> list[Place]:
    return [
        (group, block) for group, pieces in hold.tables.items() for piece in pieces for block in piece.extent.blocks
    ]


def _told(answer: Answer) -> str:
    steps = () if answer.decision is None else answer.decision.plan
    repairs = sorted({step.option for step in steps})
    return f"{answer.verdict} ({', '.join(repairs)})" if repairs else answer.verdict
