"""Writing: pending segments for what a request computes, visible all together at their commit or never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Hold
from hitproof.engine.cache.manifest import MANIFEST
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.room import Room
from hitproof.engine.cache.slot import IDENTITY, Entry, Slot
from hitproof.engine.compile import CompiledGroup
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.keys import segment_key
from hitproof.spec.errors import InternalError, UsageError
from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent, Payload
from hitproof.spec.rows import has_rows, is_state, rows_of

__all__ = ["Span", "Writing", "spans_to_write"]

Span = tuple[str, int, int]
"""Group, and the tokens [first, to) of one segment of it."""


class Writing:
    """Segments that one request writes, private until `commit`.

    Attributes:
        slots: The pending segments, in the order of the model's groups.
    """

    def __init__(self, core: Core, room: Room, prompt: Prompt, number: int, *, approximate: bool) -> None:
        self._core, self._room, self.prompt = core, room, prompt
        self._number, self._approximate = number, approximate
        self.slots: list[Slot] = []
        self._spans: dict[Slot, Span] = {}
        self._open = True
        self.on_end: Callable[[Prompt], None] = _nothing
        """Called once, when it ends after its blocks were taken."""

    @property
    def open(self) -> bool:
        """Whether it has neither been committed nor aborted."""
        return self._open

    @property
    def extents(self) -> Mapping[str, tuple[tuple[int, int, Extent], ...]]:
        """Where each group's rows go: first token, one past the last, the extent; groups without bytes are left out."""
        found: dict[str, list[tuple[int, int, Extent]]] = {}
        for slot in self.slots:
            group, start, end = self._spans[slot]
            if slot.extent is not None:
                found.setdefault(group, []).append((start, end, slot.extent))
        return {group: tuple(places) for group, places in found.items()}

    def reserve(self, spans: Iterable[Span]) -> bool:
        """Take blocks for all spans, or none."""
        request = self.prompt.request
        identity: dict[str, Value] = {name: getattr(request, name) for name in IDENTITY}
        for group, start, end in spans:
            bound = self._core.groups[group]
            rows = rows_of(bound, start, end) if has_rows(bound) else 0
            slot = self._room.allocate(group, rows, self, start=start, matched=end, **identity)
            if slot is None:
                self.abort()
                return False
            self.slots.append(slot)
            self._spans[slot] = (group, start, end)
        return True

    def put(self, extent: Extent, first: int, payload: Payload) -> None:
        """Write rows of one extent through the manager; a framework's own kernels may write there as well.

        Args:
            extent: One of `extents`.
            first: Row of the extent at which they begin.
            payload: Bytes [layers][rows][row_bytes].

        Raises:
            UsageError: The writing has ended, so the blocks may be somebody else's.
        """
        self._must_be_open()
        self._core.at("write")
        self._core.memory.write(extent, first, payload)

    def commit(self, recorded: Mapping[Extent, str] | None = None) -> str:
        """Let look-ups find the segments, all at once.

        The bytes are measured where they lie. Where the writer says which fingerprints it meant to write, they must be
        those; else what lies there is taken for what was meant.

        Args:
            recorded: Fingerprint of what was meant to be written, by extent.

        Returns:
            Why nothing was committed; empty where everything was.

        Raises:
            UsageError: The writing has ended.
        """
        self._must_be_open()
        core = self._core
        if self._approximate:
            self.abort()
            return "approximate state is never published under an exact key"
        core.memory.fence().wait()
        measured: dict[Slot, str] = {}
        for slot in self.slots:
            if slot.extent is None:
                continue
            measured[slot] = core.memory.fingerprint(slot.extent)
            meant = None if recorded is None else recorded.get(slot.extent)
            if meant is not None and meant != measured[slot]:
                self.abort()
                return f"{slot.group.id}: {measured[slot]} lies there, and {meant} was meant"
        claims = self._claims(measured)
        keys = {slot: self._keys(slot) for slot in self.slots}
        core.at("commit")
        with core.lock:
            self._open = False
            self._publish(claims, keys)
            self.on_end(self.prompt)
        return ""

    def abort(self) -> None:
        """Give everything up; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        self._core.at("abort")
        with self._core.lock:
            for slot in self.slots:
                self._core.fire(slot, "abort")
            self.on_end(self.prompt)

    def _publish(self, claims: Mapping[Slot, Mapping[str, Value]], keys: Mapping[Slot, Any]) -> None:
        core, entry = self._core, Entry(self._number)
        for slot in self.slots:
            if not core.fire(slot, "commit", claims[slot]):
                raise InternalError(f"{slot} refuses to be committed")
            slot.owner, slot.entry = None, entry
            slot.disk_key = segment_key(slot.group, "disk", slot.facts, self.prompt.digest)
            core.index.file(slot, keys[slot])
            core.touch(slot)
            entry.members.append(slot)
        entry.keys = core.manifest_keys(self.prompt)

    def _claims(self, measured: Mapping[Slot, str]) -> dict[Slot, dict[str, Value]]:
        """What the writer says of each segment: what the rulebook calls healthy of one that it has written."""
        core, made, claims = self._core, dict[str, list[Any]](), dict[Slot, dict[str, Value]]()
        for slot in self.slots:
            group, start, end = self._spans[slot]
            bound = core.groups[group]
            taken = next(rule for rule in bound.transitions if rule.id == "commit").takes
            # What a commit says is worked out anew: a slot that was taken again remembers an earlier segment.
            given: dict[str, object] = {
                name: value
                for name in bound.facts
                if name not in taken and (value := getattr(slot.facts, name)) is not None
            }
            given |= {"start": start, "end": end, "form": bound.home}
            if slot in measured:
                given["recorded"] = measured[slot]
            peers = {
                role: one
                for role, peer in bound.peers.items()
                for one in made.get(peer, ())
                if one.start <= start or len(made[peer]) == 1
            }
            scopes = {"request": self.prompt.request, "runtime": core.runtime, "kernel": core.kernels[group]}
            facts = healthy_segment(core.engine.types, bound, given, scopes, peers, only=taken)
            made.setdefault(group, []).append(facts)
            claims[slot] = {name: getattr(facts, name) for name in taken}
        return claims

    def _keys(self, slot: Slot) -> Any:
        group, start, end = self._spans[slot]
        inner = not is_state(self._core.groups[group])
        return self._core.index.keys(group, self.prompt, start, end, inner=inner)

    def _must_be_open(self) -> None:
        if not self._open:
            raise UsageError("the writing has ended", expected="a writing that was neither committed nor aborted")


def _nothing(_: Prompt) -> None:
    """Nobody is told."""


def spans_to_write(
    groups: Iterable[CompiledGroup], length: int, hold: Hold, boundaries: Iterable[int], *, inputs: bool
) -> list[Span]:
    """What a request writes once its whole prompt is computed.

    Args:
        groups: The groups of the model.
        length: Tokens of the prompt.
        hold: What it reuses; rows before `hold.usable` are there already.
        boundaries: Further lengths at which another request shall be able to resume.
        inputs: Whether the layers' inputs are kept.

    Returns:
        The segments, each of one group; states have one a boundary.
    """
    reused = hold.usable
    ends = sorted({*(end for end in boundaries if reused < end < length), length})
    spans: list[Span] = []
    for group in groups:
        bound = group.bound
        if bound.object == MANIFEST or (bound.object == "layer_inputs" and not inputs):
            continue
        if bound.object == "layer_inputs":
            spans.append((group.id, reused, length))
        elif is_state(bound):
            for end in ends:
                if group.idle is None or not group.idle(end):
                    spans.append((group.id, *group.span(end)))
        elif bound.rules.pieces == "point":
            spans.append((group.id, 0, length))
        else:
            first = min(group.span(end)[0] for end in ends)
            to = group.span(length)[1]
            rows = int(bound.constants.get("row_tokens", 1))
            first = max(first, reused - reused % rows)
            if first < to:
                spans.append((group.id, first, to))
    return spans
