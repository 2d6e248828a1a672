"""The segments of a replay are what the rulebook calls healthy, and what its form machine makes of a demotion."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.replay.directory import Directory
from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.replay.stores import store_of
from hitproof.engine.state import Resolved
from hitproof.engine.tiers import DEVICE, DISK, HOST
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook

V4, GEMMA, QWEN = MODELS = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
MODES = ("full", "periodic", "zero", "until_reallocated")


@cache
def engine(name: str) -> Engine:
    """The shipped rulebook on a shipped profile."""
    return Engine(bind_rulebook(load_rulebook("mixed_attention"), load_profile(name)))


def serving(name: str) -> Serving:
    """A fresh serving process."""
    return Serving(engine(name).bound, engine(name).types)


def retention(mode: str, period: int = 16) -> Retention:
    """One of the shipped retention rules."""
    return Retention(load_rulebook("mixed_attention").policy.retention, mode, period)


def spans(name: str, group: str, mode: str, *, noted: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Where a group's pieces lie on a path of four device blocks, after states were kept at some boundaries."""
    bound = next(one for one in engine(name).bound.groups if one.id == group)
    store: Any = store_of(bound, serving(name), retention(mode), 512, {})
    ids = (11, 12, 13, 14)
    for boundary in noted:
        store.keep(ids, boundary)
    return [(piece.start, piece.end) for piece in store.pieces(ids, [(0, 4, DEVICE)], 2_048)]


class TestMoulds:
    """One prototype, cut to length."""

    @pytest.mark.parametrize("name", MODELS)
    def test_a_cut_equals_a_healthy_segment_of_that_span(self, name: str) -> None:
        """Every fact of every group, whatever follows from the span included."""
        process = serving(name)
        made: dict[str, Any] = {}
        for group in engine(name).bound.groups:
            given = {"start": 512, "end": 1_536, "matched": 1_536}
            context = {"request": process.request, "runtime": process.runtime, "kernel": process.kernels[group.id]}
            peers = {role: made[peer] for role, peer in group.peers.items()}
            made[group.id] = healthy_segment(engine(name).types, group, given, context, peers)
            cut = process.moulds[0][group.id].cut(512, 1_536, DEVICE)
            assert made[group.id].as_dict() == cut.as_dict(), group.id
            assert group.id == cut.group

    @pytest.mark.parametrize(("tier", "name"), [(HOST, "host"), (DISK, "disk")])
    def test_a_demoted_cut_has_crossed_tiers(self, tier: int, name: str) -> None:
        """Its bytes are not measured yet, no page table maps it, and its generation has grown."""
        mould = serving(V4).moulds[0]["csa_entries"]
        home, demoted = mould.cut(0, 512, DEVICE), mould.cut(0, 512, tier)
        assert ("demoted", name, None) == (demoted.form, demoted.tier, demoted.measured)
        assert demoted.mapped_generation != demoted.generation
        assert home.generation + 1 == demoted.generation
        assert home.bytes == demoted.bytes == 128 * 12_264


