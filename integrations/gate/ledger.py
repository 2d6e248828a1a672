"""What a framework has told of its blocks: who wrote them for whom, and what became of them since."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine import Engine
from hitproof.integrations.gate.groups import GroupBlocks
from hitproof.integrations.gate.measuring import Measuring
from hitproof.integrations.gate.statements import Statements
from hitproof.integrations.gate.table import CURRENT, BlockTable
from hitproof.spec.bound import BoundGroup
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["Entry", "Ledger"]


@dataclass(slots=True)
class Entry:
    """A group of the framework: its table, its place in memory, and what its kernel reads.

    Args:
        templates: Facts by the kind of what was written; the first is of what nobody wrote.
        kinds: Number of each kind by what its writer stated.
        free: Numbers of kinds that no block is of any more.
    """

    bound: BoundGroup
    blocks: GroupBlocks
    table: BlockTable
    contract: dict[str, Value]
    templates: list[Any]
    kinds: dict[Hashable, int]
    free: list[int] = field(default_factory=list)
    sweep_at: int = 1024

    def keep(self, key: Hashable, template: Any) -> int:
        """Number a kind; numbers of kinds that no block is of any more are given out again."""
        if len(self.kinds) >= self.sweep_at:
            live = self.table.kinds()
            dead = [(old, kind) for old, kind in self.kinds.items() if kind not in live]
            for old, kind in dead:
                del self.kinds[old]
                self.free.append(kind)
            self.sweep_at = max(self.sweep_at, 2 * len(self.kinds))
        if self.free:
            kind = self.free.pop()
            self.templates[kind] = template
        else:
            kind = len(self.templates)
            self.templates.append(template)
        self.kinds[key] = kind
        return kind


class Ledger:
    """Keeps what is told of blocks. Blocks that nobody told of hold nothing.

    Args:
        engine: Rules, bound to the model as the framework groups it.
        groups: The framework's groups, each with its id in the profile and its blocks.
        statements: Makes carriers.
        contract: What the attention kernels read, for all groups; by group where the values are mappings.
        unit: Tokens of a hash unit.
        measuring: When bytes are measured.

    Raises:
        UsageError: A stated name is no fact of a kernel.
    """

    def __init__(
        self,
        engine: Engine,
        groups: Mapping[str, tuple[str, GroupBlocks]],
        statements: Statements,
        contract: Mapping[str, Any],
        unit: int,
        measuring: Measuring,
    ) -> None:
        self.engine, self.unit = engine, unit
        self._statements, self._measuring = statements, measuring
        self._pool_epoch = 1
        nested = any(isinstance(value, Mapping) for value in contract.values())
        self._groups: dict[str, Entry] = {}
        for name, (group_id, blocks) in groups.items():
            bound = engine.bound.group(group_id)
            stated = dict(contract.get(name, {}) if nested else contract)
            nobody = statements.nobody(bound)
            self._groups[name] = Entry(bound, blocks, BlockTable(blocks.tokens), stated, [nobody], {})
        self._restate()

    @property
    def groups(self) -> Mapping[str, str]:
        """The framework's groups with the id that each has in the profile."""
        return {name: entry.bound.id for name, entry in self._groups.items()}

    def contract(self, group: str, **facts: Value) -> None:
        """From now on the group's kernel reads something else; what was written before stays as it was written."""
        entry = self._entry(group)
        self._statements.kernel({**entry.contract, **facts})
        entry.contract.update(facts)
        self._restate()

    def resized(self) -> None:
        """The pools were moved or resized: what was written before leads nowhere. Changes the pool epoch."""
        self._pool_epoch += 1
        self._restate()

    def written(
        self,
        group: str,
        blocks: Sequence[int],
        *,
        first: int,
        digests: Sequence[Hashable],
        identity: Mapping[str, Value] | None = None,
        contract: Mapping[str, Value] | None = None,
        fingerprints: Sequence[str] | None = None,
    ) -> None:
        """Whole blocks were committed, and say whose they are.

        Where bytes are never measured, or with fingerprints, they are sealed at once; else they stay open until `seal`.

        Args:
            group: A group of the framework.
            blocks: Blocks that hold consecutive tokens.
            first: Token at which the first of them begins.
            digests: Of each block, what the framework files it under: a digest of all tokens up to its end.
            identity: What differs from the usual.
            contract: What differs from the contract of now, for bytes that come from elsewhere.
            fingerprints: Of what was written.

        Raises:
            UsageError: A name is no fact, lengths differ, or `first` is not where a block can begin.
        """
        entry = self._entry(group)
        tokens = entry.blocks.tokens
        if len(blocks) != len(digests) or (fingerprints is not None and len(fingerprints) != len(blocks)):
            raise UsageError("each block has one digest and one fingerprint", got=len(digests), expected=len(blocks))
        if first % tokens or first < 0 or min(blocks, default=0) < 0:
            raise UsageError("blocks begin at multiples of their tokens and have ids from 0", got=(first, list(blocks)))
        kind = self._kind(entry, identity or {}, {**entry.contract, **(contract or {})})
        entry.table.reserve(blocks)
        begins = entry.templates[kind].media_from or 0
        for index, (block, digest) in enumerate(zip(blocks, digests, strict=True)):
            entry.table.write(block, kind, first + index * tokens, digest, begins)
        if fingerprints is not None:
            self.seal(group, blocks, fingerprints)
        elif self._measuring.verify == "never":
            self.seal(group, blocks)

    def seal(self, group: str, blocks: Sequence[int], fingerprints: Sequence[str | None] | None = None) -> None:
        """The device has written; blocks may be shared from now on. Measures them unless the fingerprints are given.

        A block that cannot be measured, or was given to another meanwhile, stays as it is.

        Raises:
            UsageError: There is no such group.
        """
        table = self._entry(group).table
        table.reserve(blocks)
        taken = self._measuring.taken(group, blocks) if fingerprints is None else fingerprints
        for block, fingerprint in zip(blocks, taken, strict=True):
            if fingerprint is not None and int(table.code[block]) & CURRENT:
                table.seal(block, fingerprint)

    def freed(self, group: str, blocks: Sequence[int]) -> None:
        """What these blocks held is promised no more: they were evicted, or given to another writer.

        Raises:
            UsageError: There is no such group.
        """
        table = self._entry(group).table
        table.reserve(blocks)
        for block in blocks:
            table.give_out(block)

    def forget(self, group: str | None = None) -> None:
        """Nothing that was written is promised any more, in one group or in all."""
        for entry in self._groups.values() if group is None else [self._entry(group)]:
            entry.table.generation += 1
            entry.table.code &= ~CURRENT

    def _entry(self, name: str) -> Entry:
        entry = self._groups.get(name)
        if entry is None:
            raise UsageError("no such group", got=name, expected=", ".join(map(str, self._groups)))
        return entry

    def _restate(self) -> None:
        """Kernels and run time as they are now."""
        statements = self._statements
        self._runtime = statements.runtime(self._pool_epoch)
        self._kernels = {group.id: statements.kernel({}) for group in self.engine.bound.groups}
        for entry in self._groups.values():
            self._kernels[entry.bound.id] = statements.kernel(entry.contract)

    def _kind(self, entry: Entry, identity: Mapping[str, Value], contract: Mapping[str, Value]) -> int:
        """Number of what a writer writes, under which its facts are kept."""
        key = (frozenset(identity.items()), frozenset(contract.items()), self._pool_epoch)
        kind = entry.kinds.get(key)
        if kind is not None:
            return kind
        request = self._statements.request(1, self.unit, identity)
        kernel = self._statements.kernel(contract)
        return entry.keep(key, self._statements.template(entry.bound, request, kernel, self._runtime))
