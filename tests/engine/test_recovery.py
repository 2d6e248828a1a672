"""Recovery: what runners are asked and believed, what is handed over, and what is left untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.recovery.story import as_promised
from hitproof.engine.state import Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.decision import Decision
from hitproof.spec.errors import InternalError, SchemaError
from hitproof.spec.profile import Group, Profile
from hitproof.spec.repair import RepairOutcome, RepairRequest
from tests.engine.state_cases import Build, build_of, engine_of


class Runner:
    """Does as it promises, but for the statuses and measurements that it is told, one a call."""

    def __init__(self, engine: Engine, *told: RepairOutcome | BaseException) -> None:
        self.engine, self.told = engine, list(told)
        self.requests: list[RepairRequest] = []

    def __call__(self, request: RepairRequest) -> RepairOutcome:
        self.requests.append(request)
        honest = as_promised(self.engine.bound.rulebook.repairs, request)
        told = self.told.pop(0) if self.told else RepairOutcome("done", {})
        if isinstance(told, BaseException):
            raise told
        return RepairOutcome(told.status, {**honest, **told.measured})


def pooled(length: int = 65, **index: object) -> Build:
    """Entries, an index over them with these facts, a compressor state, and kept inputs; prefill is dear."""
    build = build_of("pooled", length, 8)
    build.runtime.prefill_us_per_token = 4000.0
    for group in build.bound.groups:
        if group.id != "manifest":
            build.segment(group.id, **(index if group.id == "index" else {}))
    return build


def recover(build: Build, *told: RepairOutcome | BaseException, at: Any = None) -> tuple[Recovered, Runner]:
    """A recovery of the build's state."""
    runner = Runner(build.engine, *told)
    return Recovery(build.engine).run(build.state(), runner, at), runner


def facts_of(build: Build) -> list[dict[str, Any]]:
    """All facts of all segments but their pins."""
    found = [piece.as_dict() for pieces in build.pieces.values() for piece in pieces]
    return [{name: value for name, value in facts.items() if name != "pins"} for facts in found]


def pins_of(build: Build) -> set[int]:
    """The pins of all segments."""
    return {piece.pins for pieces in build.pieces.values() for piece in pieces}


FAILED = RepairOutcome("failed", {})


class TestEnds:
    """What a recovery ends with."""

    def test_a_clean_hit_is_confirmed_and_leased(self) -> None:
        """Nothing is repaired; the caller holds everything until it gives the lease back."""
        build = pooled()
        ended, runner = recover(build)
        assert ("reuse", 64, ["confirmed"], []) == (
            ended.verdict,
            ended.usable,
            [step.step for step in ended.steps],
            runner.requests,
        )
        assert ended.lease is not None and ended.lease.held and ended.lease.confirm()
        assert {1} == pins_of(build)
        ended.lease.release()
        assert {0} == pins_of(build)

    def test_copies_are_handed_over_and_originals_left_alone(self) -> None:
        """A repaired segment is a private copy; what was found has every fact that it had."""
        build = pooled(kv_generation=7)
        before = facts_of(build)
        ended, _ = recover(build)
        assert ("repair", 64) == (ended.verdict, ended.usable)
        assert {("index", 0)} == set(ended.copies)
        copy = ended.copies["index", 0]
        assert copy is not build.pieces["index"][0]
        assert build.pieces["entries"][0].generation == copy.kv_generation
        assert before == facts_of(build)

    def test_what_was_missing_is_handed_over_under_no_index(self) -> None:
        """The copy of a segment of which nothing was held has the index -1."""
        build = pooled()
        build.pieces["index"].clear()
        ended, runner = recover(build)
        assert ("rebuild", {("index", -1)}) == (ended.verdict, set(ended.copies))
        assert [-1] == [request.segment for request in runner.requests]
        assert "index_dependent" == ended.copies["index", -1].form

    def test_nothing_is_handed_over_where_it_fails(self) -> None:
        """After the last level the prompt is computed; nothing is pinned, nothing was changed, copies are set apart."""
        build = pooled(kv_generation=7)
        before = facts_of(build)
        ended, _ = recover(build, FAILED, FAILED)
        assert ("recompute", 0, {}, None) == (ended.verdict, ended.usable, ended.copies, ended.lease)
        assert ["remap", "rebuild_keys"] == [step.option for step in ended.quarantined]
        assert {("index", 0): frozenset({"in_place", "intra_layer"})} == ended.barred
        assert before == facts_of(build)
        assert {0} == pins_of(build)

    def test_a_first_decision_without_reuse_ends_at_once(self) -> None:
        """A miss has no process, and no steps."""
        build = pooled()
        ended = Recovery(build.engine).run(build.state(matched=0), Runner(build.engine))
        assert ("miss", (), {}) == (ended.verdict, ended.steps, ended.counters)

    def test_what_cannot_be_computed_is_refused(self) -> None:
        """With no way left and no tokens there is nothing but refusal."""
        build = pooled(kv_generation=7)
        build.request.has_tokens = False
        ended, _ = recover(build, FAILED, FAILED)
        assert ("refuse", "refused") == (ended.verdict, ended.steps[-1].step)


