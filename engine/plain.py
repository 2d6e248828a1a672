"""The decision, read plainly: trees walked, nothing generated, nothing skipped; the engine must answer the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.engine.state import FAR, Resolved
from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Node, Ref, interpret, reads
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import LEVELS

__all__ = ["Attempt", "Looked", "attempt", "may_run", "options_of", "plain_decide", "plain_lengths", "run"]

Env = dict[str, Value]
UNPRICED = float("inf")
TOUCHED = ("identity", "block_integrity")
"""Layers that must hold of bytes before a repair reads them."""


@dataclass
class Looked:
    """One piece at one length: what it was, what failed, what became of it; `index` is -1 for "nothing held"."""

    group: BoundGroup
    index: int
    share: tuple[int, int]
    before: Env
    env: Env
    failed: tuple[str, ...]
    after: Env
    left: tuple[str, ...]
    steps: list[PlanStep]


@dataclass
class Attempt:
    """All pieces of all groups at one length, peers first."""

    length: int
    prefill: float
    looked: dict[str, list[Looked]]

    @property
    def mandatory(self) -> Iterator[Looked]:
        """Pieces that a length needs, in the order of the groups."""
        return (one for pieces in self.looked.values() for one in pieces if one.group.rules.mandatory)

    @property
    def clean(self) -> bool:
        """No check fails any more."""
        return not any(one.left for one in self.mandatory)

    @property
    def matches(self) -> bool:
        """Identity holds in every group, before any repair."""
        layers = {check.id: check.layer for one in self.mandatory for check in one.group.checks}
        return not any(layers[check] == "identity" for one in self.mandatory for check in one.failed)

    @property
    def steps(self) -> list[PlanStep]:
        """The repairs."""
        return [step for one in self.mandatory for step in one.steps]

    @property
    def cost(self) -> float:
        """Microseconds of all repairs; what is joint is paid once, at its dearest."""
        joint: dict[str, float] = {}
        alone = 0.0
        for step in self.steps:
            price = UNPRICED if step.cost_us is None else step.cost_us
            if step.joint is None:
                alone += price
            else:
                joint[step.joint] = max(price, joint.get(step.joint, 0.0))
        return alone + sum(joint.values())

    @property
    def total(self) -> float:
        """Microseconds of the repairs and of the prefill behind the length."""
        return self.prefill + self.cost


def plain_decide(bound: BoundRulebook, state: Resolved) -> Decision:
    """Decide one request by trying every length; reasons are left out."""
    unknown = [f"door/{name}" for name in bound.rulebook.door if getattr(state.request, name) is None]
    if unknown:
        return Decision("miss", 0, 0, failed=tuple(unknown), digest=bound.rulebook.digest)
    tried = [attempt(bound, state, length) for length in plain_lengths(bound, state)]
    longest = next((one for one in tried if one.matches), None)
    logical = longest.length if longest else 0
    usable = [one for one in tried if one.clean and one.length <= logical]
    best = min(usable, key=lambda one: (one.total, -one.length), default=None)
    from_nothing = _prefill(bound, state, 0)
    if best is not None and best.total > from_nothing:
        best = None
    told = longest or (tried[0] if tried else None)
    return Decision(
        verdict=_verdict(bound, state, logical, best),
        logical=logical,
        usable=best.length if best else 0,
        plan=tuple(best.steps) if best else (),
        cost_us=best.cost if best else 0.0,
        total_us=best.total if best else from_nothing,
        failed=tuple(dict.fromkeys(f"{one.group.id}/{check}" for one in told.mandatory for check in one.failed))
        if told
        else (),
        dispositions=_dispositions(told) if told else {},
        flags=tuple(_flags(bound, state, best)),
        digest=bound.rulebook.digest,
    )


def plain_lengths(bound: BoundRulebook, state: Resolved) -> list[int]:
    """Candidate lengths, longest first: hash units, stored boundaries and ends of segments, where groups may resume."""
    pieces = [piece for held in state.pieces.values() for piece in held]
    odd = {piece.end for piece in pieces} | {mark for piece in pieces for mark in piece.marks or ()}
    needed = [group for group in bound.groups if group.rules.mandatory]
    stored = [
        {mark for piece in state.pieces.get(group.id, ()) for mark in piece.marks or ()}
        for group in needed
        if group.resumable == "stored"
    ]
    steps = [group.every for group in needed if group.every is not None]

    def proposed(length: int) -> bool:
        if any(length % step for step in steps):
            return False
        if stored:
            return all(length in marks for marks in stored)
        return length % state.request.granularity == 0 or length in odd

    return [length for length in range(min(state.request.length - 1, state.matched), 0, -1) if proposed(length)]


def attempt(bound: BoundRulebook, state: Resolved, length: int) -> Attempt:
    """Judge and mend every group at one length, each after its peers."""
    looked: dict[str, list[Looked]] = {}
    for group in bound.groups:
        looked[group.id] = [
            _look(group, state, length, looked, index, segment, share)
            for index, segment, share in _pieces(group, state, length)
        ]
    return Attempt(length, _prefill(bound, state, length), looked)


def failing(group: BoundGroup, env: Env) -> tuple[str, ...]:
    """Checks that do not surely hold, unless the group is surely not needed."""
    if interpret(group.needed, env) is False:
        return ()
    return tuple(check.id for check in group.checks if interpret(check.require, env) is not True)


def may_run(group: BoundGroup, option: BoundOption, failed: Sequence[str], env: Env) -> bool:
    """An option runs if it mends something that fails, its sources are ready and sound, and its condition holds."""
    spoilt = {check.id for check in group.checks if check.layer in TOUCHED} & set(failed) - option.mends
    return (
        bool(option.mends & set(failed))
        and all(env[f"{role}.ready"] for role in option.peers)
        and not (option.own_bytes and spoilt)
        and interpret(option.when, env) is True
    )


def options_of(group: BoundGroup, failed: Sequence[str], env: Env) -> list[tuple[float, BoundOption]]:
    """The options that may run, with their prices; cheapest first, then the lower level, then by id."""
    found = []
    for option in group.options:
        if may_run(group, option, failed, env):
            price = interpret(option.cost, env)
            found.append((UNPRICED if price is None else float(price), option))
    return sorted(found, key=lambda one: (one[0], LEVELS.index(one[1].level), one[1].id))


def run(group: BoundGroup, option: BoundOption, env: Env) -> Env:
    """The segment's facts after a repair: all changes read the state before; what is neither changed nor kept is lost."""
    effect = option.effect
    after: Env = {}
    for fact, declared in group.facts.items():
        was = env.get(f"self.{fact}")
        if fact in effect.sets:
            after[fact] = interpret(effect.sets[fact], env)
        elif fact in effect.resets:
            after[fact] = _set_of(interpret(effect.resets[fact], env))
        elif fact in effect.adds:
            more = _set_of(interpret(effect.adds[fact], env))
            after[fact] = was | more if isinstance(was, frozenset) and more is not None else None
        elif fact in effect.chooses:
            after[fact] = _any_that_keeps(effect.chooses[fact], Ref(f"self.{fact}", declared))
        elif effect.renews and fact in ("recorded", "measured"):
            after[fact] = f"fingerprint of {group.id} by {option.id} from {env['share.first']}"
        else:
            after[fact] = was if fact in effect.keeps else None
    return after


