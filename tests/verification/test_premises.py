"""No proof is empty: premises can hold, and no name, silence or missing axiom stands in for a proof."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.verification import verify
from hitproof.verification.axioms.blocks import owns
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.claims import ALL_CLAIMS, sound
from hitproof.verification.claims import repair_sound as repairs
from hitproof.verification.claims import separation as pairs
from hitproof.verification.model import World
from hitproof.verification.parts import Part
from hitproof.verification.prover import PartJob, Prover
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import steps

MODELS = ("gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-flash", "deepseek-v3.2", "llama-4-scout")
SALT = ("every_object", "checks", "same_salt", "require")


@pytest.fixture(scope="module")
def prover(source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer) -> Prover:
    """A prover for models that together have every kind of object."""
    return Prover(source, {name: profiles[name] for name in MODELS}, replayer, 20_000)


def runs(prover: Prover, claim: str, about: str | None = None) -> list[Run]:
    """A run for each part of a claim, each key once."""
    found: dict[str, Run] = {}
    for profile in prover.profiles:
        cutter = prover.cutter(profile)
        for part in prover.parts(claim, profile):
            if about is None or about in part.about:
                found.setdefault(cutter.key(part), Run(cutter.cut(part), prover.asker, None, part))
    return list(found.values())


class TestPremises:
    """Each obligation's own premise can hold, not only one in each part."""

    def test_every_event_can_happen_to_a_truthful_segment(self, prover: Prover) -> None:
        """What the axioms say of an event contradicts neither its guard nor truthful facts."""
        asked = 0
        for run in runs(prover, "sound", sound.EVENTS):
            model = World(run.bound).group(run.group.id)
            events = [(step, sound._Event.of(run, model, step)) for step in steps(model)]
            base = [clause for _, clause in truthful(model, model.own, sound._truth(model, "self"))]
            named = [(f"{step.transition.id} from {step.source}", e.fires) for step, e in events if e is not None]
            assert {name for name, _ in named} == run.must_each(
                model.world.ctx, [*base, *model.world.domains()], named
            ), run.part.label
            asked += len(named)
        assert asked > 100

    def test_every_event_can_happen_beside_another_owner(self, prover: Prover) -> None:
        """While the other segment owns a block."""
        for run in runs(prover, "separation"):
            pair = pairs._Pair(run, run.group)
            moves = {f"{s.transition.id} from {s.source}": pair.step(s).fires for s in steps(pair.mover)}
            base = [*pair.before(), owns(pair.mover, pair.other), *pair.domains()]
            assert set(moves) == run.must_each(pair.world.ctx, base, list(moves.items())), run.part.label

    def test_every_option_can_run_from_whole_sources(self, prover: Prover) -> None:
        """Truthful facts, whole sources and a failing check that it mends can come together."""
        for run in runs(prover, "repair_sound"):
            model = World(run.bound).group(run.group.id)
            world, before = model.world, Truth.fresh(model.world.ctx, "before.")
            options = [repairs.OptionStep(run, model, option, before) for option in run.group.options]
            base: list[Any] = [model.identity(), *world.usual(), world.length > 0]
            base += repairs._environment_known(world, model)
            base += [
                *(clause for _, clause in truthful(model, model.own, before)),
                *fingerprints(before, run.assumptions),
            ]
            # Whole sources are what is left of the first question where it cannot be answered with yes.
            lacks = [(option.label, option.truth()[0][1]) for option in options]
            named = [
                (label, z3.And(option.premise, z3.Not(lack)))
                for option, (label, lack) in zip(options, lacks, strict=True)
            ]
            assert {label for label, _ in named} == run.must_each(world.ctx, [*base, *world.domains()], named)

    def test_a_part_without_a_witness_is_a_gap(
        self, monkeypatch: pytest.MonkeyPatch, source: RuleSource, profiles: dict[str, Profile]
    ) -> None:
        """Whatever witnesses the other parts of the claim have."""

        def prove(run: Run) -> None:
            run.witness = "seen" if "one" in run.part.about else None

        two = [Part(name, (), (name,)) for name in ("one", "other")]
        made = Claim("probe", "Half is seen.", "none", (), prove, lambda bound: two)
        monkeypatch.setitem(ALL_CLAIMS, "probe", made)
        prover = Prover(source, {MODELS[0]: profiles[MODELS[0]]}, None, 20_000)
        assert () == prover.prove(PartJob("probe", MODELS[0], 0)).gaps
        assert ("other: no state was found that the premise allows",) == prover.prove(
            PartJob("probe", MODELS[0], 1)
        ).gaps


class TestNames:
    """A group's facts are its own, whatever it is called."""

    @pytest.mark.parametrize("name", ["request", "runtime", "kernel", "position", "truth"])
    def test_a_group_named_like_a_scope_is_not_taken_for_it(
        self, name: str, source: RuleSource, profiles: dict[str, Profile]
    ) -> None:
        """A salt that need not be the request's is refuted for a group that is called `request` too."""
        broken, _ = source.edited(SALT, "self.salt == request.salt or known(self.salt)")
        model = renamed(profiles[MODELS[0]], "full", name)
        prover = Prover(broken, {model.profile: model}, EngineReplayer(), 20_000)
        jobs = [
            PartJob("sound", model.profile, index)
            for index, part in enumerate(prover.parts("sound", model.profile))
            if part.groups == (name,) and sound.CHECKS in part.about
        ]
        (outcome,) = map(prover.prove, jobs)
        assert outcome.counterexample is not None
        assert outcome.counterexample.replayed
        assert "salt" in outcome.counterexample.sentence


def test_an_event_that_no_axiom_knows_is_never_taken_for_harmless(
    source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
) -> None:
    """It may write where others' bytes lie: separation stays unknown, and says of which event."""
    broken, _ = source.edited(("transitions", "spill", "id"), "overwrite")
    result = verify(broken, [profiles[MODELS[1]]], claims=["separation"], replayer=replayer, jobs=1).claims[0]
    assert "unknown" == result.verdict
    assert "'overwrite'" in result.detail


def renamed(profile: Profile, old: str, new: str) -> Profile:
    """The same model with another id of one of its groups."""
    groups = tuple(
        group.model_copy(
            update={
                "id": new if group.id == old else group.id,
                "peers": {role: new if peer == old else peer for role, peer in group.peers.items()},
            }
        )
        for group in profile.groups
    )
    return profile.model_copy(update={"groups": groups})