class TestRunners:
    """What runners are asked, and how far they are believed."""

    def test_a_request_tells_all_that_a_runner_needs(self) -> None:
        """Repair, piece, tokens, facts before and promised, and the sources by role."""
        build = pooled(kv_generation=7)
        _, runner = recover(build)
        (request,) = runner.requests
        assert ("index_remap", "index", 0, 64, 0, 64) == (
            request.repair,
            request.group,
            request.segment,
            request.length,
            request.first,
            request.to,
        )
        assert (7, 1) == (request.facts["kv_generation"], request.wanted["kv_generation"])
        assert {"kv"} == set(request.sources)
        assert build.pieces["entries"][0].recorded == request.sources["kv"]["recorded"]

    @pytest.mark.parametrize("fingerprint", ["torn", None, 3.5])
    def test_done_counts_only_by_what_was_measured(self, fingerprint: Any) -> None:
        """Another fingerprint, none, or one that is no fingerprint: the repair did not mend."""
        build = pooled(kv_generation=7)
        ended, _ = recover(build, RepairOutcome("done", {"measured": fingerprint}))
        assert ["repair_failed", "mended", "confirmed"] == [step.step for step in ended.steps]
        assert "rebuild" == ended.verdict

    def test_what_a_repair_does_not_measure_is_not_heard(self) -> None:
        """A runner cannot give facts that its declaration does not call measured."""
        build = pooled(kv_generation=7)
        ended, _ = recover(build, RepairOutcome("done", {"kv_generation": 99, "weights": "other", "epoch": 5}))
        copy = ended.copies["index", 0]
        assert (1, build.request.weights, 1) == (copy.kv_generation, copy.weights, copy.epoch)

    def test_new_content_has_the_fingerprint_that_was_taken(self) -> None:
        """What is rebuilt records what was measured of it."""
        build = pooled()
        build.pieces["index"].clear()
        ended, _ = recover(build, RepairOutcome("done", {"measured": "fresh"}))
        assert ("fresh", "fresh") == (ended.copies["index", -1].recorded, ended.copies["index", -1].measured)

    def test_a_lost_source_bars_without_quarantine(self) -> None:
        """Nothing was written, so nothing is set apart; the next level serves."""
        build = pooled(kv_generation=7)
        ended, _ = recover(build, RepairOutcome("source_lost", {}))
        assert ("rebuild", ()) == (ended.verdict, ended.quarantined)

    def test_a_transfer_is_tried_again_until_attempts_are_used_up(self) -> None:
        """Then its level is barred as of any other repair that failed."""
        build = pooled(kv_generation=7)
        broken = RepairOutcome("transfer_failed", {})
        ended, runner = recover(build, broken, broken, broken, broken)
        assert [*["transfer_failed"] * 3, "repair_failed", "mended", "confirmed"] == [s.step for s in ended.steps]
        assert [*["index_remap"] * 4, "index_rebuild"] == [request.repair for request in runner.requests]

    def test_a_joint_repair_that_fails_is_barred_for_all_that_it_serves(self) -> None:
        """One forward pass was to serve the tails of two windows."""
        groups = [
            Group(id="kv", object="full_kv", layers=(0,), constants={"row_bytes": 64, "alignment": 64, "stride": 64}),
            Group(id="edge", object="window_boundary", layers=(1, 2)),
            *(
                Group(
                    id=f"tail{layer}",
                    object="uncompressed_tail",
                    layers=(layer,),
                    constants={"window": 16, "row_bytes": 64, "alignment": 64, "stride": 64},
                    peers={"boundary": "edge"},
                )
                for layer in (1, 2)
            ),
        ]
        constants: dict[str, int | bool] = {"receptive_field": 31, "warmable": True}
        profile = Profile(profile="two-tails", title="Two tails", layers=3, constants=constants, groups=tuple(groups))
        build = Build(Engine(bind_rulebook(engine_of("pooled").bound.rulebook, profile)), 257, 8)
        build.segment("kv")
        build.segment("edge")
        ended, runner = recover(build, FAILED)
        barred = frozenset({"intra_layer"})
        assert 1 == len(runner.requests)
        assert {("tail1", -1): barred, ("tail2", -1): barred} == ended.barred
        assert "recompute" == ended.verdict

    def test_a_repair_that_reads_all_history_runs_last(self) -> None:
        """The entries come back before the forward pass that reads them, whatever the order of the groups."""
        groups = [
            Group(id="edge", object="window_boundary", layers=(0,)),
            Group(
                id="a_tail",
                object="uncompressed_tail",
                layers=(0,),
                constants={"window": 16, "row_bytes": 64, "alignment": 64, "stride": 64},
                peers={"boundary": "edge"},
            ),
            Group(id="manifest", object="demoted_prefix", layers=(1,)),
            Group(
                id="kv",
                object="full_kv",
                layers=(1,),
                constants={"row_bytes": 64, "alignment": 64, "stride": 64},
                peers={"manifest": "manifest"},
            ),
        ]
        constants: dict[str, int | bool] = {"receptive_field": 15, "warmable": True}
        profile = Profile(profile="tail-first", title="Tail first", layers=2, constants=constants, groups=tuple(groups))
        build = Build(Engine(bind_rulebook(engine_of("pooled").bound.rulebook, profile)), 257, 8)
        build.segment("edge")
        build.segment("manifest")
        build.segment("kv", form="demoted", tier="host")
        ended, runner = recover(build)
        assert "rebuild" == ended.verdict
        assert ["promote", "forward"] == [request.repair for request in runner.requests]


