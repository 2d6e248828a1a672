"""Equal parts are proved once: for whoever shares a proof it comes out as if it had been asked anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import CLAIMS
from hitproof.verification import verify
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.model import World
from hitproof.verification.parts import each_group
from hitproof.verification.prover import PartJob, Prover
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import steps

GEMMA, QWEN, FLASH = "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-flash"


@pytest.fixture(scope="module")
def prover(source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer) -> Prover:
    """One process's prover for every shipped model."""
    return Prover(source, profiles, replayer, 20_000)


def equals(prover: Prover, claim: str) -> list[tuple[PartJob, PartJob]]:
    """Pairs of parts of a claim with equal keys, of one model or of two, each key once."""
    first: dict[str, PartJob] = {}
    pairs: dict[str, tuple[PartJob, PartJob]] = {}
    for profile in prover.profiles:
        for index, part in enumerate(prover.parts(claim, profile)):
            key, job = prover.cutter(profile).key(part), PartJob(claim, profile, index)
            if first.setdefault(key, job) != job:
                # The last one is the farthest from the first.
                pairs[key] = first[key], job
    return list(pairs.values())


class TestEqualKeys:
    """Parts of one claim with one key."""

    @pytest.mark.parametrize("claim", CLAIMS)
    def test_come_out_the_same_when_each_is_really_proved(self, claim: str, prover: Prover) -> None:
        """A sample of shared proofs, asked again for the group that shares: the same answers to as many questions."""
        for first, second in equals(prover, claim)[:2]:
            one, other = prover.prove(first), prover.prove(second)
            assert (None, ()) == (one.counterexample, one.gaps)
            assert (None, ()) == (other.counterexample, other.gaps)
            assert (one.obligations, one.count) == (other.obligations, other.count)
            assert (one.witness is None) is (other.witness is None)
            assert (one.rules, one.decisive) == (other.rules, other.decisive)

    def test_are_found_for_most_machines_and_for_no_other_geometry(self, prover: Prover) -> None:
        """The form machines of all models are a few; rows of another size are another proof."""
        for claim in ("separation", "graph_covers_machine"):
            jobs = [part for profile in prover.profiles for part in prover.parts(claim, profile)]
            assert len(jobs) > 3 * len(self._keys(prover, claim))
        full = [
            prover.cutter(profile).key(part)
            for profile in (GEMMA, QWEN)
            for part in prover.parts("sound", profile)
            if part.groups == ("full",) and "checks" in part.about
        ]
        assert 2 == len(set(full))

    @staticmethod
    def _keys(prover: Prover, claim: str) -> set[str]:
        return {prover.cutter(p).key(part) for p in prover.profiles for part in prover.parts(claim, p)}


