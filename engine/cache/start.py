"""Facts that a manager begins with: run time, kernels and requests, faultless unless stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value
from hitproof.spec.memory import Memory

__all__ = ["kernel_facts", "request_facts", "runtime_facts"]


def runtime_facts(engine: Engine, memory: Memory, unit: int, given: Mapping[str, Value]) -> Any:
    """Run-time facts: those given, else what the rulebook calls healthy; capacity is counted in hash units.

    A pool of the model counts for as many tokens as the group whose pool holds the fewest.
    """
    values = _healthy(engine, "runtime")
    tokens = []
    for group in engine.bound.groups:
        if group.id in memory.groups() and group.rules.pieces == "span" and "window" not in group.constants:
            shape = memory.shape(group.id)
            tokens.append(shape.blocks * shape.rows * int(group.constants.get("row_tokens", 1)))
    if tokens:
        values["capacity_blocks"] = min(tokens) // unit
    return _made(engine, "runtime", {**values, **given})


def kernel_facts(engine: Engine, given: Mapping[str, Value]) -> Any:
    """Facts of a kernel contract: each has a name of its own unless it is stated."""
    named = {name: f"{name}-0" for name in engine.bound.rulebook.kernel}
    return _made(engine, "kernel", {**named, **given})


def request_facts(engine: Engine, given: Mapping[str, Value]) -> Any:
    """Facts of a request: those given, else what the rulebook calls healthy.

    Identities are never taken for granted: one that is not given is unknown, so that the request misses. Two tenants
    that state no salt would share one otherwise.
    """
    identities = {name for name, fact in engine.bound.rulebook.request.items() if fact.type.kind == "identity"}
    usual = {name: value for name, value in _healthy(engine, "request").items() if name not in identities}
    return _made(engine, "request", {**usual, **given})


def _healthy(engine: Engine, scope: str) -> dict[str, Value]:
    prefix = f"{scope}."
    environment = engine.bound.rulebook.environment
    return {path.removeprefix(prefix): value for path, value in environment.items() if path.startswith(prefix)}


def _made(engine: Engine, scope: str, values: Mapping[str, Value]) -> Any:
    try:
        return engine.types.make(scope, values)
    except AttributeError as error:
        raise UsageError(f"there is no such fact of the {scope}", got=error) from error