class TestInterference:
    """Others come in between."""

    def test_points_are_told_before_each_repair_and_before_use(self) -> None:
        """A caller may let others act there, or hold a lock from there on."""
        points: list[str] = []
        recover(pooled(kv_generation=7), at=points.append)
        assert ["run", "confirm"] == points

    def test_what_moved_is_decided_anew_and_copies_are_dropped(self) -> None:
        """The copy made for the old state is not used for the new one."""
        build = pooled(kv_generation=7)
        entries = build.pieces["entries"][0]

        def move(point: str) -> None:
            if point == "confirm" and entries.epoch == 1:
                entries.epoch, entries.generation = 2, 3
                entries.written_generation = entries.mapped_generation = 3

        ended, runner = recover(build, at=move)
        assert ["mended", "interfered", "mended", "confirmed"] == [step.step for step in ended.steps]
        assert [1, 3] == [request.wanted["kv_generation"] for request in runner.requests]
        assert 3 == ended.copies["index", 0].kv_generation
        assert {"attempts": 2} == {name: ended.counters[name] for name in ("attempts",)}

    def test_deciding_anew_keeps_what_is_barred(self) -> None:
        """Interference brings no failed level back, and no attempt."""
        build = pooled(kv_generation=7)

        def move(point: str) -> None:
            if point == "confirm" and build.pieces["entries"][0].epoch == 1:
                build.pieces["entries"][0].epoch = 2

        ended, runner = recover(build, FAILED, at=move)
        assert ["index_remap", "index_rebuild", "index_rebuild"] == [request.repair for request in runner.requests]
        assert ["repair_failed", "mended", "interfered", "mended", "confirmed"] == [s.step for s in ended.steps]

    def test_a_runner_that_breaks_gives_the_pins_back(self) -> None:
        """An exception is the embedder's own; the segments are free again."""
        build = pooled(kv_generation=7)
        with pytest.raises(ZeroDivisionError):
            recover(build, ZeroDivisionError())
        assert {0} == pins_of(build)

    def test_a_stolen_pin_is_told(self) -> None:
        """Nobody may take a pin of the lease."""
        build = pooled(kv_generation=7)

        def steal(_: str) -> None:
            build.pieces["index"][0].pins = 0

        with pytest.raises(InternalError, match="pin"):
            recover(build, FAILED, FAILED, at=steal)


