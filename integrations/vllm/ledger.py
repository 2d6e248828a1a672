"""What the gate is told of vLLM's blocks, and when: hashed before they are written, promised only afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.integrations.gate import BlockGate, Gated
from hitproof.integrations.vllm.identity import Identities
from hitproof.integrations.vllm.layout import NULL_BLOCK, CacheGroup
from hitproof.spec.decision import Decision

__all__ = ["Ledger", "NOTHING", "Written"]

NOTHING = Gated(0, 0, Decision("miss", 0, 0))
"""The answer about a request of which nothing was found."""


@dataclass(frozen=True, slots=True)
class Written:
    """A block that was hashed for a step that the device has not finished.

    Args:
        group: Its group for the gate.
        block: Its id.
        request: Of whose tokens.
        adapter: The adapter that the request names.
        first, end: Its tokens.
        digest: Its hash.
        identity: Of its writer.
    """

    group: str
    block: int
    request: str
    adapter: Any
    first: int
    end: int
    digest: bytes
    identity: Mapping[str, str | None]


class Ledger:
    """Tells the gate of one engine what happens to blocks, and asks it about hits. The scheduler's thread owns it.

    vLLM puts a block into its index when it is allocated, before anything is written. Here a block is nobody's until
    the step that writes it has come back, with the adapter and the weights that were meant.

    Args:
        gate: The gate.
        groups: The engine's groups.
        identities: Who a request is.
    """

    def __init__(self, gate: BlockGate, groups: Sequence[CacheGroup], identities: Identities) -> None:
        self.gate = gate
        self.identities = identities
        self._names = {group.index: group.name for group in groups}
        self._tokens = {group.index: group.blocks.tokens for group in groups}
        self._recorded: dict[int, str] = {}
        self._pending: dict[int, Written] = {}
        self._of_step: dict[int, list[Written]] = {}
        self._new: list[Written] = []
        self._weights: dict[str, str] = {}
        # Who an adapter's request is takes a question to the workers; within one step one is enough.
        self._asked: dict[str, Mapping[str, str | None]] = {}
        self._answers: dict[str, Gated] = {}

    @property
    def pending(self) -> frozenset[int]:
        """Blocks whose step the device has not finished; nobody may use them, and nothing is wrong with them."""
        return frozenset(self._pending)

    def committed(self, request: Any, group: int, blocks: Sequence[int], first: int, digests: Sequence[bytes]) -> None:
        """Blocks of one request were put into the index.

        Args:
            request: vLLM's request.
            group: Number of the group.
            blocks: Their ids; the null block stands for none.
            first: Token at which the first of them begins.
            digests: The hash of each.
        """
        name = self._names.get(group)
        weights = self.identities.weights
        # What a request computes after its weights changed was computed from rows of the old ones.
        if name is None or self._weights.setdefault(request.request_id, weights) != weights:
            return
        identity = self.identity_of(request)
        written = request.num_computed_tokens - request.num_in_flight_tokens
        tokens = self._tokens[group]
        there: list[Written] = []
        for index, (block, digest) in enumerate(zip(blocks, digests, strict=True)):
            if block == NULL_BLOCK:
                continue
            begins = first + index * tokens
            entry = Written(
                name, block, request.request_id, request.lora_request, begins, begins + tokens, bytes(digest), identity
            )
            self._pending[block] = entry
            (there if entry.end <= written else self._new).append(entry)
        self._record(there)

    def scheduled(self, step: Any) -> None:
        """A step was put together; of the blocks hashed for it, those count whose tokens it computes."""
        written = self.written_by(step)
        waited_for = set(map(id, written))
        self._no_longer_pending(entry for entry in self._new if id(entry) not in waited_for)
        self._of_step[id(step)] = written
        self._new = []
        self._asked.clear()

    def written_by(self, step: Any) -> list[Written]:
        """Of the blocks hashed since the last step, those that this one writes."""
        reached = {new.req_id: new.num_computed_tokens for new in step.scheduled_new_reqs}
        again = step.scheduled_cached_reqs
        reached.update(zip(again.req_ids, again.num_computed_tokens, strict=True))
        scheduled = step.num_scheduled_tokens
        # A request that was given blocks and then pushed out writes nothing.
        return [
            entry
            for entry in self._new
            if entry.request in scheduled
            and entry.request in reached
            and entry.end <= reached[entry.request] + scheduled[entry.request]
        ]

    def finished(self, step: Any) -> None:
        """The device has done a step: what it wrote is promised from now on."""
        self._record(self._of_step.pop(id(step), ()))

    def of_loaded_adapters(self, entries: Sequence[Written]) -> list[Written]:
        """Those whose adapter the workers hold now, and not another under its number."""
        loaded: dict[tuple[int, str | None], bool] = {}
        kept = []
        for entry in entries:
            if entry.adapter is not None:
                key = (entry.adapter.lora_int_id, entry.identity["adapter"])
                if key not in loaded:
                    loaded[key] = self.identities.still_loaded(entry.adapter, entry.identity["adapter"])
                if not loaded[key]:
                    continue
            kept.append(entry)
        return kept

    def freed(self, block: int) -> None:
        """A block left the index, or was given to somebody."""
        self._pending.pop(block, None)
        name = self._recorded.pop(block, None)
        if name is not None:
            self.gate.freed(name, [block])

    def forget(self) -> None:
        """The index was emptied."""
        self._pending.clear()
        self._recorded.clear()
        self.gate.forget()

    def judge(self, request: Any, matched: int, blocks: Sequence[Sequence[int]], hashes: Sequence[Any]) -> Gated:
        """What of a hit may be used.

        Args:
            request: vLLM's request.
            matched: Tokens that vLLM's look-up claims.
            blocks: By group, its blocks from token 0 on.
            hashes: By group, the request's hashes at the ends of its blocks.
        """
        self._weights[request.request_id] = self.identities.weights
        named = {self._names[index]: ids for index, ids in enumerate(blocks) if index in self._names}
        asked = {
            self._names[index]: [bytes(own[place]) for place in range(len(blocks[index]))]
            for index, own in enumerate(hashes)
            if index in self._names
        }
        return self.gate.judge(
            length=request.num_tokens,
            matched=matched,
            blocks=named,
            digests=asked,
            identity=self.identity_of(request),
        )

    def identity_of(self, request: Any) -> Mapping[str, str | None]:
        """Identity of a request, the same until the next step is put together."""
        known = self._asked.get(request.request_id)
        if known is None:
            known = self._asked[request.request_id] = self.identities.of(request)
        return known

    def answered(self, request: str, gated: Gated) -> None:
        """Keep the first answer of a look-up until the request is served; a new look-up replaces it."""
        self._answers[request] = gated

    def served(self, request: Any, usable: int) -> int:
        """Count a request that is being scheduled, and answer what vLLM's own index claimed for it, in tokens."""
        gated = self._answers.pop(request.request_id, NOTHING)
        self.gate.count(gated, usable, request.num_tokens)
        return gated.logical

    def gone(self, request: str) -> None:
        """A request is over, or starts anew."""
        self._answers.pop(request, None)
        self._weights.pop(request, None)
        self._asked.pop(request, None)

    def _no_longer_pending(self, entries: Iterable[Written]) -> list[Written]:
        """Nobody writes these blocks any more; those of them that were not given to others since."""
        own = [entry for entry in entries if self._pending.get(entry.block) is entry]
        for entry in own:
            del self._pending[entry.block]
        return own

    def _record(self, entries: Sequence[Written]) -> None:
        weights = self.identities.weights if entries else ""
        good = self.of_loaded_adapters(self._no_longer_pending(entries))
        done: dict[str, list[int]] = {}
        for run in _runs([entry for entry in good if entry.identity["weights"] == weights]):
            begin = run[0]
            blocks = [entry.block for entry in run]
            digests = [entry.digest for entry in run]
            self.gate.written(begin.group, blocks, first=begin.first, digests=digests, identity=begin.identity)
            self._recorded.update(dict.fromkeys(blocks, begin.group))
            done.setdefault(begin.group, []).extend(blocks)
        for name, blocks in done.items():
            self.gate.seal(name, blocks)


def _runs(entries: Iterable[Written]) -> list[list[Written]]:
    """Neighbours of one group and one writer together, in token order."""
    runs: list[list[Written]] = []
    for entry in entries:
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and (last.group, last.request, last.end) == (entry.group, entry.request, entry.first)
            and last.identity == entry.identity
        ):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs
