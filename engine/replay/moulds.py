"""Segments for a replay: one faultless prototype a group and tier, copied and cut to the span that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hitproof.engine.event import EventContext
from hitproof.engine.facts import FactTypes
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.machine import FormMachine
from hitproof.engine.tiers import DEVICE, TIER_NAMES
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Node, compile_python, reads
from hitproof.spec.errors import InternalError

__all__ = ["Mould", "moulds_of"]

_SPAN = ("start", "end", "matched")
"""Facts that the replay states; what the rulebook derives from them is worked out again for each cut."""


class Mould:
    """Makes one group's segments as the rulebook calls them healthy, on the device or demoted to a lower tier.

    What demotion does to a segment is left to the form machine; it runs once a tier.
    """

    def __init__(self, group: BoundGroup, home: Any, machine: FormMachine, context: EventContext) -> None:
        self.home = home
        self._prototypes: dict[int, Any] = {DEVICE: home}
        self._machine, self._context = machine, context
        self._shaped = _shaped_by_span(group)

    def cut(self, start: int, end: int, tier: int) -> Any:
        """A new segment over `[start, end)` tokens in a tier; `matched` is its end until somebody knows better."""
        segment = self._prototype(tier).copy()
        segment.start, segment.end, segment.matched = start, end, end
        for fact, value_of in self._shaped:
            setattr(segment, fact, value_of(segment))
        return segment

    def _prototype(self, tier: int) -> Any:
        found = self._prototypes.get(tier)
        if found is None:
            found = self._prototypes[tier] = self._demoted(TIER_NAMES[tier])
        return found

    def _demoted(self, tier: str) -> Any:
        segment = self.home.copy()
        begin = EventContext(runtime=self._context.runtime, kernel=self._context.kernel, arguments={"bound_for": tier})
        for trigger, context in (("demote_begin", begin), ("demote_end", self._context)):
            if not self._machine.fire(segment, trigger, context):
                raise InternalError(f"a healthy segment of {segment.group} refuses {trigger}")
        return segment


def moulds_of(
    bound: BoundRulebook,
    types: FactTypes,
    machine: FormMachine,
    request: Any,
    runtime: Any,
    kernels: Mapping[str, Any],
) -> dict[str, Mould]:
    """A mould for each group, as the serving process that these facts describe writes its segments."""
    moulds: dict[str, Mould] = {}
    for group in bound.groups:
        kernel = kernels[group.id]
        given = dict.fromkeys((name for name in _SPAN if name in group.facts), 0)
        home = healthy_segment(
            types,
            group,
            given,
            {"request": request, "runtime": runtime, "kernel": kernel},
            {role: moulds[peer].home for role, peer in group.peers.items()},
        )
        moulds[group.id] = Mould(group, home, machine, EventContext(runtime=runtime, kernel=kernel))
    return moulds


def _shaped_by_span(group: BoundGroup) -> list[tuple[str, Callable[[Any], Any]]]:
    """Facts whose healthy value follows from the span, in an order in which each can be worked out."""
    found: list[tuple[str, Callable[[Any], Any]]] = []
    known = {f"self.{name}" for name in _SPAN}
    waiting = {
        fact: (value if isinstance(value, tuple) else (value,), isinstance(value, tuple))
        for fact, value in group.healthy.items()
        if fact not in _SPAN and not isinstance(value, str)
    }
    while ready := [fact for fact, (nodes, _) in waiting.items() if _paths(nodes) and _paths(nodes) <= known]:
        for fact in ready:
            nodes, as_set = waiting.pop(fact)
            found.append((fact, _value(nodes, as_set=as_set)))
            known.add(f"self.{fact}")
    return found


def _paths(nodes: tuple[Node, ...]) -> frozenset[str]:
    return frozenset().union(*map(reads, nodes))


def _value(nodes: tuple[Node, ...], *, as_set: bool) -> Callable[[Any], Any]:
    functions = [compile_python(node, trusted=True) for node in nodes]
    facts = [(path, path.removeprefix("self.")) for path in _paths(nodes)]

    def value_of(segment: Any) -> Any:
        env = {path: getattr(segment, fact) for path, fact in facts}
        if not as_set:
            return functions[0](env)
        members = frozenset(function(env) for function in functions)
        return None if None in members else members

    return value_of
