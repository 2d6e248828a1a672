"""Why a hit was refused: failing checks with their first false conjunct, dispositions and flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hitproof.engine.compile import CompiledGroup
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundCheck
from hitproof.spec.condition import conjuncts, interpret, reads, text
from hitproof.spec.decision import Reason
from hitproof.spec.facts import Value

if TYPE_CHECKING:
    from hitproof.engine.outcome import Judge, Outcome

__all__ = ["dispose", "environment", "explain_failures", "raise_flags"]


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
            env = _environment_of(judge, state, first, group, place)
            for bit, check in enumerate(group.bound.checks):
                rule = f"{group.bound.id}/{check.id}"
                if mask & (1 << bit) and rule not in failed:
                    failed[rule] = _reason(rule, check, env)
    return tuple(failed), tuple(failed.values())


def dispose(judge: Judge, state: Resolved, first: Outcome | None) -> dict[str, str]:
    """What becomes of each group's entry; the first disposition rule that surely applies decides."""
    result: dict[str, str] = {}
    if first is None:
        return result
    for group, masks in zip(judge.groups, first.masks, strict=False):
        if any(masks) and group.bound.rules.mandatory:
            result[group.bound.id] = "keep"
        for place, mask in enumerate(masks):
            if not mask:
                continue
            env = _environment_of(judge, state, first, group, place)
            if env["self.form"] == "discarded":
                continue
            rule = next((rule for rule in group.bound.dispositions if interpret(rule.when, env) is True), None)
            if rule is not None and rule.then != "keep":
                result[group.bound.id] = rule.then
    return result


def raise_flags(judge: Judge, state: Resolved, best: Outcome | None, usable: int) -> tuple[str, ...]:
    """Flags of the decision: raised unless their condition is surely true."""
    raised = []
    for flag in judge.bound.flags:
        if flag.over == "request":
            env = {**state.environment(), "length": usable}
            if interpret(flag.unless["*"], env) is not True:
                raised.append(flag.id)
        elif best is not None and any(
            interpret(flag.unless[group.bound.object], piece.as_dict("self.")) is not True
            for group, used in zip(judge.groups, best.used, strict=True)
            if group.bound.constants.get("has_bytes")
            for index, piece, *_ in used
            if index >= 0 and piece.form == group.bound.home
        ):
            raised.append(flag.id)
    return tuple(raised)


def _environment_of(
    judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int
) -> dict[str, Value]:
    """The facts as they were when the piece was first judged: its own before repair, its peers' after theirs."""
    index, after, a, b, _ = outcome.used[group.index][place]
    pieces = state.pieces.get(group.bound.id, ())
    piece = pieces[index] if index >= 0 else after
    first, to = group.span(outcome.length)
    flat = judge.peers_of(group, outcome, a, b, first, to)
    peers = {role: (flat[2 * i], flat[2 * i + 1]) for i, role in enumerate(group.roles)}
    return environment(group, state, piece, outcome.length, (a, b), peers)


def _reason(rule: str, check: BoundCheck, env: Mapping[str, Value]) -> Reason:
    part = next((c for c in conjuncts(check.require) if interpret(c, env) is not True), check.require)
    values = {path: env.get(path) for path in sorted(reads(part))}
    return Reason(rule, check.layer, text(part), values, check.because, str(check.where))
