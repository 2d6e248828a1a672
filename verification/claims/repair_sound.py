"""Claim `repair_sound`: a repair mends what it says, keeps the rest, and makes nothing out of nothing."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.repairs import KNOWN_REPAIRS, repaired
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """Every option of every mandatory group, then the plan of all groups together."""
    options = 0
    for group in run.bound.groups:
        if not group.rules.mandatory:
            continue
        for option in group.options:
            options += 1
            _Option(run, group, option).prove()
            if run.done:
                return
    _joint_plan(run)
    run.covered.append(f"{options} options and their joint plan")


class _Option:
    def __init__(self, run: Run, group: BoundGroup, option: BoundOption) -> None:
        self.run, self.group, self.option = run, group, option
        self.world = World(run.bound)
        self.model = self.world.group(group.id)
        self.label = f"{group.id}/{option.id}"

    def prove(self) -> None:
        run, model, option = self.run, self.model, self.option
        if option.repair not in KNOWN_REPAIRS:
            run.gaps.append(f"{self.label}: no axiom says what the repair '{option.repair}' does")
            return
        post, promises = model.after(option)
        failing = z3.Or([z3.Not(model.holds(check)) for check in sorted(option.mends)] or [False])
        premise = [
            model.applies(option),
            model.identity(),
            failing,
            *promises,
            *self.world.usual(),
            self.world.length > 0,
            *_environment_known(self.world, model),
        ]
        self._rules(post, premise)
        if not run.done:
            self._truth(post, premise)

    def _rules(self, post: Post, premise: list[Any]) -> None:
        """Mended checks hold after; the others hold as they did."""
        model, run, world = self.model, self.run, self.world
        wrong: list[tuple[str, Any]] = []
        for check in self.group.checks:
            fails = z3.Not(model.holds(check.id, post))
            if check.id in self.option.mends:
                wrong.append((f"does not mend '{check.id}'", fails))
            else:
                wrong.append((f"breaks '{check.id}'", z3.And(model.holds(check.id), fails)))
        formulas = [*premise, z3.Or([bad for _, bad in wrong]), *world.domains()]
        found = run.must_not(
            world.ctx, formulas, f"{self.label} mends and keeps", soft=small(world, *world.models.values())
        )
        if found is not None:
            broken = [text for text, bad in wrong if z3.is_true(found.model.eval(bad, model_completion=True))]
            what = broken[0] if broken else "does not keep its promises"
            self._report(found.model, post, f"{self.label} {what}")
        elif run.must(world.ctx, [*premise, *world.domains()], f"{self.label}: witness") is not None:
            run.witness = run.witness or f"{self.label} applies in some state"

    def _truth(self, post: Post, premise: list[Any]) -> None:
        """What the repair needs is whole, and the facts after are truthful of the bytes after."""
        model, run, world = self.model, self.run, self.world
        before = Truth.fresh(world.ctx, f"{self.group.id}.")
        inputs = None
        if "inputs" in model.peers:
            kept = model.peers["inputs"].own
            inputs = (kept("start").value, kept("end").value)
        sources, after = repaired(model, self.option, post, before, self._source(before), inputs)
        base = [
            *premise,
            *(clause for _, clause in truthful(model, model.own, before)),
            *fingerprints(before, run.assumptions),
        ]
        clauses = truthful(model, post, after)
        questions = [
            (z3.Not(sources), f"{self.label} runs although a source that it needs is not whole"),
            (
                z3.And(sources, z3.Not(z3.And([clause for _, clause in clauses]))),
                f"after {self.label} the facts claim what the bytes need not be",
            ),
        ]
        for bad, sentence in questions:
            found = run.must_not(
                world.ctx, [*base, bad, *world.domains()], sentence, soft=small(world, *world.models.values())
            )
            if found is not None:
                false = [n for n, c in clauses if z3.is_false(found.model.eval(c, model_completion=True))]
                self._report(found.model, post, f"{sentence} ({', '.join(false) or 'source'})")
                return

    def _source(self, before: Truth) -> Any:
        model, world = self.model, self.world
        roles = {peer.group.object: role for role, peer in model.peers.items()}

        def whole(name: str) -> Any:
            if name == "self":
                parts = [before["mine"], before["committed"]]
                if self.option.repair not in ("promote", "checksum"):
                    parts.append(before["intact"])
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

    def _report(self, found: Any, post: Post, sentence: str) -> None:
        length = found.eval(self.world.length, model_completion=True).as_long()
        failing = [
            check.id
            for check in self.group.checks
            if not z3.is_true(found.eval(self.model.holds(check.id, post), model_completion=True))
        ]
        scenario = decode_scenario(
            found,
            self.world,
            "repair_sound",
            sentence,
            Expectation(option=self.label, at=length, fails_after=failing),
        )
        self.run.fail(sentence, self.option.rule, self.option.where, scenario)


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


def _joint_plan(run: Run) -> None:
    """Repairs folded in peer order, peers read as they are after theirs: what ends mended is accepted as a whole.

    Each group is left as it is or given one option that mends all that fails; longer sequences follow, since every
    option was shown to keep what it does not mend.
    """
    world = World(run.bound)
    ctx = world.ctx
    after: dict[str, Post] = {}
    formulas: list[Any] = []
    finals: list[Any] = []
    for group in run.bound.groups:
        model = _JointModel(world, group, after)
        world.models[group.id] = model
        finals_of, constraints, post = model.folded()
        after[group.id] = post
        formulas += [*constraints, *_environment_known(world, model)]
        if group.rules.mandatory:
            finals.append(finals_of)
    formulas += [*world.usual(), world.length > 0, *world.domains()]
    if run.must(ctx, [*formulas, z3.Or(_JointModel.picks(world))], "joint plan: witness") is None:
        run.gaps.append("no plan with a repair was found, so nothing was said about plans")
    found = run.must_not(ctx, [*formulas, z3.Not(z3.And(finals))], "joint plan")
    if found is not None:
        run.fail("a plan whose every repair succeeds leaves a group that is not accepted", "*", "plan", None)


class _JointModel(GroupModel):
    """A group whose peers are read after their repair."""

    def __init__(self, world: World, group: BoundGroup, after: dict[str, Post]) -> None:
        super().__init__(world, group)
        self.after_peers = after
        self.chosen: list[Any] = []

    def resolve(self, path: str, own: Any) -> Any:
        scope, _, name = path.partition(".")
        if scope in self.peers and name != "ready":
            return self.after_peers[self.peers[scope].group.id](name)
        return super().resolve(path, own)

    def ready(self, role: str) -> Any:
        if role not in self._ready:
            peer = self.peers[role]
            own = self.after_peers[peer.group.id]
            ready = type(super().ready(role))(peer.accepted(own), z3.BoolVal(True, ctx=self.world.ctx))
            self._ready[role] = ready
        return self._ready[role]

    @staticmethod
    def picks(world: World) -> list[Any]:
        """Whether each group is given each of its options."""
        return [pick for model in world.models.values() if isinstance(model, _JointModel) for pick in model.chosen]

    def folded(self) -> tuple[Any, list[Any], Post]:
        """The group's acceptance at the end, what is assumed of its repair, and its facts then."""
        ctx = self.world.ctx
        facts = {name: self.own(name) for name in self.group.facts}
        constraints: list[Any] = []
        chosen = self.chosen
        options = self.group.options if self.group.rules.mandatory else ()
        for option in options:
            pick = z3.Bool(f"{self.own.prefix}picks.{option.id}", ctx=ctx)
            post, promises = self.after(option)
            unmended = [c.id for c in self.group.checks if c.id not in option.mends]
            can = z3.And(self.applies(option), *promises, *(self.holds(check) for check in unmended))
            constraints.append(z3.Implies(pick, can))
            chosen.append(pick)
            for name, fact in facts.items():
                new = post(name)
                facts[name] = type(new)(z3.If(pick, new.value, fact.value), z3.If(pick, new.known, fact.known))
        if chosen:
            constraints.append(
                z3.PbLe([(pick, 1) for pick in chosen], 1) if len(chosen) > 1 else z3.BoolVal(True, ctx=ctx)
            )
        left = z3.Not(z3.Or(chosen)) if chosen else z3.BoolVal(True, ctx=ctx)
        constraints.append(
            z3.Implies(left, self.accepted()) if self.group.rules.mandatory else z3.BoolVal(True, ctx=ctx)
        )
        end = Post(facts)
        return self.accepted(end), constraints, end


CLAIM = Claim(
    id="repair_sound",
    sentence="Every recovery option makes true what it mends, keeps every other check, runs only from sources that are "
    "whole, and leaves facts that its bytes bear out; a plan of such repairs ends with every group accepted.",
    method="one-step obligations an option over facts and ghost content; repairs of a plan folded in peer order",
    assumptions=("fingerprints_tell", "repairs_measure_their_output", "contracts_known", "counters_never_wrap"),
    prove=prove,
)