class TestStores:
    """Where the pieces of a group lie, by retention."""

    def test_a_short_window_leaves_gaps(self) -> None:
        """127 rows before each boundary; the query's own row is not stored."""
        assert [(385, 512), (897, 1_024), (1_409, 1_536), (1_921, 2_048)] == spans(V4, "window", "full")
        assert [(897, 1_024)] == spans(V4, "window", "periodic", noted=(2,))
        assert [] == spans(V4, "window", "zero")

    def test_a_long_window_lies_on_several_blocks(self) -> None:
        """1,023 rows before boundary 3 reach one row short of a whole block back; two windows share rows."""
        assert [(0, 512), (512, 1_024), (1_024, 1_536), (1_536, 2_048)] == spans(GEMMA, "window", "full")
        assert [(513, 1_024), (1_024, 1_536)] == spans(GEMMA, "window", "periodic", noted=(3,))
        assert [(513, 1_024), (1_024, 1_536), (1_536, 2_048)] == spans(GEMMA, "window", "periodic", noted=(3, 4))

    def test_a_state_lies_where_it_was_kept(self) -> None:
        """One segment a boundary, marked with it."""
        assert [(0, 1_024), (0, 2_048)] == spans(QWEN, "linear", "until_reallocated", noted=(2, 4))

    def test_rows_of_every_token_do_not_depend_on_retention(self) -> None:
        """One run a tier."""
        for mode in MODES:
            assert [(0, 2_048)] == spans(V4, "csa_index", mode)

    def test_there_is_a_manifest_where_something_is_demoted(self) -> None:
        """It covers the whole path, and there is none without a lower tier."""
        group = engine(V4).bound.group("prefix_manifest")
        store = store_of(group, serving(V4), retention("full"), 512, {})
        assert [] == store.pieces((1, 2), [(0, 2, DEVICE)], 1_024)
        (manifest,) = store.pieces((1, 2), [(0, 1, HOST), (1, 2, DEVICE)], 1_024)
        assert (0, 1_024) == (manifest.start, manifest.end)


class TestRetention:
    """Which boundaries a request leaves."""

    @pytest.mark.parametrize(
        ("mode", "computed", "last", "expected"),
        [
            ("periodic", 0, 10, (4, 8, 10)),
            ("periodic", 4, 8, (8,)),
            ("periodic", 5, 7, (7,)),
            ("periodic", 3, 3, (3,)),
            ("until_reallocated", 2, 9, (9,)),
            ("full", 0, 9, ()),
            ("zero", 0, 9, ()),
            ("periodic", 0, 0, ()),
        ],
    )
    def test_boundaries(self, mode: str, computed: int, last: int, expected: tuple[int, ...]) -> None:
        """Multiples of the period that were computed, and the last one."""
        assert expected == tuple(retention(mode, 4).boundaries(computed, last))


class TestDirectory:
    """Look-up and admission."""

    def test_runs_follow_the_tiers(self) -> None:
        """Blocks on host and device make two pieces of each group that keeps every token."""
        process, decider = serving(V4), engine(V4)
        directory = Directory(decider.bound, process, retention("full"), 512, (3, 9, 0))
        process.request.granularity = 512
        for ids in ((1, 2, 3, 4), (5,)):
            found = directory.look_up(ids, 512 * len(ids))
            process.request.length = 512 * len(ids)
            state = Resolved(process.request, process.runtime, process.kernels, found.pieces, found.matched)
            directory.admit(ids, 512 * len(ids), found, decider.decide(state, explain=False))
            directory.check_integrity()
        found = directory.look_up((1, 2, 3, 4, 6), 2_560)
        assert (4, 2_048) == (found.blocks, found.matched)
        assert [(0, 1_024, "host"), (1_024, 2_048, "device")] == [
            (piece.start, piece.end, piece.tier) for piece in found.pieces["csa_entries"]
        ]

    def test_a_short_answer_of_the_engine_equals_the_long_one(self) -> None:
        """Without reasons, and with lengths given up as soon as they are too dear, the plan is the same."""
        for name in MODELS:
            process, decider = serving(name), engine(name)
            process.request.granularity, process.request.length = 512, 14 * 512 + 9
            for mode in MODES:
                for runs in ([(0, 14, DEVICE)], [(0, 3, DISK), (3, 9, HOST), (9, 14, DEVICE)], [(0, 14, HOST)]):
                    pieces = {
                        group.id: store_of(group, process, retention(mode), 512, {}).pieces(range(14), runs, 7_168)
                        for group in decider.bound.groups
                    }
                    state = Resolved(process.request, process.runtime, process.kernels, pieces, 7_168)
                    long, short = (decider.decide(state, explain=explain) for explain in (True, False))
                    assert (long.verdict, long.usable, long.plan, long.total_us) == (
                        short.verdict,
                        short.usable,
                        short.plan,
                        short.total_us,
                    )
