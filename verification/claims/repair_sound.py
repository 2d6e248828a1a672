"""Claim `repair_sound`: a repair mends what it says, keeps the rest, and makes nothing out of nothing."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundOption, BoundRulebook
from hitproof.verification.axioms.repairs import KNOWN_REPAIRS, MEASURING, SOURCES, repaired
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import option_story, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["CLAIM", "OptionStep"]


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group: its options, whatever its peers hold."""
    return each_group([group for group in bound.groups if group.rules.mandatory], "checks", "options")


def prove(run: Run) -> None:
    """Every option of a mandatory group: by the rules, in a plan, and by what it does to bytes."""
    model = World(run.bound).group(run.group.id)
    world, group = model.world, model.group
    before = Truth.fresh(world.ctx, f"{group.id}.")
    options: list[OptionStep] = []
    for option in group.options:
        run.count += 1
        if option.repair in KNOWN_REPAIRS:
            options.append(OptionStep(run, model, option, before))
        else:
            run.gaps.append(f"{group.id}/{option.id}: no axiom says what the repair '{option.repair}' does")
    length = [*world.usual(), world.length > 0, *_environment_known(world, model)]
    premise = [model.identity(), *length]
    if not _each(run, model, premise, [(option, *question) for option in options for question in option.rules()]):
        return
    _plan(run, model, length, options)
    applies = any_of([option.premise for option in options], model.false)
    if options and run.must(world.ctx, [*premise, applies, *world.domains()], f"{group.id}: witness") is not None:
        run.witness = f"some repair of {group.id} applies in some state"
    whole = [*(clause for _, clause in truthful(model, model.own, before)), *fingerprints(before, run.assumptions)]
    questions = [(option, *question) for option in options for question in option.truth()]
    _each(run, model, [*premise, *whole], questions)


def _plan(run: Run, model: GroupModel, premise: list[Any], options: list[OptionStep]) -> None:
    """A plan leaves each group as it is or gives it one option that mends all that fails; all end accepted.

    Peers are mended first and read as they are then. Whatever they hold is allowed here, so it holds of those too, and
    the groups of a plan can be asked one by one. Longer sequences follow, since every option keeps what it does not
    mend.
    """
    world = model.world
    ends = [(f"{option.label} at the end of a plan", option.ends_refused()) for option in options]
    picked = any_of([option.picked for option in options], model.false)
    found = run.must_none(world.ctx, [*premise, *world.domains()], ends)
    if found is not None:
        run.fail(f"{found[0]}: {model.group.id} is not accepted though every repair succeeds", "*", "plan", None)
    elif options and run.must(world.ctx, [*premise, picked, *world.domains()], f"{model.group.id}: a plan") is None:
        run.gaps.append(f"{model.group.id}: no plan with a repair was found, so nothing was said about plans")


def _each(run: Run, model: GroupModel, premise: list[Any], questions: list[tuple[OptionStep, str, Any]]) -> bool:
    """Whether none of the failures can be; the first that can is reported."""
    world = model.world
    found = run.must_none(
        world.ctx,
        [*premise, *world.domains()],
        [(sentence, formula) for _, sentence, formula in questions],
        soft=lambda: small(world, *world.models.values()),
    )
    if found is not None:
        option = next(option for option, sentence, _ in questions if sentence == found[0])
        option.report(found[1].model, found[0])
    return found is None


