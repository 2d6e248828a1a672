"""The gate: a framework keeps its blocks and its index, the gate says which of a hit's tokens may be used."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from time import perf_counter
from typing import Any

from hitproof.engine import Engine, HitCounters, Resolved, load
from hitproof.engine.observe import NOBODY, Observer, Served
from hitproof.integrations.gate.answers import answer, at_the_door
from hitproof.integrations.gate.gated import Gated
from hitproof.integrations.gate.groups import GroupBlocks, gate_profile, group_ids
from hitproof.integrations.gate.ledger import Entry, Ledger
from hitproof.integrations.gate.lengths import longest_clean
from hitproof.integrations.gate.measuring import Measure, Measuring, Verify
from hitproof.integrations.gate.pages import PageSeal
from hitproof.integrations.gate.refusals import good_until
from hitproof.integrations.gate.segments import Held, blocks_of, held_segments
from hitproof.integrations.gate.statements import NO_REPAIRS, Statements
from hitproof.integrations.gate.table import ABSENT
from hitproof.spec.decision import Verdict
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value
from hitproof.spec.profile import Profile

__all__ = ["BlockGate"]

_Looked = tuple[Any, list[Held]]
"""Block ids of a look-up, and the segments in which they lie."""


class BlockGate(Ledger):
    """Judges hits of a framework by the rulebook. One thread has a gate, as one thread schedules.

    Args:
        profile: The model, as derived from its configuration.
        groups: The framework's groups by its own names.
        identity: Identity facts that hold unless a request or a writer states others; one that nobody states is
            unknown, and then nothing is ever usable.
        contract: What the attention kernels read, for all groups; by group where the values are mappings.
        unit: Tokens of a hash unit, of which usable lengths are multiples; the least common one of all blocks without.
        measure: Fingerprints of blocks as they are now.
        verify: When blocks are measured: at every use, one in `every`, or never.
        every: Of so many blocks that are judged one is measured, under `sampled`.
        absent: Block id that stands for none; negative ids and None always do.
        rulebook: Name or folder of the rules.
        proof: File that vouches for these rules and for the model as it is cut into the framework's groups; without
            one the rules run unproved.
        observer: Who is told of decisions and of served requests.

    Raises:
        ProfileError: The groups are not the model's.
        ProofError: There is a proof, and it is of something else.
        UsageError: A stated name is no fact, or bytes are to be measured and nobody can.
    """

    def __init__(
        self,
        profile: Profile,
        groups: Mapping[str, GroupBlocks],
        *,
        identity: Mapping[str, Value],
        contract: Mapping[str, Any],
        unit: int | None = None,
        measure: Measure | None = None,
        verify: Verify = "never",
        every: int = 16,
        absent: int | None = None,
        rulebook: str | Path = "mixed_attention",
        proof: str | Path | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        engine = load(gate_profile(profile, groups), rulebook, strict=proof is not None, proof=proof)
        ids = group_ids(profile, groups)
        super().__init__(
            engine,
            {name: (ids[name], blocks) for name, blocks in groups.items()},
            Statements(engine, identity),
            contract,
            unit or lcm(*(blocks.tokens for blocks in groups.values())),
            Measuring(measure, verify, every),
        )
        self.counters = HitCounters()
        self._absent, self._observer = absent, observer

    def judge(
        self,
        *,
        length: int,
        matched: int,
        blocks: Mapping[str, Sequence[int | None]],
        digests: Mapping[str, Sequence[Hashable]] | None = None,
        identity: Mapping[str, Value] | None = None,
    ) -> Gated:
        """How much of a hit may be used, without any repair.

        Args:
            length: Tokens of the prompt (N).
            matched: Tokens that the framework's look-up claims (L).
            blocks: By group, the block that holds each run of tokens from token 0 on; None or the absent id where the
                framework uses none. A group that is left out holds nothing.
            digests: By group, what each block was found under; without it the gate relies on the framework's index.
            identity: What differs from the usual.

        Raises:
            UsageError: A name is no fact or no group, or lists of one group differ in length.
        """
        began = perf_counter()
        request = self._statements.request(length, self.unit, identity or {})
        pieces: dict[str, list[Any]] = dict(self._statements.records(request, matched))
        looked: dict[str, _Looked] = {}
        for name, listed in blocks.items():
            entry = self._entry(name)
            found = self._look(name, entry, listed, None if digests is None else digests.get(name), matched, request)
            looked[name] = found
            pieces[entry.bound.id] = [segment.facts for segment in found[1]]
        # At least one token is computed, and a framework resumes at whole units alone.
        top = max(0, min(length - 1, matched)) // self.unit * self.unit
        state = Resolved(request, self._runtime, self._kernels, pieces, top, NO_REPAIRS)
        gated = self._gated(state, looked, matched)
        self._observer.decided(gated.decision, perf_counter() - began)
        return gated

    def confirm(self, gated: Gated) -> bool:
        """Whether all blocks of the usable tokens are still what was judged; asked right before the use."""
        for name, (ids, (generation, code)) in gated.seen.items():
            now, code_now = _stand(self._groups[name], ids)
            if not (now == generation).all() or not (code_now == code).all():
                return False
        return True

    def count(self, gated: Gated, usable: int, length: int) -> None:
        """Count a request once, when it is served. Changes the counters and tells the observer.

        Args:
            gated: The first answer about it, which has what the framework claimed.
            usable: Tokens that it reuses in the end.
            length: Its tokens.
        """
        logical = min(gated.logical, length)
        usable = min(usable, logical)
        verdict: Verdict = "reuse" if usable else "recompute" if logical else "miss"
        self.counters.serve(verdict, logical, usable, length)
        decision = replace(gated.decision, verdict=verdict, logical=logical, usable=usable, plan=())
        self._observer.served(Served(decision, verdict, usable, length))

    def pages(self, group: str, *, secret: bytes | None = None) -> PageSeal:
        """Seals and opens pages of a group in slower storage, under the contract of now.

        Args:
            group: A group of the framework.
            secret: Key of 1 to 64 bytes; with it only records of who has it are opened.
        """
        entry = self._entry(group)
        identity = self._statements.usual
        return PageSeal(self.engine, entry.bound.id, identity=identity, contract=entry.contract, secret=secret)

    def _look(
        self,
        name: str,
        entry: Entry,
        listed: Sequence[int | None],
        asked: Sequence[Hashable] | None,
        matched: int,
        request: Any,
    ) -> _Looked:
        ids = blocks_of(listed, self._absent)
        if asked is not None and len(asked) != len(ids):
            raise UsageError("each block was found under one digest", got=len(asked), expected=len(ids))
        if len(ids):
            entry.table.reserve([int(ids.max())])
        self._measuring.before_use(name, entry.table, ids)
        place = (entry.blocks.address, entry.blocks.stride)
        return ids, held_segments(entry.bound, entry.table, entry.templates, ids, asked, matched, place, request)

    def _gated(self, state: Resolved, looked: Mapping[str, _Looked], matched: int) -> Gated:
        """The answer; first whether all of the hit may be used, as most may."""
        engine, top = self.engine, state.matched
        if at_the_door(engine, state):
            decision = engine.decide(state)
            return Gated(0, matched, decision, failed=decision.failed, reasons=decision.reasons)
        outcome = engine.judge.outcome(state, engine.judge.nothing(), top, full=False) if top else None
        if outcome is not None and outcome.clean and not outcome.steps:
            decision = engine.decide(state, explain=False)
            return Gated(decision.usable, matched, decision, seen=self._seen(decision.usable, looked))
        refused: dict[str, tuple[int, ...]] = {}
        good: dict[str, list[Any]] = {}
        for name, (ids, found) in looked.items():
            bound = self._groups[name].bound
            until = good_until(engine, bound, state)
            lengths = [until(one) for one in found]
            good[bound.id] = [_leading(one, whole) for one, whole in zip(found, lengths, strict=True) if whole]
            spans = [ids[one.first + whole : one.to].tolist() for one, whole in zip(found, lengths, strict=True)]
            bad = tuple(dict.fromkeys(block for span in spans for block in span))
            if bad:
                refused[name] = bad
        decision = answer(engine, state, longest_clean(engine, state, good))
        seen = self._seen(decision.usable, looked)
        return Gated(decision.usable, matched, decision, refused, decision.failed, decision.reasons, seen)

    def _seen(self, usable: int, looked: Mapping[str, _Looked]) -> dict[str, tuple[Any, Any]]:
        """Blocks of the usable tokens, as they stand."""
        seen = {}
        for name, (ids, _) in looked.items():
            entry = self._groups[name]
            read = ids[_first_read(self.engine, entry, usable) : -(-usable // entry.blocks.tokens)]
            seen[name] = read, _stand(entry, read)
        return seen


def _first_read(engine: Engine, entry: Entry, usable: int) -> int:
    """Index of the first block that is read at a length; of a state, all before it count."""
    if entry.bound.rules.pieces == "point":
        return 0
    compiled = next(one for one in engine.judge.groups if one.id == entry.bound.id)
    return int(compiled.span(usable)[0]) // entry.blocks.tokens


def _leading(held: Held, blocks: int) -> Any:
    """Facts of the leading blocks of a segment."""
    count = held.to - held.first
    if blocks == count:
        return held.facts
    facts = held.facts.copy()
    facts.end -= (count - blocks) * ((facts.end - facts.start) // count)
    return facts


def _stand(entry: Entry, ids: Any) -> Any:
    """What `confirm` compares of blocks: generation and code."""
    present = ids[ids != ABSENT]
    return entry.table.generation[present], entry.table.code[present]
