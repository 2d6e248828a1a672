"""The gate written to be read: a record a block, a segment a block, every length asked of the engine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine import Engine, Resolved
from hitproof.integrations.gate.groups import GroupBlocks
from hitproof.integrations.gate.statements import NO_REPAIRS, Statements
from hitproof.spec.bound import BoundGroup
from hitproof.spec.facts import Value

__all__ = ["PlainBlock", "PlainGate"]


@dataclass(slots=True)
class PlainBlock:
    """Everything that was told of one block.

    Args:
        generation: Grows when it is given out or written.
        written: Generation at which it was written; 0 where it never was.
        start: Token at which its content begins.
        identity, contract: What its writer stated.
        epoch: Epoch of the pool in which it was written.
    """

    generation: int = 0
    written: int = 0
    start: int = 0
    digest: Hashable = None
    identity: Mapping[str, Value] = field(default_factory=dict)
    contract: Mapping[str, Value] = field(default_factory=dict)
    epoch: int = 1
    sealed: bool = False
    recorded: str | None = None
    measured: str | None = None


class PlainGate:
    """Answers as `BlockGate` does, one block and one length at a time.

    Args:
        engine: Rules, bound to the model as the framework groups it.
        groups: The framework's groups, each with its id in the profile and its blocks.
        identity, contract: As of `BlockGate`, the contract for all groups.
        unit: Tokens of a hash unit.
    """

    def __init__(
        self,
        engine: Engine,
        groups: Mapping[str, tuple[str, GroupBlocks]],
        *,
        identity: Mapping[str, Value],
        contract: Mapping[str, Value],
        unit: int,
    ) -> None:
        self.engine, self.groups, self.unit = engine, groups, unit
        self.contract = {name: dict(contract) for name in groups}
        self.epoch = 1
        self.statements = Statements(engine, identity)
        self.blocks: dict[tuple[str, int], PlainBlock] = {}

    def block(self, group: str, block: int) -> PlainBlock:
        """What is known of a block."""
        return self.blocks.setdefault((group, block), PlainBlock())

    def judge(
        self,
        length: int,
        matched: int,
        blocks: Mapping[str, Sequence[int]],
        digests: Mapping[str, Sequence[Hashable]],
        identity: Mapping[str, Value],
    ) -> int:
        """The longest length at which no check of any group fails; ids below 0 stand for no block."""
        request = self.statements.request(length, self.unit, identity)
        runtime = self.statements.runtime(self.epoch)
        kernels = {group.id: self.statements.kernel({}) for group in self.engine.bound.groups}
        pieces: dict[str, list[Any]] = dict(self.statements.records(request, matched))
        for name, listed in blocks.items():
            bound = self.engine.bound.group(self.groups[name][0])
            kernels[bound.id] = self.statements.kernel(self.contract[name])
            pieces[bound.id] = [
                self._segment(bound, name, block, place, digests[name][place], matched, request)
                for place, block in enumerate(listed)
                if block >= 0
            ]
        state = Resolved(request, runtime, kernels, pieces, matched, NO_REPAIRS)
        # At least one token is computed, and a framework resumes at whole units alone.
        for candidate in range(1, min(length - 1, matched) + 1)[::-1]:
            if candidate % self.unit:
                continue
            outcome = self.engine.judge.outcome(state, self.engine.judge.nothing(), candidate)
            if outcome.clean and not outcome.steps:
                return candidate
        return 0

    def _segment(
        self, group: BoundGroup, name: str, block: int, place: int, asked: Hashable, matched: int, request: Any
    ) -> Any:
        told, blocks = self.block(name, block), self.groups[name][1]
        start, end = place * blocks.tokens, (place + 1) * blocks.tokens
        if told.written == 0:
            nobody = self.statements.nobody(group)
            nobody.start, nobody.end = start, end
            return nobody
        writer = self.statements.request(1, self.unit, told.identity)
        kernel, runtime = self.statements.kernel(told.contract), self.statements.runtime(told.epoch)
        facts = self.statements.template(group, writer, kernel, runtime)
        facts.end, facts.marks = end, frozenset((end,))
        constants = group.constants
        if group.rules.pieces == "point":
            facts.start, facts.bytes = 0, constants["state_bytes"]
        else:
            facts.start = start
            facts.bytes = blocks.tokens // constants["row_tokens"] * constants["row_bytes"]
        if "position" in group.facts:
            facts.position = end
        if "filed" in group.facts:
            facts.filed = end
        facts.generation = facts.mapped_generation = told.generation
        facts.written_generation = told.written
        facts.sealed = told.sealed
        facts.recorded, facts.measured = told.recorded, told.measured
        facts.address, facts.offset = blocks.address + block * blocks.stride, 0
        facts.stride = blocks.stride
        # Before the first picture of both, no picture had a part in what the block holds.
        if end + group.constants.get("lookahead", 0) <= min(writer.media_from, request.media_from):
            facts.media, facts.media_from = request.media, request.media_from
        facts.matched = matched if told.start == start and told.digest == asked else None
        return facts
