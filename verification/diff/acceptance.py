"""Whole hits and single groups: what one rulebook accepts and the other does not, found by the solver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import HitproofError
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Expectation, Replayer
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.diff.report import Difference, Relation, Witness, relation_of
from hitproof.verification.digest import digest_of
from hitproof.verification.model import World
from hitproof.verification.solve import Answer, Asker
from hitproof.verification.terms import all_of, negated

__all__ = ["Acceptance"]

Direction = Literal["newly_accepted", "newly_refused"]


class Acceptance:
    """What two rulebooks accept for one model.

    Args:
        old, new: Bound to the same model.
        asker: The solver.
        replayer: The engine, for witnesses.
    """

    def __init__(self, old: BoundRulebook, new: BoundRulebook, asker: Asker, replayer: Replayer | None) -> None:
        self.old, self.new, self.asker, self.replayer = old, new, asker, replayer
        ids = {group.id for group in new.groups}
        self.groups = tuple(group.id for group in old.groups if group.id in ids)
        self.changed = tuple(name for name in self.groups if _checks(old.group(name)) != _checks(new.group(name)))

    def differences(self) -> list[Difference]:
        """Groups whose checks mean something else, and whole hits where any does."""
        profile = self.new.profile.profile
        found = []
        for name in self.changed:
            relation = self._relation([name])[0]
            if relation != "equal":
                sentence = f"the checks of '{name}' accept {_told(relation)}"
                found.append(
                    Difference(what="group", profiles=[profile], subject=name, relation=relation, sentence=sentence)
                )
        mandatory = [group.id for group in self.new.groups if group.rules.mandatory]
        if found:
            relation, answers = self._relation(mandatory)
            witnesses = [self._witness(direction, answer) for direction, answer in answers.items()]
            found.append(
                Difference(
                    what="hit",
                    profiles=[profile],
                    subject=profile,
                    relation=relation,
                    sentence=f"whole hits: the newer rules accept {_told(relation)}",
                    witnesses=witnesses,
                )
            )
        return found

    def _relation(self, names: Sequence[str]) -> tuple[Relation, dict[Direction, tuple[World, World, Answer]]]:
        """How acceptance of some groups together relates, with a model for each direction that is possible."""
        answers: dict[Direction, tuple[World, World, Answer]] = {}
        status: dict[Direction, str] = {}
        directions: tuple[Direction, ...] = ("newly_accepted", "newly_refused")
        for direction in directions:
            before = World(self.old)
            after = World(self.new, beside=before)
            was = all_of([before.group(name).accepted() for name in names], before.true)
            now = all_of([after.group(name).accepted() for name in names], before.true)
            differs = [now, negated(was)] if direction == "newly_accepted" else [was, negated(now)]
            world = after if direction == "newly_accepted" else before
            premise = [*differs, *before.domains(), *after.domains(), *after.usual(), after.length > 0]
            answer = self.asker.ask(before.ctx, premise, soft=partial(_wishes, world))
            status[direction] = answer.status
            if answer.status == "sat":
                answers[direction] = before, after, answer
        return relation_of(status["newly_accepted"], status["newly_refused"]), answers

    def _witness(self, direction: Direction, found: tuple[World, World, Answer]) -> Witness:
        before, after, answer = found
        world = after if direction == "newly_accepted" else before
        length = answer.model.eval(world.length, model_completion=True).as_long()
        accepted = direction == "newly_accepted"
        title = f"{'accepted' if accepted else 'refused'} by the newer rules, {'refused' if accepted else 'accepted'} "
        scenario = decode_scenario(
            answer.model,
            world,
            direction.replace("_", "-"),
            f"{title}by the older ones",
            Expectation(accepted=accepted, at=length),
        ).model_copy(update={"because": "A state that tells two rulebooks apart."})
        why = self._replayed(scenario, accepted)
        return Witness(direction=direction, scenario=scenario, replayed=not why, why=why)

    def _replayed(self, scenario: Any, accepted: bool) -> str:
        """Why the engine does not do what the solver says by one of the rulebooks; empty where it does by both."""
        if self.replayer is None:
            return "no engine was given to replay it"
        books: tuple[tuple[Rulebook, bool], ...] = ((self.new.rulebook, accepted), (self.old.rulebook, not accepted))
        for rulebook, expected in books:
            wanted = scenario.expect.model_copy(update={"accepted": expected})
            try:
                result = self.replayer.replay(rulebook, scenario.model_copy(update={"expect": wanted}))
            except HitproofError as error:
                return str(error)
            if not result.passed:
                return "; ".join(result.differences)
        return ""


def _checks(group: BoundGroup) -> str:
    """Digest of all that acceptance of a group rests on; equal where two rulebooks only write it in another order."""
    requires = sorted(digest_of(check.id, check.layer, check.require) for check in group.checks)
    facts = sorted(digest_of(name, fact) for name, fact in group.facts.items())
    peers = sorted(group.peers.items())
    return digest_of(requires, facts, peers, group.needed, group.raw_first, group.raw_to, group.resumable, group.every)


def _wishes(world: World) -> list[Any]:
    return list(small(world, *world.models.values()))


def _told(relation: Relation) -> str:
    return {
        "equal": "the same",
        "stricter": "less",
        "looser": "more",
        "incomparable": "some more and some less",
        "undecided": "something that the solver could not compare",
    }[relation]
