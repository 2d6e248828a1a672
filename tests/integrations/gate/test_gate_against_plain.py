"""The gate and its plain twin give the same answer, whatever has become of the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitproof.integrations.gate import BlockGate, GroupBlocks, lengths, segments
from hitproof.integrations.gate import gate as gate_module
from hitproof.integrations.gate.plain import PlainGate
from hitproof.integrations.gate.table import BlockTable
from hitproof.spec.profile import Profile
from tests.integrations.gate.frames import CONTRACT, GEMMA, IDENTITY, QWEN, TOKENS, digests, gate, gemma, qwen

COUNT = 11
PLACES = st.integers(0, COUNT - 1)
LATE = st.integers(COUNT // 2, COUNT - 1)
"""Harm at the end of a prompt leaves something to be used."""
PICTURES = [{"media": "cat", "media_from": 70}, {"media": "dog", "media_from": 9 * TOKENS}]
WRITERS = st.sampled_from([{}, {}, {}, *PICTURES])
LENGTHS = st.sampled_from([COUNT * TOKENS + 7] * 4 + list(range(2, COUNT * TOKENS, 9)))
MATCHED = st.sampled_from([COUNT * TOKENS] * 4 + list(range(0, COUNT * TOKENS, 7)))


def harm(groups: Sequence[str]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Something that becomes of one block, or of how it is listed."""
    group = st.sampled_from(list(groups))
    return st.one_of(
        st.tuples(st.just("freed"), group, LATE),
        st.tuples(st.just("freed"), group, PLACES),
        st.tuples(st.just("torn"), group, LATE),
        st.tuples(st.just("absent"), group, LATE, LATE),
        st.tuples(st.just("absent"), st.just(groups[-1]), PLACES, PLACES),
        st.tuples(st.just("cut"), group, LATE),
        st.tuples(st.just("moved"), group, LATE, PLACES),
        st.tuples(st.just("rewritten"), group, LATE, st.sampled_from(["p", "q"]), WRITERS, st.booleans()),
        st.tuples(st.just("rewritten"), group, PLACES, st.just("p"), st.just({"adapter": "b"}), st.booleans()),
        st.tuples(st.just("rewritten"), group, PLACES, st.just("p"), st.just(PICTURES[1]), st.just(True)),
        st.tuples(st.just("contract"), group, LATE, st.sampled_from(sorted(CONTRACT))),
    )