def _look(
    group: BoundGroup,
    state: Resolved,
    length: int,
    looked: Mapping[str, Sequence[Looked]],
    index: int,
    segment: Env,
    share: tuple[int, int],
) -> Looked:
    around: Env = {
        **state.request.as_dict("request."),
        **state.runtime.as_dict("runtime."),
        **state.kernels[group.id].as_dict("kernel."),
        "length": length,
        "share.first": share[0],
        "share.to": share[1],
        **_peers(group, length, looked, share),
    }
    env = {**around, **_of_self(segment)}
    failed = failing(group, env)
    result = Looked(group, index, share, segment, env, failed, segment, failed, [])
    while result.left and group.rules.mandatory:
        now = {**around, **_of_self(result.after)}
        options = options_of(group, result.left, now)
        if not options:
            break
        price, option = options[0]
        after = run(group, option, now)
        left = failing(group, {**around, **_of_self(after)})
        if not set(left) < set(result.left):
            break
        result.after, result.left = after, left
        result.steps.append(_step(group, index, option, price))
    return result


def _pieces(group: BoundGroup, state: Resolved, length: int) -> list[tuple[int, Env, tuple[int, int]]]:
    """The segments that a length asks, each with the tokens it answers for.

    Of a point object it is the first that reaches the length, else the last. Of a span object they form a chain over
    what is needed: each answers from where the one before ended, the first for all before and the last for all behind.
    """
    held = [(index, piece.as_dict()) for index, piece in enumerate(state.pieces.get(group.id, ()))]
    chain: list[tuple[int, Env]] = held
    if group.rules.pieces == "point":
        reaching = [one for one in held if one[1]["end"] is not None and one[1]["end"] >= length]
        chain = reaching[:1] or held[-1:]
    elif len(held) > 1:
        first, to = _needed_span(group, length)
        chain = [one for one in held if _overlaps(one[1], first, to)]
    if not chain:
        return [(-1, _nothing_held(group, state), (0, FAR))]
    ends = [segment["end"] for _, segment in chain[:-1]]
    shares = zip([0, *ends], [*ends, FAR], strict=True)
    return [(index, segment, share) for (index, segment), share in zip(chain, shares, strict=True)]


