"""Why a hit was refused: failing checks with their first false conjunct, dispositions and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hitproof.engine.compile import CompiledGroup
from hitproof.engine.peers import peer_places
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundCheck
from hitproof.spec.condition import Node, conjuncts, interpret, reads, text
from hitproof.spec.decision import Reason
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import Disposition

if TYPE_CHECKING:
    from hitproof.engine.outcome import Judge, Outcome

__all__ = [
    "deciding_rules",
    "dispose",
    "environment",
    "environment_of",
    "explain_failures",
    "first_failing",
    "raise_flags",
]


def environment(
    group: CompiledGroup, state: Resolved, piece: Any, length: int, share: tuple[int, int], peers: Mapping[str, Any]
) -> dict[str, Value]:
    """Every fact that a rule of the group may read, by path.

    Args:
        peers: Role to (segment, ready).
    """
    env: dict[str, Value] = {
        **piece.as_dict("self."),
        **state.environment(),
        **state.kernels[group.bound.id].as_dict("kernel."),
        "length": length,
        "share.first": share[0],
        "share.to": share[1],
    }
    for role, (segment, ready) in peers.items():
        env.update(segment.as_dict(f"{role}."))
        env[f"{role}.ready"] = ready
    return env


def explain_failures(
    judge: Judge, state: Resolved, first: Outcome | None
) -> tuple[tuple[str, ...], tuple[Reason, ...]]:
    """Ids of the checks that failed at the length that was looked at first, and a reason for each."""
    if first is None:
        return (), ()
    failed: dict[str, Reason] = {}
    for group, masks in zip(judge.groups, first.masks, strict=False):
        if not group.bound.rules.mandatory:
            continue
        for place, mask in enumerate(masks):
            if not mask:
                continue
            env = environment_of(judge, state, first, group, place)
            for bit, check in enumerate(group.bound.checks):
                rule = f"{group.bound.id}/{check.id}"
                if mask & (1 << bit) and rule not in failed:
                    failed[rule] = _reason(rule, check, env)
    return tuple(failed), tuple(failed.values())


def dispose(judge: Judge, state: Resolved, first: Outcome | None, best: Outcome | None) -> dict[str, str]:
    """What becomes of each group's entry, by the rules that decide; what the answer reads, by `best`, is kept."""
    if first is None:
        return {}
    failed = [group for group, masks in zip(judge.groups, first.masks, strict=False) if any(masks)]
    result = {group.id: "keep" for group in failed if group.mandatory}
    deciding = [one for one in deciding_rules(judge, state, first) if one[2].then != "keep"]
    if deciding:
        read = _read_as_found(judge, state, best)
        result |= {group.id: rule.then for group, index, rule in deciding if (group.index, index) not in read}
    return result


def deciding_rules(judge: Judge, state: Resolved, outcome: Outcome) -> Iterator[tuple[CompiledGroup, int, Disposition]]:
    """For each piece that fails, by group and index, the first disposition rule that surely applies, if any.

    Peers are read as they were found: a repair leaves what is stored as it is.
    """
    for group, masks in zip(judge.groups, outcome.masks, strict=False):
        for place, mask in enumerate(masks):
            if not mask:
                continue
            env = environment_of(judge, state, outcome, group, place)
            for role, peer in _peers_as_found(judge, state, outcome, group, place):
                env.update(peer.as_dict(f"{role}."))
            if env["self.form"] == "discarded":
                continue
            rule = next((rule for rule in group.bound.dispositions if interpret(rule.when, env) is True), None)
            if rule is not None:
                yield group, outcome.used[group.index][place][0], rule


def raise_flags(judge: Judge, state: Resolved, best: Outcome | None, usable: int) -> tuple[str, ...]:
    """Flags of the decision: raised unless their condition is surely true, of segments as they were found."""
    raised = []
    found = ((judge.groups[place].bound, index) for place, index in sorted(_read_as_found(judge, state, best)))
    read = [(group, state.pieces[group.id][index]) for group, index in found]
    for flag in judge.bound.flags:
        if flag.over == "request":
            env = {**state.environment(), "length": usable}
            if interpret(flag.unless["*"], env) is not True:
                raised.append(flag.id)
        elif any(
            interpret(flag.unless[group.object], piece.as_dict("self.")) is not True
            for group, piece in read
            if piece.form == group.home and group.constants.get("has_bytes")
        ):
            raised.append(flag.id)
    return tuple(raised)


def _read_as_found(judge: Judge, state: Resolved, best: Outcome | None) -> set[tuple[int, int]]:
    """Group and piece of what the answer reads as it was found, be it to copy it; not what its plan makes anew."""
    if best is None:
        return set()
    anew = {(group.index, index) for group, index, option, _ in best.steps if not option.bound.own_bytes}
    return {
        (group.index, index)
        for group in judge.groups
        if group.mandatory
        for place, (index, *_) in enumerate(best.used[group.index])
        if index >= 0 and (group.index, index) not in anew
        if _needed(judge, state, best, group, place)
    }


def _needed(judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int) -> bool:
    """Whether the piece may be read at all at the outcome's length."""
    if group.idle is None:
        return True
    needed = group.bound.needed
    _, _, a, b, _ = outcome.used[group.index][place]
    env: dict[str, Value] = {"length": outcome.length, "share.first": a, "share.to": b}
    if not reads(needed) <= set(env):
        env = environment_of(judge, state, outcome, group, place)
    return interpret(needed, env) is not False


def environment_of(
    judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int
) -> dict[str, Value]:
    """The facts as they were when the piece was first judged: its own before repair, its peers' after theirs."""
    index, _, a, b, _ = outcome.used[group.index][place]
    piece = _as_found(state, group, index)
    first, to = group.span(outcome.length)
    flat = judge.peers_of(group, outcome, a, b, first, to)
    peers = {role: (flat[2 * i], flat[2 * i + 1]) for i, role in enumerate(group.roles)}
    return environment(group, state, piece, outcome.length, (a, b), peers)


def _peers_as_found(
    judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int
) -> Iterator[tuple[str, Any]]:
    _, _, a, b, _ = outcome.used[group.index][place]
    first, to = group.span(outcome.length)
    places = peer_places(group, outcome.used, max(a, first), min(b, to))
    for role, (peer, at) in zip(group.roles, places, strict=True):
        found = judge.nobody if at < 0 else _as_found(state, judge.groups[peer], outcome.used[peer][at][0])
        yield role, found


def _as_found(state: Resolved, group: CompiledGroup, index: int) -> Any:
    """The piece before any repair; the record of nothing where none is held."""
    return state.pieces[group.id][index] if index >= 0 else group.empty(state.request, state.matched)


def _reason(rule: str, check: BoundCheck, env: Mapping[str, Value]) -> Reason:
    conjunct, values = first_failing(check.require, env)
    return Reason(rule, check.layer, conjunct, values, check.because, str(check.where))


def first_failing(require: Node, env: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    """The first part of a condition that does not surely hold, as text, and the facts that it read."""
    part = next((one for one in conjuncts(require) if interpret(one, env) is not True), require)
    return text(part), {path: env.get(path) for path in sorted(reads(part))}
