"""Why a hit was refused: failing checks with their first false conjunct, dispositions and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hitproof.engine.compile import CompiledGroup
from hitproof.engine.peers import peer_places
from hitproof.engine.state import Resolved
from hitproof.spec.condition import Node, conjuncts, interpret, reads, text
from hitproof.spec.decision import Reason
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import Disposition

if TYPE_CHECKING:
    from hitproof.engine.outcome import Judge, Outcome

_PEERS = 6
"""Place of the first peer behind the segment in the arguments of generated functions."""

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
        if not group.bound.rules.mandatory or not any(masks):
            continue
        seen = 0
        for place, mask in enumerate(masks):
            if not mask & ~seen:
                continue
            env = _Read(_context_of(judge, state, first, group, place), group.roles)
            for bit in range(len(group.bound.checks)):
                if mask & ~seen & (1 << bit):
                    reason = _reason(judge, group, bit, env)
                    failed[reason.rule] = reason
            seen |= mask
    return tuple(failed), tuple(failed.values())


def dispose(judge: Judge, state: Resolved, first: Outcome | None, best: Outcome | None) -> dict[str, str]:
    """What becomes of each group's entry, by the rules that decide; what the answer reads, by `best`, is kept."""
    if first is None:
        return {}
    failed = [group for group, masks in zip(judge.groups, first.masks, strict=False) if any(masks)]
    if not failed:
        return {}
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
        if not group.dispositions:
            continue
        for place, mask in enumerate(masks):
            if not mask:
                continue
            piece, *context = _context_of(judge, state, outcome, group, place)
            if piece.form == "discarded":
                continue
            for role, peer in enumerate(_peers_as_found(judge, state, outcome, group, place)):
                context[_PEERS + 2 * role] = peer
            rule = next((rule for applies, rule in group.dispositions if applies(piece, *context)), None)
            if rule is not None:
                yield group, outcome.used[group.index][place][0], rule


def raise_flags(judge: Judge, state: Resolved, best: Outcome | None, usable: int) -> tuple[str, ...]:
    """Flags of the decision: raised unless their condition is surely true, of segments as they were found."""
    raised = []
    read: list[tuple[CompiledGroup, Any]] | None = None
    for flag in judge.flags:
        if flag.request is not None:
            if not flag.request(state.request, state.runtime, usable):
                raised.append(flag.id)
            continue
        if read is None:
            places = ((judge.groups[place], index) for place, index in sorted(_read_as_found(judge, state, best)))
            read = [(group, state.pieces[group.id][index]) for group, index in places]
        if any(
            not flag.segments[group.id](piece)
            for group, piece in read
            if group.id in flag.segments and piece.form == group.bound.home
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
    if group.idle is None or group.unneeded is None:
        return True
    return not group.unneeded(*_context_of(judge, state, outcome, group, place))


def environment_of(
    judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int
) -> dict[str, Value]:
    """The facts as they were when the piece was first judged: its own before repair, its peers' after theirs."""
    piece, _, _, _, length, a, b, *flat = _context_of(judge, state, outcome, group, place)
    peers = {role: (flat[2 * i], flat[2 * i + 1]) for i, role in enumerate(group.roles)}
    return environment(group, state, piece, length, (a, b), peers)


def _context_of(judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int) -> tuple[Any, ...]:
    """The same as the arguments of generated functions."""
    index, _, a, b, _ = outcome.used[group.index][place]
    peers: tuple[Any, ...] = ()
    if group.roles:
        first, to = group.span(outcome.length)
        peers = judge.peers_of(group, outcome, a, b, first, to)
    facts = (state.request, state.runtime, state.kernels[group.id], outcome.length, a, b)
    return (_as_found(state, group, index), *facts, *peers)


def _peers_as_found(judge: Judge, state: Resolved, outcome: Outcome, group: CompiledGroup, place: int) -> Iterator[Any]:
    """A segment for each role."""
    if not group.roles:
        return
    _, _, a, b, _ = outcome.used[group.index][place]
    first, to = group.span(outcome.length)
    for peer, at in peer_places(group, outcome.used, max(a, first), min(b, to)):
        yield judge.nobody if at < 0 else _as_found(state, judge.groups[peer], outcome.used[peer][at][0])


def _as_found(state: Resolved, group: CompiledGroup, index: int) -> Any:
    """The piece before any repair; the record of nothing where none is held."""
    return state.pieces[group.id][index] if index >= 0 else group.empty(state.request, state.matched)


class _Read(Mapping[str, Value]):
    """Facts by path, read off their carriers when they are asked for."""

    def __init__(self, context: tuple[Any, ...], roles: tuple[str, ...]) -> None:
        piece, request, runtime, kernel, length, a, b, *peers = context
        self._scopes = {"self": piece, "request": request, "runtime": runtime, "kernel": kernel}
        self._plain: dict[str, Value] = {"length": length, "share.first": a, "share.to": b}
        for place, role in enumerate(roles):
            self._scopes[role], self._plain[f"{role}.ready"] = peers[2 * place], peers[2 * place + 1]

    def __getitem__(self, path: str) -> Value:
        if path in self._plain:
            return self._plain[path]
        scope, _, name = path.partition(".")
        carrier = self._scopes[scope]
        if name not in carrier.names:
            raise KeyError(path)
        value: Value = getattr(carrier, name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from self._plain
        for scope, carrier in self._scopes.items():
            yield from (f"{scope}.{name}" for name in carrier.names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _reason(judge: Judge, group: CompiledGroup, bit: int, env: Mapping[str, Value]) -> Reason:
    place = group.index, bit
    if place not in judge.explained:
        check = group.bound.checks[bit]
        judge.explained[place] = f"{group.id}/{check.id}", str(check.where), _parts(check.require)
    rule, where, parts = judge.explained[place]
    check = group.bound.checks[bit]
    conjunct, values = _first_failing(check.require, parts, env)
    return Reason(rule, check.layer, conjunct, values, check.because, where)


def first_failing(require: Node, env: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    """The first part of a condition that does not surely hold, as text, and the facts that it read."""
    return _first_failing(require, _parts(require), env)


_Part = tuple[Node, str, list[str]]


def _parts(require: Node) -> list[_Part]:
    """The parts of a condition that must all hold, each with its text and the facts that it reads."""
    return [(one, text(one), sorted(reads(one))) for one in conjuncts(require)]


def _first_failing(require: Node, parts: list[_Part], env: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    failing = next((part for part in parts if interpret(part[0], env) is not True), None)
    _, told, paths = failing or (require, text(require), sorted(reads(require)))
    return told, {path: env.get(path) for path in paths}