def disaster(groups: Sequence[str]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Something that becomes of all that was written."""
    group = st.sampled_from(list(groups))
    return st.one_of(
        st.tuples(st.just("kernel"), group, st.sampled_from(sorted(CONTRACT))),
        st.tuples(st.just("resized")),
        st.tuples(st.just("forgotten"), group),
    )


class Pair:
    """A gate and its twin that are told the same."""

    def __init__(self, profile: Profile, groups: dict[str, GroupBlocks], identity: dict[str, Any]) -> None:
        self.torn: set[tuple[str, int]] = set()
        self.gate: BlockGate = gate(profile, groups, measure=self.measure, verify="use")
        named = {name: (self.gate.groups[name], blocks) for name, blocks in groups.items()}
        options = {"identity": IDENTITY, "contract": CONTRACT, "unit": TOKENS}
        self.plain = PlainGate(self.gate.engine, named, **options)  # type: ignore[arg-type]
        self.listed = {name: list(range(1, COUNT + 1)) for name in groups}
        for name in groups:
            for place in range(COUNT):
                self.write(name, place, "p", identity, True)

    def measure(self, group: str, blocks: Sequence[int]) -> list[str | None]:
        """Fingerprints as they are now."""
        return [f"{group}{block}{'!' * ((group, block) in self.torn)}" for block in blocks]

    def write(
        self,
        group: str,
        place: int,
        prompt: str,
        identity: dict[str, Any],
        sealed: bool,
        contract: dict[str, str] | None = None,
    ) -> None:
        """Block `place + 1` is written with what belongs at a place of a prompt."""
        block, digest = place + 1, f"{prompt}{place}"
        self.torn.discard((group, block))
        self.gate.written(group, [block], first=place * TOKENS, digests=[digest], identity=identity, contract=contract)
        told = self.plain.block(group, block)
        told.generation += 1
        told.written, told.start, told.digest, told.epoch = told.generation, place * TOKENS, digest, self.plain.epoch
        told.identity, told.contract = identity, {**self.plain.contract[group], **(contract or {})}
        told.sealed, told.recorded, told.measured = sealed, None, None
        if sealed:
            self.gate.seal(group, [block])
            told.recorded = self.measure(group, [block])[0]

    def harm(self, what: str, *rest: Any) -> None:
        """Let it happen to both."""
        if what == "resized":
            self.gate.resized()
            self.plain.epoch += 1
            return
        group, *more = rest
        if what == "freed":
            self.gate.freed(group, [more[0] + 1])
            self.plain.block(group, more[0] + 1).generation += 1
        elif what == "torn":
            self.torn.add((group, more[0] + 1))
        elif what == "absent":
            for place in range(*sorted(more)):
                if place < len(self.listed[group]):
                    self.listed[group][place] = -1
        elif what == "cut":
            del self.listed[group][more[0] :]
        elif what == "moved":
            if more[0] < len(self.listed[group]):
                self.listed[group][more[0]] = more[1] + 1
        elif what == "rewritten":
            self.write(group, *more)
        elif what == "contract":
            self.write(group, more[0], "p", {}, True, {more[1]: "another"})
        elif what == "kernel":
            self.gate.contract(group, **{more[0]: "another"})
            self.plain.contract[group][more[0]] = "another"
        else:
            self.gate.forget(group)
            for (name, _), told in self.plain.blocks.items():
                told.generation += name == group

    def compare(self, length: int, matched: int, identity: dict[str, Any]) -> int:
        """Both give one answer, which says why it is not more and stands right after; it is returned."""
        asked = {name: digests(len(listed)) for name, listed in self.listed.items()}
        for (name, block), told in self.plain.blocks.items():
            if told.sealed and told.written == told.generation and block in self.listed[name]:
                told.measured = self.measure(name, [block])[0]
        answer = self.gate.judge(length=length, matched=matched, blocks=self.listed, digests=asked, identity=identity)
        assert answer.usable == self.plain.judge(length, matched, self.listed, asked, identity)
        assert answer.usable <= min(matched, length - 1)
        if answer.usable < min(matched, length - 1) // TOKENS * TOKENS:
            assert answer.failed
        if answer.usable:
            assert self.gate.confirm(answer)
        return answer.usable


def played(pair: Pair, harms: list[tuple[Any, ...]]) -> None:
    """Let these happen, one after another."""
    for one in harms:
        pair.harm(*one)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(harms=st.lists(harm(list(GEMMA)), max_size=4), writer=WRITERS, asker=WRITERS, length=LENGTHS, matched=MATCHED)
def test_full_and_windows_agree_with_the_plain_twin(
    harms: list[tuple[Any, ...]], writer: dict[str, Any], asker: dict[str, Any], length: int, matched: int
) -> None:
    """Blocks freed, torn, moved, rewritten, absent or of another contract: the longest clean length is the twin's."""
    pair = Pair(gemma(), GEMMA, writer)
    played(pair, harms)
    pair.compare(length, min(matched, length), asker)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(harms=st.lists(harm(list(QWEN)), max_size=3), dropped=st.sets(PLACES), length=LENGTHS, matched=MATCHED)
def test_recurrent_states_agree_with_the_plain_twin(
    harms: list[tuple[Any, ...]], dropped: set[int], length: int, matched: int
) -> None:
    """The same where a hit ends at kept states alone."""
    pair = Pair(qwen(), QWEN, {})
    for place in dropped:
        pair.listed["linear"][place] = -1
    played(pair, harms)
    pair.compare(length, min(matched, length), {})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(disaster(list(GEMMA)), min_size=1, max_size=2),
    healed=st.booleans(),
    after=st.lists(harm(list(GEMMA)), max_size=2),
    asker=st.sampled_from([{}, {"adapter": "b"}, {"salt": "b"}]),
)
def test_both_agree_after_what_befell_everything(
    before: list[tuple[Any, ...]], healed: bool, after: list[tuple[Any, ...]], asker: dict[str, Any]
) -> None:
    """After a new pool, a new kernel or a reset, with all blocks written anew or not, and for another asker."""
    pair = Pair(gemma(), GEMMA, {})
    played(pair, before)
    if healed:
        for name in GEMMA:
            for place in range(COUNT):
                pair.write(name, place, "p", asker, True)
    played(pair, after)
    pair.compare(COUNT * TOKENS + 7, COUNT * TOKENS, asker)


DAMAGED: list[list[tuple[Any, ...]]] = [
    [("freed", "near", 4), ("torn", "far", 9)],
    [("absent", "near", 0, 5), ("moved", "full", 9, 8)],
    [("rewritten", "far", 7, "q", {}, True), ("freed", "full", 10)],
    [("torn", "full", 6), ("contract", "near", 2, "layout")],
    [("rewritten", "full", 3, "p", PICTURES[1], True), ("freed", "full", 9)],
    [("rewritten", "near", 8, "p", PICTURES[1], True)],
]
"""Prompts with a few bad blocks, or blocks of several writers."""


def every_length() -> int:
    """Compares the answers about each length and claim of these prompts; of how many something is usable."""
    usable = 0
    for harms in DAMAGED:
        pair = Pair(gemma(), GEMMA, {})
        played(pair, harms)
        for length in range(2, COUNT * TOKENS + 20, 5):
            for matched in (length - 1, length // 2):
                usable += pair.compare(length, min(matched, COUNT * TOKENS), {}) > 0
    return usable


def test_every_length_of_damaged_prompts_agrees_with_the_plain_twin() -> None:
    """Each length and each claim is answered alike, and not always by nothing."""
    assert every_length() > 60


def _without_digests(group: Any, table: Any, templates: Any, ids: Any, asked: Any, *rest: Any) -> Any:
    return segments.held_segments(group, table, templates, ids, None, *rest)


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (BlockTable, "give_out", lambda table, block: table.generation.__setitem__(block, table.generation[block] + 1)),
        (BlockTable, "measure", lambda table, block, fingerprint: table.measured.__setitem__(block, fingerprint)),
        (gate_module, "held_segments", _without_digests),
        (segments, "_before_pictures", lambda group, table, blocks, request: np.zeros(len(blocks), dtype=bool)),
        (lengths, "_joined", lambda good: [(facts.start, facts.end) for facts in good]),
        (gate_module, "longest_clean", lambda engine, state, good: state.matched),
    ],
    ids=["give_out", "measure", "digests", "pictures", "joined", "unjudged"],
)
def test_broken_gates_are_noticed(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, broken: Any) -> None:
    """A gate that forgets a state, a digest or a writer disagrees with its twin somewhere in these prompts."""
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(AssertionError):
        every_length()
