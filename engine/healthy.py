"""Faultless segments: the values that the rulebook calls healthy, for scenarios and tests to break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import interpret, reads
from hitproof.spec.facts import Value, admit

__all__ = ["healthy_segment"]


def healthy_segment(
    types: FactTypes,
    group: BoundGroup,
    given: Mapping[str, object],
    context: Mapping[str, Any],
    peers: Mapping[str, Any],
    only: Iterable[str] | None = None,
) -> Any:
    """A segment whose facts are healthy, but for those that are given.

    Args:
        types: Carriers of the rulebook.
        group: The segment's group.
        given: Facts that are stated; `None` makes one unknown.
        context: Carriers by scope: request, runtime, kernel.
        peers: Peer segment by role; facts read from a missing peer are unknown.
        only: Facts to work out; all where left out. Others are unknown unless they are given, or one of these needs
            them.

    Raises:
        AttributeError: A given name is no fact of the group's object.
    """
    strange = sorted(set(given) - set(group.facts))
    if strange:
        raise AttributeError(strange[0])
    values: dict[str, Value] = {name: admit(group.facts[name], value) for name, value in given.items()}
    pending: set[str] = set()

    def value_of(fact: str) -> Value:
        if fact in values or fact in pending:
            return values.get(fact)
        pending.add(fact)
        healthy = group.healthy.get(fact)
        if healthy is None or isinstance(healthy, str):
            values[fact] = healthy
        elif isinstance(healthy, tuple):
            members = [interpret(node, environment(reads(node))) for node in healthy]
            values[fact] = None if None in members else frozenset(members)
        else:
            values[fact] = admit(group.facts[fact], interpret(healthy, environment(reads(healthy))))
        pending.discard(fact)
        return values[fact]

    def environment(paths: frozenset[str]) -> dict[str, Value]:
        env: dict[str, Value] = {}
        for path in paths:
            scope, _, name = path.partition(".")
            if scope == "self":
                env[path] = value_of(name)
            elif scope in context:
                env[path] = getattr(context[scope], name)
            elif scope in peers:
                env[path] = getattr(peers[scope], name)
        return env

    for fact in group.facts if only is None else only:
        value_of(fact)
    return types.segment_of(group.id, values)