class TestRulebooks:
    """The steps are the rulebook's."""

    def test_without_a_process_no_plan_is_carried_out(self) -> None:
        """The error names what is missing."""
        bound = engine_of("pooled").bound
        bare = Engine(replace(bound, rulebook=replace(bound.rulebook, recovering=None)))
        with pytest.raises(SchemaError, match="carried out") as caught:
            Recovery(bare)
        assert "recovering" == caught.value.expected

    @pytest.mark.parametrize(
        ("path", "value", "told", "halted"),
        [
            (("interfered", "sets"), {"attempts": "attempts"}, (), "step interfered"),
            (("repair_failed", "bars"), False, (FAILED,), "step repair_failed"),
            (("given_up", "on"), ["nothing"], (), "report moved"),
        ],
    )
    def test_a_process_that_would_not_end_is_halted(
        self, path: tuple[str, ...], value: object, told: tuple[RepairOutcome, ...], halted: str
    ) -> None:
        """An unproved rulebook can make a hit fail, and never a server hang."""
        source, _ = read_source("mixed_attention").edited(("recovering", "steps", *path), value)
        if path[0] == "given_up":
            source, _ = source.edited(("recovering", "steps", "refused", "on"), ["nothing"])
        bound = replace(engine_of("pooled").bound, rulebook=resolve(source))
        build = pooled(kv_generation=7)

        def move(_: str) -> None:
            if not told:
                build.pieces["entries"][0].epoch += 1

        ended = Recovery(Engine(bound)).run(build.state(), Runner(build.engine, *told), move)
        assert ("recompute", 0, halted) == (ended.verdict, ended.usable, ended.halted)
        assert {0} == pins_of(build)

    def test_attempts_are_the_rulebook_s_to_say(self) -> None:
        """One attempt instead of three."""
        source, _ = read_source("mixed_attention").edited(("recovering", "counters", "attempts", "start"), 1)
        bound = replace(engine_of("pooled").bound, rulebook=resolve(source))
        build = pooled()

        def move(_: str) -> None:
            build.pieces["entries"][0].epoch += 1

        ended = Recovery(Engine(bound)).run(build.state(), Runner(build.engine), move)
        assert ["interfered", "given_up"] == [step.step for step in ended.steps]

    def test_somebody_else_may_decide(self) -> None:
        """A policy's decision is carried out like any other."""
        build = build_of("homogeneous", 65, 8).all()
        engine = build.engine

        def shorter(state: Resolved) -> Decision:
            return replace(engine.decide(state), usable=32, plan=())

        ended = Recovery(engine, shorter).run(build.state(), Runner(engine))
        assert ("reuse", 32) == (ended.verdict, ended.usable)