def _overlaps(segment: Env, first: int, to: int) -> bool:
    start, end = segment["start"], segment["end"]
    return isinstance(start, int) and isinstance(end, int) and start < to and end > first


def _needed_span(group: BoundGroup, length: int) -> tuple[int, int]:
    return interpret(group.raw_first, {"length": length}), interpret(group.raw_to, {"length": length})


def _nothing_held(group: BoundGroup, state: Resolved) -> Env:
    """A discarded record under the request's own identity."""
    asked = {path for check in group.checks if check.layer == "identity" for path in reads(check.require)}
    identity = {
        fact: getattr(state.request, value.path.removeprefix("request."))
        for fact, value in group.healthy.items()
        if isinstance(value, Ref) and value.path.startswith("request.") and f"self.{fact}" in asked
    }
    nowhere: Env = {"form": "discarded", "tier": "nowhere", "bound_for": "nowhere", "marks": frozenset()}
    zero: Env = dict.fromkeys(("generation", "pins", "epoch", "start", "end"), 0)
    return {**nowhere, **zero, "matched": state.matched, **identity}


def _peers(group: BoundGroup, length: int, looked: Mapping[str, Sequence[Looked]], share: tuple[int, int]) -> Env:
    """Each role's segment after its repair: the only one, or the first that answers for all that this piece needs."""
    first, to = _needed_span(group, length)
    low, high = max(share[0], first), min(share[1], to)
    env: Env = {}
    for role, peer in group.peers.items():
        pieces = looked[peer]
        fitting = [one for one in pieces if len(pieces) == 1 or (one.share[0] <= low and high <= one.share[1])]
        env[f"{role}.ready"] = bool(fitting) and not fitting[0].left
        for fact, value in fitting[0].after.items() if fitting else ():
            env[f"{role}.{fact}"] = value
    return env


def _verdict(bound: BoundRulebook, state: Resolved, logical: int, best: Attempt | None) -> Verdict:
    if best is not None:
        level = max((LEVELS.index(step.level) for step in best.steps), default=None)
        return "reuse" if level is None else SEVERITY[LEVELS[level]]  # type: ignore[return-value]
    request = state.request.as_dict("request.")
    if not all(one.recompute and interpret(one.recompute.when, request) is True for one in bound.groups):
        return "refuse"
    return "recompute" if logical else "miss"


def _dispositions(told: Attempt) -> dict[str, str]:
    result = {}
    for pieces in told.looked.values():
        for one in pieces:
            if not one.failed:
                continue
            if one.group.rules.mandatory:
                result.setdefault(one.group.id, "keep")
            rules = one.group.dispositions if one.before["form"] != "discarded" else ()
            then = next((rule.then for rule in rules if interpret(rule.when, one.env) is True), "keep")
            if then != "keep":
                result[one.group.id] = then
    return result


def _flags(bound: BoundRulebook, state: Resolved, best: Attempt | None) -> Iterator[str]:
    request = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime.")}
    used = [one for pieces in best.looked.values() for one in pieces] if best else []
    for flag in bound.flags:
        if flag.over == "request":
            if interpret(flag.unless["*"], {**request, "length": best.length if best else 0}) is not True:
                yield flag.id
        elif any(
            interpret(flag.unless[one.group.object], _of_self(one.after)) is not True
            for one in used
            if one.index >= 0 and one.group.constants.get("has_bytes") and one.after["form"] == one.group.home
        ):
            yield flag.id


def _prefill(bound: BoundRulebook, state: Resolved, length: int) -> float:
    env = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime."), "length": length}
    price = interpret(bound.rulebook.prefill.cost, env)
    return UNPRICED if price is None else float(price)


def _step(group: BoundGroup, index: int, option: BoundOption, price: float) -> PlanStep:
    told = None if price == UNPRICED else price
    return PlanStep(group.id, index, option.id, option.repair, option.level, option.joint, told)


def _of_self(segment: Env) -> Env:
    return {f"self.{fact}": value for fact, value in segment.items()}


def _set_of(item: Any) -> frozenset[int] | None:
    return None if item is None else frozenset({item})


def _any_that_keeps(promise: Node, chosen: Ref) -> Value:
    """An allocator's choice: the least value of the fact's domain that keeps the promise."""
    lo, hi = chosen.fact.lo, chosen.fact.hi
    values = range(int(lo), int(hi) + 1) if lo is not None and hi is not None else ()
    return next((value for value in values if interpret(promise, {chosen.path: value}) is True), None)