class TestReport:
    """What is told for each model."""

    def test_does_not_depend_on_who_is_proved_along(
        self, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """Verdict and obligations of a model are the same alone and beside another, where many are shared."""
        claims = ["fail_closed", "separation", "graph_covers_machine"]
        both = verify(source, [profiles[GEMMA], profiles[QWEN]], claims=claims, replayer=replayer, jobs=1)
        alone = verify(source, [profiles[QWEN]], claims=claims, replayer=replayer, jobs=1)
        mine = [result for result in both.claims if result.profile == QWEN]
        for one, other in zip(alone.claims, mine, strict=True):
            assert (one.id, one.verdict, one.obligations) == (other.id, other.verdict, other.obligations)
            assert one.shared < one.obligations
            assert 0 <= one.shared <= other.shared <= other.obligations
        shared = {result.id: result.shared for result in mine}
        assert shared["graph_covers_machine"] > 0
        assert shared["separation"] > 0

    def test_does_not_depend_on_the_number_of_processes(
        self, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """One process and two answer alike, mutants included."""
        chosen = {"claims": ["complete", "separation"], "mutants": True, "replayer": replayer}
        reports = [
            verify(source, [profiles[GEMMA], profiles[QWEN]], jobs=jobs, **chosen)  # type: ignore[arg-type]
            for jobs in (1, 2)
        ]
        told = [
            (
                [result.model_copy(update={"seconds": 0.0}) for result in report.claims],
                [(mutant.id, mutant.killed, mutant.place) for mutant in report.mutants],
            )
            for report in reports
        ]
        assert told[0] == told[1]
        assert reports[0].mutants

    def test_every_refuted_model_has_a_counterexample_of_its_own(
        self, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """A failure that models share is replayed for each of them."""
        broken, _ = source.edited(("transitions", "discard", "when"), "self.pins < 0")
        models = [profiles[name] for name in (GEMMA, QWEN)]
        report = verify(broken, models, claims=["graph_covers_machine"], replayer=replayer, jobs=1)
        for result in report.claims:
            assert "refuted" == result.verdict
            found = result.counterexample
            assert found is not None
            assert found.replayed
            assert found.scenario is not None
            assert isinstance(found.scenario.profile, Profile)
            assert result.profile == found.scenario.profile.profile


class TestFreeConstants:
    """Constants that are left unbound where events set facts to them."""

    @pytest.fixture
    def probe(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """A claim that holds of small strides alone: an allocation never sets one above 200,000 bytes."""

        def prove(run: Run) -> None:
            world = World(run.bound)
            model = world.group(run.group.id)
            step = next(step for step in steps(model) if step.transition.id == "allocate")
            above = [step.guard, step.post("stride").known, step.post("stride").value > 200_000]
            if run.must_not(world.ctx, [*above, *world.domains()], "stride") is not None:
                run.gaps.append("too large")
            run.witness = "asked"

        made = Claim(
            id="probe",
            sentence="Strides are small.",
            method="one question",
            assumptions=(),
            prove=prove,
            parts=lambda bound: each_group([bound.group("full")], "transitions", constants=(), free=("stride",)),
        )
        monkeypatch.setitem(ALL_CLAIMS, "probe", made)
        return made.id

    def test_a_failure_for_all_values_is_asked_again_for_the_groups_own(
        self, probe: str, source: RuleSource, profiles: dict[str, Profile]
    ) -> None:
        """The proof then is that model's alone: a model with a larger stride is not proved by it."""
        full = profiles[GEMMA].group("full")
        wide = full.model_copy(update={"constants": {**full.constants, "stride": 262_144}})
        groups = tuple(wide if group.id == "full" else group for group in profiles[GEMMA].groups)
        models = {GEMMA: profiles[GEMMA], "wide": profiles[GEMMA].model_copy(update={"groups": groups})}
        prover = Prover(source, models, None, 20_000)
        keys = {prover.cutter(name).key(prover.parts(probe, name)[0]) for name in models}
        assert 1 == len(keys)
        small, large = (prover.prove(PartJob(probe, name, 0)) for name in models)
        assert (True, ()) == (small.alone, small.gaps)
        assert (True, ("too large",)) == (large.alone, large.gaps)

    def test_a_group_of_the_same_model_does_not_share_what_rests_on_own_values(
        self, probe: str, source: RuleSource, profiles: dict[str, Profile], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two groups of one model with one key and two strides: the wide one is asked for itself."""
        full = profiles[GEMMA].group("full")
        wide = full.model_copy(update={"id": "wide", "layers": (), "constants": {**full.constants, "stride": 262_144}})
        model = profiles[GEMMA].model_copy(update={"groups": (*profiles[GEMMA].groups, wide)})
        both = replace(
            ALL_CLAIMS[probe],
            parts=lambda bound: each_group(
                [bound.group(name) for name in ("full", "wide")], "transitions", constants=(), free=("stride",)
            ),
        )
        monkeypatch.setitem(ALL_CLAIMS, "complete", both)
        result = verify(source, [model], claims=["complete"], replayer=None, jobs=1).claims[0]
        assert ("unknown", "too large") == (result.verdict, result.detail)


class TestBatches:
    """Several obligations in one question."""

    @pytest.fixture
    def run(self, prover: Prover) -> Run:
        """A run about one group."""
        part = prover.parts("fail_closed", GEMMA)[0]
        return Run(prover.cutter(GEMMA).cut(part), prover.asker, None, part)

    def test_a_batch_fails_where_one_of_its_obligations_fails(self, run: Run) -> None:
        """The first that can hold is named, with a model of it; wishes are asked for only then."""
        ctx = z3.Context()
        x = z3.Int("x", ctx=ctx)
        asked: list[bool] = []

        def wishes() -> list[object]:
            asked.append(True)
            return [x == 7]

        assert run.must_none(ctx, [x > 5], [("low", x < 5), ("five", x == 5)], soft=wishes) is None
        assert [] == asked
        found = run.must_none(ctx, [x > 5], [("low", x < 5), ("even", x % 2 == 0), ("odd", x % 2 == 1)], soft=wishes)
        assert found is not None
        assert "even" == found[0]
        assert 0 == found[1].model.eval(x).as_long() % 2
        assert 5 == run.obligations
        assert run.must_none(ctx, [x > 5], []) is None

    def test_witnesses_over_one_premise_are_those_that_hold_alone(self, run: Run) -> None:
        """Asked together or each for itself."""
        ctx = z3.Context()
        x, y = z3.Ints("x y", ctx=ctx)
        premise = [x > 0, y > x, y < 4]
        formulas = [(f"{a} and {b}", z3.And(x == a, y == b)) for a in range(4) for b in range(4)]
        together = run.must_each(ctx, premise, formulas)
        alone = {label for label, formula in formulas if run.must(ctx, [*premise, formula], label) is not None}
        assert {"1 and 2", "1 and 3", "2 and 3"} == together == alone
        assert 2 * len(formulas) == run.obligations
        assert [] == run.gaps

    def test_effort_is_bounded_by_count_and_not_by_time_alone(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """A question beyond the bound is given up, told as a gap, and never taken for an answer."""
        monkeypatch.setattr("hitproof.verification.solve.MAX_EFFORT", 200)
        ctx = z3.Context()
        ints = [z3.Int(f"x{index}", ctx=ctx) for index in range(9)]
        pigeons = [z3.And(0 <= x, x < 8) for x in ints] + [z3.Distinct(ints)]
        assert run.must_not(ctx, pigeons, "pigeons") is None
        assert run.must_none(ctx, pigeons, [("one", ints[0] == 0), ("two", ints[0] == 1)]) is None
        assert ["pigeons", "one", "two"] == [gap.split(":")[0] for gap in run.gaps]
