"""Claim `identity_monotone`: a key carries all of the identity that it leads to, and goes when the segment goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import z3

from hitproof.spec.bound import BoundKey, BoundOption, BoundRulebook
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.keys import Named, names_what_is_held, same_key
from hitproof.verification.axioms.repairs import COPYING
from hitproof.verification.decode import (
    decode_event,
    decode_scenario,
    decode_value,
    option_story,
    segment_of,
    small,
)
from hitproof.verification.encode import Z3Fact, Z3Facts, encode, encode_number
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, machines, steps
from hitproof.verification.terms import any_of, negated

__all__ = ["CLAIM"]

FILING = "filing"


def parts(bound: BoundRulebook) -> list[Part]:
    """What keys are made of, a group; and what events do to them, a form machine."""
    return [
        *each_group(bound.groups, "checks", "keys", "options", constants=("row_tokens",)),
        *each_group(machines(bound.groups), "keys", "transitions", about=(FILING,), constants=(), free=("stride",)),
    ]


def prove(run: Run) -> None:
    """One part: the keys of a group, or the events of a form machine."""
    world = World(run.bound)
    model = world.group(run.group.id)
    if FILING in run.part.about:
        _events_keep_keys(run, model)
        return
    asked: list[BoundKey] = []
    for key in run.group.keys:
        run.count += 1
        # Tiers whose keys are made of the same have one proof.
        if any(replace(key, tier=other.tier, where=other.where) == other for other in asked):
            continue
        asked.append(key)
        _found_means_identical(run, model, key)
        if not run.done:
            _equal_keys_equal_answers(run, model, key)
        if run.done:
            return
    if run.group.rules.mandatory:
        _options_keep_keys(run, model)


def _found_means_identical(run: Run, model: GroupModel, key: BoundKey) -> None:
    """What a request finds by its key passes every identity check, at every length up to the segment's end."""
    world = model.world
    own, end = model.own, model.own("end")
    matched = own("matched")
    base = [
        own("published").value,
        end.known,
        0 < world.length,
        world.length <= end.value,
        *world.usual(),
        *same_key(
            key,
            world.ctx,
            end.value,
            own,
            _asked(model, key, world.shared),
            lambda tokens: z3.And(matched.known, tokens <= matched.value),
        ),
    ]
    checks = [check for check in run.group.checks if check.layer == "identity"]
    wrong = [(check.id, z3.Not(model.holds(check.id))) for check in checks]
    label = f"{run.group.id}: found on {key.tier}"
    found = run.must_not(
        world.ctx,
        [*base, z3.Or([bad for _, bad in wrong]), *world.domains()],
        label,
        soft=small(world, *world.models.values()),
    )
    if found is None:
        if run.must(world.ctx, [*base, model.needed(), *world.domains()], f"{label}: witness") is None:
            run.gaps.append(f"no request can find a segment of {run.group.id} on {key.tier}")
        else:
            run.witness = run.witness or f"a request finds a segment of {run.group.id} on {key.tier}"
        return
    told = [check for check, bad in wrong if z3.is_true(found.model.eval(bad, model_completion=True))]
    length = found.model.eval(world.length, model_completion=True).as_long()
    segments = [segment_of(found.model, model, name="s", length=length)]
    run.fail(
        f"on {key.tier} a request finds a segment of {run.group.id} by its key, though {', '.join(told)} fails",
        f"keys/{key.tier}",
        key.where,
        decode_scenario(
            found.model,
            world,
            "identity_monotone",
            f"a key on {key.tier} leads to a segment of another identity",
            Expectation(found_in={"s": _tiers(run, found.model, model)}, identity=False, at=length),
            segments=segments,
        ),
    )


def _tiers(run: Run, found: Any, model: GroupModel) -> list[str]:
    """The tiers in which this request's key is the segment's own."""
    world, matched = model.world, model.own("matched")
    return [
        key.tier
        for key in run.group.keys
        if all(
            z3.is_true(found.eval(part, model_completion=True))
            for part in same_key(
                key,
                world.ctx,
                model.own("end").value,
                model.own,
                _asked(model, key, world.shared),
                lambda tokens: z3.And(matched.known, tokens <= matched.value),
            )
        )
    ]


def _equal_keys_equal_answers(run: Run, model: GroupModel, key: BoundKey) -> None:
    """Two requests with one key get one answer from every identity check, on any segment, up to the key's end."""
    world = model.world
    lookup = {f"request.{name}": fact for name, fact in run.bound.rulebook.request.items()}
    sides = [Z3Facts(world.enums, lookup, f"{who}.") for who in ("one", "other")]
    agreed = [z3.Int(f"{who}.matched", ctx=world.ctx) for who in ("one", "other")]
    end = z3.Int("key.end", ctx=world.ctx)
    told = model.own("matched").known

    def agree(tokens: Any) -> Any:
        # How far each agrees with the segment's own tokens is the same, as far as the two agree with each other.
        return z3.Or(agreed[0] == agreed[1], z3.And(tokens <= agreed[0], tokens <= agreed[1]))

    base = [
        0 < world.length,
        world.length <= end,
        *(matched >= 0 for matched in agreed),
        *same_key(key, world.ctx, end, _asked(model, key, sides[0]), _asked(model, key, sides[1]), agree),
    ]
    differ = []
    for check in run.group.checks:
        if check.layer == "identity":
            answers = [
                encode(check.require, _seen_by(model, side, matched, told), ctx=world.ctx).T
                for side, matched in zip(sides, agreed, strict=True)
            ]
            differ.append(answers[0] != answers[1])
    found = run.must_not(
        world.ctx,
        [*base, z3.Or([z3.BoolVal(False, ctx=world.ctx), *differ]), *world.domains()],
        f"{run.group.id}: two requests on {key.tier}",
    )
    if found is not None:
        # One scenario has one request, so this failure has no story that an engine could replay.
        sentence = f"two requests with one key on {key.tier} are told apart by an identity check of {run.group.id}"
        run.fail(sentence, f"keys/{key.tier}", key.where, None)