class OptionStep:
    """One recovery option on the state before it, and all that may go wrong with it.

    `wanted` says that it applies and mends something that fails.
    """

    def __init__(self, run: Run, model: GroupModel, option: BoundOption, before: Truth) -> None:
        self.run, self.model, self.world, self.option, self.before = run, model, model.world, option, before
        self.label = f"{model.group.id}/{option.id}"
        self.post, self.promises = model.after(option)
        failing = any_of([negated(model.holds(check)) for check in sorted(option.mends)], model.false)
        applies = model.applies(option)
        self.wanted = all_of([applies, failing], model.true)
        self.premise = all_of([self.wanted, *self.promises], model.true)
        others = [model.holds(check.id) for check in model.group.checks if check.id not in option.mends]
        self.picked = all_of([applies, *self.promises, *others], model.true)

    def could(self) -> Any:
        """Whatever its condition says: its sources are whole, facts are truthful after it, and all checks hold."""
        sources, after = self._repaired()
        parts = [sources, *self.promises, self.model.accepted(self.post)]
        parts += [clause for _, clause in truthful(self.model, self.post, after)]
        if "self" in SOURCES[self.option.repair]:
            # What measures its source would find out, and fail.
            parts.append(self.before["intact"])
        return all_of(parts, self.model.true)

    def alone(self) -> Any:
        """It is wanted, and nothing fails any more after it, whatever is chosen for it."""
        whole = any_of([*map(negated, self.promises), self.model.accepted(self.post)], self.model.false)
        return all_of([self.wanted, whole], self.model.true)

    def rules(self) -> list[tuple[str, Any]]:
        """Mended checks hold after; the others hold as they did."""
        wrong = any_of([bad for _, bad in self._wrong()], self.model.false)
        return [(f"{self.label} mends and keeps", all_of((self.premise, wrong), self.model.true))]

    def ends_refused(self) -> Any:
        """It mends all that fails, and the group is not accepted after it."""
        return all_of((self.picked, negated(self.model.accepted(self.post))), self.model.true)

    def truth(self) -> list[tuple[str, Any]]:
        """What the repair needs is whole, and the facts after are truthful of the bytes after."""
        model, true = self.model, self.model.true
        sources, after = self._repaired()
        self.clauses = truthful(model, self.post, after)
        untrue = negated(all_of([clause for _, clause in self.clauses], true))
        return [
            (
                f"{self.label} runs although a source that it needs is not whole",
                all_of((self.premise, negated(sources)), true),
            ),
            (
                f"after {self.label} the facts claim what the bytes need not be",
                all_of((self.premise, sources, untrue), true),
            ),
        ]

    def _repaired(self) -> tuple[Any, Truth]:
        """What the repair needs is whole, and the truth after it."""
        model = self.model
        inputs = None
        if "inputs" in model.peers:
            kept = model.peers["inputs"].own
            inputs = (kept("start").value, kept("end").value)
        return repaired(model, self.option, self.post, self.before, self._source(self.before), inputs)

    def _wrong(self) -> list[tuple[str, Any]]:
        wrong: list[tuple[str, Any]] = []
        for check in self.model.group.checks:
            fails = negated(self.model.holds(check.id, self.post))
            if check.id in self.option.mends:
                wrong.append((f"does not mend '{check.id}'", fails))
            else:
                broken = all_of((self.model.holds(check.id), fails), self.model.true)
                wrong.append((f"breaks '{check.id}'", broken))
        return wrong

    def _source(self, before: Truth) -> Any:
        model, world = self.model, self.world
        roles = {peer.group.object: role for role, peer in model.peers.items()}

        def whole(name: str) -> Any:
            if name == "self":
                parts = [before["mine"], before["committed"]]
                if model.group.object == "uncompressed_tail":
                    # A ring that was written beyond its commit holds rows of another continuation.
                    parts.append(before["ring_still"])
                # These measure what they read against what was recorded, and fail where it differs.
                if self.option.repair not in MEASURING:
                    parts.append(before["intact"])
                else:
                    # Where it is known already that it differs, they can only fail.
                    measured, recorded = model.own("measured"), model.own("recorded")
                    parts.append(z3.Or(z3.Not(measured.known), measured.value == recorded.value))
                if self.option.repair != "promote":
                    pool = world.shared("runtime.pool_epoch").value
                    parts += [before["device"], before["mapped"], before["pool"] == pool]
                return z3.And(parts)
            if name in ("tokens", "media"):
                fact = world.shared(f"request.has_{name}")
                return z3.And(fact.known, fact.value)
            role = "kv" if name == "kv" else roles.get(name)
            if role is None:
                return z3.BoolVal(False, ctx=world.ctx)
            ready: Any = model.ready(role).value
            if name != "layer_inputs":
                return ready
            # Bytes made from approximate inputs would be approximate themselves.
            exactness = model.peers[role].own("exactness")
            exact = world.enums.member(model.group.facts["exactness"].type, "exact")
            return z3.And(ready, exactness.known, exactness.value == exact)

        return whole

    def report(self, found: Any, sentence: str) -> None:
        """Tell a failure, with the checks and facts that show it."""
        if sentence.endswith("mends and keeps"):
            broken = [text for text, bad in self._wrong() if z3.is_true(found.eval(bad, model_completion=True))]
            told = f"{self.label} {broken[0] if broken else 'does not keep its promises'}"
        else:
            false = [n for n, c in self.clauses if z3.is_false(found.eval(c, model_completion=True))]
            told = f"{sentence} ({', '.join(false) or 'source'})"
        scenario = option_story(found, self.model, self.option, self.post, "repair_sound", told)
        self.run.fail(told, self.option.rule, self.option.where, scenario)


def _environment_known(world: World, model: GroupModel) -> list[Any]:
    """`contracts_known`, `counters_never_wrap`: contract and pool epoch are known, counters far from their end."""
    known = [model.kernel(name).known for name in world.bound.rulebook.kernel]
    known.append(world.shared("runtime.pool_epoch").known)
    far = [
        model.own(name).value < int(fact.hi) - 2
        for name, fact in model.group.facts.items()
        if fact.type.kind == "counter" and fact.hi is not None
    ]
    return [*known, *far]


CLAIM = Claim(
    id="repair_sound",
    sentence="Every recovery option makes true what it mends, keeps every other check, runs only from sources that are "
    "whole, and leaves facts that its bytes bear out; a plan of such repairs ends with every group accepted.",
    method="one-step obligations an option over facts and ghost content, alone and at the end of a plan",
    assumptions=("fingerprints_tell", "repairs_measure_their_output", "contracts_known", "counters_never_wrap"),
    prove=prove,
    parts=parts,
    covers="{count} options and the plans that they make",
)
