"""Runs the repairs of a plan into private segments, and measures what they left there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.look import Found
from hitproof.engine.cache.room import Room
from hitproof.engine.cache.slot import IDENTITY, Slot
from hitproof.engine.cache.transfer import load_rows, read_stored
from hitproof.engine.store import Store
from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent
from hitproof.spec.repair import ComputeRepair, RepairJob, RepairOutcome, RepairRequest, Source
from hitproof.spec.rows import has_rows, rows_of

__all__ = ["Private", "Repairs"]

Place = tuple[str, int]

_SPAN = ("start", "end", "position")
"""What is measured of a span, as its writer tells it."""
_WHERE = ("layout", "kernel_version", "v_layout")


@dataclass(slots=True)
class Private:
    """Private copies of one recovery, by group and index of the piece.

    Args:
        owner: Who alone may use them.
        found: What was looked up.
        copies: The copy that counts for each place.
        facts: What is known of each copy.
        whole: Places whose copy has all rows of the segment that it stands for, not only those that the prompt shares.
        computed: Places that the plan at hand computes anew from tokens: what was found there is read by no repair.
    """

    owner: object
    found: Found
    copies: dict[Place, Slot] = field(default_factory=dict)
    facts: dict[Place, dict[str, Value]] = field(default_factory=dict)
    whole: set[Place] = field(default_factory=set)
    computed: frozenset[Place] = frozenset()


class Repairs:
    """What runs a repair by its name.

    Copies are run here, through the memory: `promote`, `checksum`, `relayout` where only the place changes, and
    `boundary_record`. Everything else is computed by the host framework.

    Args:
        core: The manager's state.
        room: Makes room for copies.
        compute: Runs the repairs that compute.
        disk: The tier below the host.
        measures: Whether the rows that a repair computes from are measured before: what is made of damaged rows has a
            fingerprint of its own, and nothing tells it from what is right.
    """

    def __init__(
        self, core: Core, room: Room, compute: ComputeRepair, disk: Store | None, *, measures: bool = False
    ) -> None:
        self._core, self._room, self._compute, self._disk = core, room, compute, disk
        self._measures = measures

    def run(self, private: Private, state: Any, request: RepairRequest) -> RepairOutcome:
        """Run one repair; what it wrote replaces the place's earlier copy."""
        began = perf_counter()
        outcome = self._run(private, state, request)
        return RepairOutcome(outcome.status, outcome.measured, outcome.detail, perf_counter() - began)

    def drop(self, private: Private) -> None:
        """Give all private copies up."""
        for slot in private.copies.values():
            self._abort(slot)
        private.copies.clear()
        private.facts.clear()
        private.whole.clear()

    def _run(self, private: Private, state: Any, request: RepairRequest) -> RepairOutcome:
        core, place = self._core, (request.group, request.segment)
        own = self._own(private, place)
        if request.repair == "checksum":
            if own is None or own.mapped is None:
                return RepairOutcome("source_lost", {}, "the bytes are gone")
            core.at("run")
            return RepairOutcome("done", {"measured": core.memory.fingerprint(own.mapped)})
        whole = own is not None and self._is_copy(request)
        target = self._target(private, request, own if whole else None)
        if target is None:
            return RepairOutcome("failed", {}, "there is no room for a copy")
        try:
            outcome = self._write(private, state, request, own, target)
        except BaseException:
            self._abort(target)
            raise
        if outcome.status != "done":
            self._abort(target)
            return outcome
        measured = self._measured(request, target, outcome.measured)
        meant = outcome.measured.get("recorded")
        if target.extent is not None and meant is not None and meant != measured["measured"]:
            self._abort(target)
            return RepairOutcome("failed", {}, f"{measured['measured']} lies there, and {meant} was meant")
        earlier = private.copies.pop(place, None)
        if earlier is not None:
            self._abort(earlier)
        private.copies[place] = target
        private.whole.discard(place)
        if whole:
            private.whole.add(place)
        private.facts[place] = {**request.wanted, **measured}
        return RepairOutcome("done", measured)

    def _write(
        self, private: Private, state: Any, request: RepairRequest, own: Slot | None, target: Slot
    ) -> RepairOutcome:
        core = self._core
        if target.extent is None:
            if request.repair == "boundary_record":
                return RepairOutcome("done", {})
            return self._computed(private, state, request, own, target)
        if request.repair == "promote":
            return self._promote(own, target.extent)
        if self._is_copy(request):
            if own is None or own.mapped is None:
                return RepairOutcome("source_lost", {}, "the bytes are gone")
            core.at("run")
            core.memory.copy(own.mapped, target.extent)
            core.memory.fence().wait()
            return RepairOutcome("done", {})
        return self._computed(private, state, request, own, target)

    def _promote(self, own: Slot | None, target: Extent) -> RepairOutcome:
        core = self._core
        host = None if own is None else own.host
        if host is None:
            stored = None if own is None else own.stored
            if stored is None or self._disk is None:
                return RepairOutcome("source_lost", {}, "neither host memory nor the disk has it")
            host = core.memory.host(target.group, target.rows)
            refused = read_stored(self._disk, stored, core.memory, host, core.at)
            if refused:
                return RepairOutcome("source_lost", {}, refused)
        transfer = load_rows(core.memory, host, target, core.at)
        if not transfer.done:
            return RepairOutcome("transfer_failed", {}, transfer.late)
        return RepairOutcome("done", {})

    def _computed(
        self, private: Private, state: Any, request: RepairRequest, own: Slot | None, target: Slot
    ) -> RepairOutcome:
        core = self._core
        damaged = self._damaged(private, request, own) if self._measures else ""
        if damaged:
            return RepairOutcome("source_lost", {}, damaged)
        held = {group: self._pieces(private, state, group) for group in core.groups}
        job = RepairJob(
            request,
            private.found.prompt.tokens,
            private.found.prompt.request.as_dict(),
            None if own is None or own.mapped is None else Source(request.facts, own.mapped),
            target.extent or Extent(request.group, (), 0),
            held,
            core.groups[request.group].peers,
        )
        core.at("run")
        outcome = self._compute(job)
        core.memory.fence().wait()
        return outcome

    def _damaged(self, private: Private, request: RepairRequest, own: Slot | None) -> str:
        """Which source of a repair is not what was recorded of it; such a segment is set apart. Empty where none is."""
        core = self._core
        group = core.groups[request.group]
        groups = {group.peers[role] for role in request.sources if role in group.peers}
        passed_over: frozenset[Place] = frozenset()
        if request.repair == "forward":
            groups, passed_over = set(core.groups), private.computed
        pieces = [
            piece.slot
            for name in sorted(groups)
            for index, piece in enumerate(private.found.pieces[name])
            if (name, index) not in passed_over
        ]
        reads_own = any(option.own_bytes for option in group.options if option.repair == request.repair)
        for slot in (*([own] if own is not None and reads_own else []), *pieces):
            recorded = slot.facts.recorded
            if slot.mapped is None or slot.owner is not None or recorded is None:
                continue
            if core.memory.fingerprint(slot.mapped) != recorded:
                with core.lock:
                    slot.suspect = slot.suspect or "quarantine: torn"
                return f"rows of group '{slot.group.id}' are not what was recorded of them"
        return ""

    def _pieces(self, private: Private, state: Any, group: str) -> tuple[Source, ...]:
        """The group's pieces in token order, with copies in the place of what they mend."""
        names = self._core.groups[group].facts
        found = [
            self._source(private, (group, index), piece.slot, {name: getattr(view, name) for name in names})
            for index, (view, piece) in enumerate(zip(state.pieces[group], private.found.pieces[group], strict=True))
        ]
        missing = private.copies.get((group, -1))
        if missing is not None:
            found.append(self._source(private, (group, -1), missing, {}))
        return tuple(found)

    @staticmethod
    def _source(private: Private, place: Place, slot: Slot, facts: Mapping[str, Value]) -> Source:
        slot = private.copies.get(place, slot)
        return Source(private.facts.get(place, facts), slot.mapped or Extent(place[0], (), 0))

    def _own(self, private: Private, place: Place) -> Slot | None:
        """Whose rows a repair of a place reads."""
        if place in private.copies:
            return private.copies[place]
        return private.found.pieces[place[0]][place[1]].slot if place[1] >= 0 else None

    def _is_copy(self, request: RepairRequest) -> bool:
        """Whether a repair changes nothing but where the rows lie."""
        if request.repair == "promote":
            return True
        same = all(request.facts.get(name) == request.wanted.get(name) for name in _WHERE)
        return request.repair == "relayout" and same

    def _target(self, private: Private, request: RepairRequest, whole: Slot | None) -> Slot | None:
        """A pending segment for the copy, with as many rows as the whole segment that it copies or as are wanted."""
        group = self._core.groups[request.group]
        wanted = request.wanted
        start, end = wanted.get("start"), wanted.get("end")
        if not isinstance(start, int) or not isinstance(end, int) or end < start:
            start = end = 0
        rows = 0
        if has_rows(group):
            rows = whole.rows if whole is not None and whole.rows else rows_of(group, start, end)
        given: dict[str, Value] = {name: wanted.get(name) for name in IDENTITY}
        return self._room.allocate(
            request.group, rows, private.owner, start=start, matched=wanted.get("matched"), **given
        )

    def _measured(self, request: RepairRequest, target: Slot, told: Mapping[str, Value]) -> dict[str, Value]:
        """What is measured of a copy: where it lies, its fingerprint and size, and the span that its writer tells."""
        core = self._core
        span = {name: told.get(name, request.wanted.get(name)) for name in _SPAN}
        if target.extent is None:
            return span
        fingerprint = core.memory.fingerprint(target.extent)
        shape = core.memory.shape(request.group)
        size = shape.payload_bytes(target.extent.rows)
        return {
            **span,
            "address": core.address(target),
            "measured": fingerprint,
            "recorded": fingerprint,
            "bytes": size,
            **{name: value for name, value in told.items() if name in ("kv_content", "kv_generation")},
        }

    def _abort(self, slot: Slot) -> None:
        self._core.at("abort")
        with self._core.lock:
            self._core.fire(slot, "abort")