def _asked(model: GroupModel, key: BoundKey, request: Z3Facts) -> Callable[[str], Z3Fact]:
    """What a request gives for a field or a beginning of a key."""

    def value(name: str) -> Z3Fact:
        if name not in key.fields:
            return request(f"request.{name}")
        return Z3Fact(*encode_number(key.fields[name], request, ctx=model.world.ctx))

    return value


def _seen_by(model: GroupModel, request: Z3Facts, matched: Any, told: Any) -> Callable[[str], Z3Fact]:
    """The group's facts as one of several requests sees them: how far tokens agree is a fact of both."""

    def names(path: str) -> Z3Fact:
        if path.startswith("request."):
            return request(path)
        return Z3Fact(matched, told) if path == "self.matched" else model.names(path)

    return names


def _events_keep_keys(run: Run, model: GroupModel) -> None:
    """After every event, what is found by a key is still what the key names."""
    ctx = model.world.ctx
    named = Named.fresh(model, "s.")
    before = [clause for _, clause in names_what_is_held(model, model.own, named)]
    told: dict[str, tuple[Step, list[tuple[str, Any]]]] = {}
    asked, filings = [], []
    for step in steps(model):
        run.count += 1
        guard, after = [step.guard], named
        if step.transition.key == "publish":
            after = Named.of(model, step.post)
            filings.append((step.transition.id, z3.And(step.guard, step.post("published").value)))
        elif step.donor is not None:
            after = Named.fresh(model, "d.")
            guard += [clause for _, clause in names_what_is_held(model, step.donor, after)]
            guard += step.donor.assumptions
        clauses = names_what_is_held(model, step.post, after)
        label = f"{run.group.id}: {step.transition.id} from {step.source}"
        told[label] = step, clauses
        asked.append((label, z3.And(*guard, z3.Not(z3.And([clause for _, clause in clauses])))))
    premise = [*before, *model.world.domains()]
    found = run.must_none(ctx, premise, asked)
    if found is not None:
        _report_event(run, model, *told[found[0]], found[1].model)
        return
    for event in sorted(run.must_each(ctx, premise, filings)):
        run.witness = f"'{event}' files a segment of {run.group.id}"


def _report_event(run: Run, model: GroupModel, step: Step, clauses: list[tuple[str, Any]], found: Any) -> None:
    names = [name for name, clause in clauses if z3.is_false(found.eval(clause, model_completion=True))]
    facts = {
        f"s.{fact}": decode_value(found, run.group.facts[fact], step.post(fact))
        for fact in ("published", "form", *(name for name, _ in clauses))
    }
    segments = [segment_of(found, model, name="s")]
    if step.donor is not None:
        segments.append(segment_of(found, model, step.donor, "d"))
    run.fail(
        f"after '{step.transition.id}' a segment of {run.group.id} is found by a key that names something else: "
        f"{', '.join(names)}",
        f"{run.group.object}/{step.transition.id}",
        step.transition.where,
        decode_scenario(
            found,
            model.world,
            "identity_monotone",
            f"'{step.transition.id}' leaves a key that names what is not held",
            Expectation(facts=facts),
            segments=segments,
            events=[decode_event(found, model, "s", step, donor="d" if step.donor is not None else None)],
            fill=False,
        ),
    )


def _options_keep_keys(run: Run, model: GroupModel) -> None:
    """A repair leaves no segment under a key that names something else; its private copy is under none."""
    world, named = model.world, Named.fresh(model, "s.")
    told: dict[str, tuple[BoundOption, Post]] = {}
    asked = []
    for option in run.group.options:
        post, promises = model.after(option)
        after = [clause for _, clause in names_what_is_held(model, post, named)]
        if option.repair in COPYING:
            after.append(z3.Not(post("published").value))
        label = f"{run.group.id}/{option.id} keeps keys"
        told[label] = option, post
        wanted = any_of([negated(model.holds(check)) for check in sorted(option.mends)], model.false)
        asked.append((label, z3.And(model.applies(option), wanted, *promises, z3.Not(z3.And(after)))))
    before = [clause for _, clause in names_what_is_held(model, model.own, named)]
    premise = [*before, model.identity(), *world.usual(), world.length > 0, *world.domains()]
    found = run.must_none(world.ctx, premise, asked, soft=lambda: small(world, *world.models.values()))
    if found is not None:
        option, post = told[found[0]]
        sentence = (
            f"after {run.group.id}/{option.id} a segment is found by a key that names something else, or its private "
            "copy by any"
        )
        story = option_story(found[1].model, model, option, post, "identity_monotone", sentence)
        run.fail(sentence, option.rule, option.where, story)


CLAIM = Claim(
    id="identity_monotone",
    sentence="What a request finds by its key, in whatever tier, passes every identity check, and requests with one "
    "key get one answer; a segment is found only by the key of what it holds, and by none once it is freed, cut back, "
    "opened or set apart, nor is a private copy.",
    method="validity a group and a tier, over one request and over two; inductive step a transition and an option over "
    "what the key names",
    assumptions=("keys_tell",),
    prove=prove,
    parts=parts,
    covers="{count} keys and events",
)
