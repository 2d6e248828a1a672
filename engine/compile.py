"""Generated Python for each bound group: checks, options, effects and costs as flat functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Literal, Node, Not, interpret, python_true
from hitproof.spec.condition.pythongen import python_number
from hitproof.spec.errors import BindError
from hitproof.spec.rulebook import LEVELS

__all__ = ["CompiledGroup", "CompiledOption", "compile_group", "namer"]

Function = Callable[..., Any]
CONTEXT = ("s", "q", "r", "k", "L", "A", "B")
"""Arguments of every generated function: segment, request, run time, kernel, length, share; then peers."""


@dataclass(frozen=True, slots=True)
class CompiledOption:
    """A recovery option, ready to run.

    Args:
        mends: Bit mask of the checks that it mends.
        needs_true: Bit mask of the checks that must hold before (own bytes are read).
        when, apply, cost: Generated functions over the context.
        peer_slots: Positions of the peers that must be ready.
    """

    bound: BoundOption
    level: int
    mends: int
    needs_true: int
    when: Function
    apply: Function
    cost: Function
    peer_slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledGroup:
    """A group, ready to run; `judge` gives the mask of failing checks, `identity` that of identity alone."""

    bound: BoundGroup
    index: int
    roles: tuple[str, ...]
    peer_index: tuple[int, ...]
    judge: Function
    identity: Function
    identity_mask: int
    span: Function
    options: tuple[CompiledOption, ...]


def namer(group: BoundGroup, bound: BoundRulebook, roles: tuple[str, ...]) -> Callable[[str], tuple[str, bool]]:
    """Where generated code finds a fact, and whether it may be unknown there."""
    owned, door = bound.rulebook.engine_owned, set(bound.rulebook.door)

    def name(path: str) -> tuple[str, bool]:
        scope, _, fact = path.partition(".")
        if path == "length":
            return "L", False
        if scope == "share":
            return ("A" if fact == "first" else "B"), False
        if scope in ("self", "request", "runtime", "kernel"):
            known = fact in owned if scope == "self" else scope == "request" and fact in door
            return {"self": "s", "request": "q", "runtime": "r", "kernel": "k"}[scope] + "." + fact, not known
        slot = roles.index(scope)
        if fact == "ready":
            return f"y{slot}", False
        return f"p{slot}.{fact}", fact not in owned

    return name


def compile_group(
    group: BoundGroup, index: int, order: Mapping[str, int], bound: BoundRulebook, types: FactTypes
) -> CompiledGroup:
    """Compile one group.

    Raises:
        BindError: No value meets the promise of a `chooses`.
    """
    roles = tuple(sorted(group.peers))
    name = namer(group, bound, roles)
    peers = "".join(f", p{i}, y{i}" for i in range(len(roles)))
    signature = ", ".join(CONTEXT) + peers
    bits = {check.id: 1 << i for i, check in enumerate(group.checks)}
    identity_mask = sum(bits[c.id] for c in group.checks if c.layer == "identity")
    integrity_mask = sum(bits[c.id] for c in group.checks if c.layer in ("identity", "block_integrity"))
    judge = _compile("judge", signature, _judge_body(group, name, bits, None), {})
    identity = _compile("identity", signature, _judge_body(group, name, bits, "identity"), {})
    first, _ = python_number(group.raw_first, name, trusted=True)
    to, _ = python_number(group.raw_to, name, trusted=True)
    span = _compile("span", "L", [f"return {first}, {to}"], {})
    options = tuple(
        _compile_option(option, group, name, signature, bits, integrity_mask, roles, types)
        for option in group.options
    )
    return CompiledGroup(
        bound=group,
        index=index,
        roles=roles,
        peer_index=tuple(order[group.peers[role]] for role in roles),
        judge=judge,
        identity=identity,
        identity_mask=identity_mask,
        span=span,
        options=options,
    )


def _judge_body(group: BoundGroup, name: Any, bits: Mapping[str, int], layer: str | None) -> list[str]:
    checks = [c for c in group.checks if layer is None or c.layer == layer]
    body: list[str] = []
    if group.needed != Literal(True, group.needed.type if isinstance(group.needed, Literal) else None):  # type: ignore[arg-type]
        body.append(f"if {python_true(Not(group.needed), name, trusted=True)}: return 0")
    texts = {check.id: python_true(check.require, name, trusted=True) for check in checks}
    if texts:
        body.append("if " + " and ".join(f"({text})" for text in texts.values()) + ": return 0")
    body.append("m = 0")
    body += [f"if not ({text}): m |= {bits[check]}" for check, text in texts.items()]
    body.append("return m")
    return body


def _compile_option(
    option: BoundOption,
    group: BoundGroup,
    name: Any,
    signature: str,
    bits: Mapping[str, int],
    integrity_mask: int,
    roles: tuple[str, ...],
    types: FactTypes,
) -> CompiledOption:
    mends = sum(bits[check] for check in option.mends)
    cost, known = python_number(option.cost, name, trusted=True)
    constants: dict[str, Any] = {"new": object.__new__, "cls": types.segment}
    apply = _compile("apply", signature, _apply_body(option, group, name, types), constants)
    return CompiledOption(
        bound=option,
        level=LEVELS.index(option.level),
        mends=mends,
        needs_true=integrity_mask & ~mends if option.own_bytes else 0,
        when=_compile("when", signature, [f"return {python_true(option.when, name, trusted=True)}"], {}),
        apply=apply,
        cost=_compile("cost", signature, [f"return float({cost}) if {known} else None"], {}),
        peer_slots=tuple(roles.index(role) for role in option.peers),
    )


def _apply_body(option: BoundOption, group: BoundGroup, name: Any, types: FactTypes) -> list[str]:
    effect = option.effect
    body = ["n = new(cls)", "n.group = s.group"]
    for fact in types.segment.names:
        if fact not in group.facts:
            value = "None"
        elif fact in effect.sets:
            text, known = python_number(effect.sets[fact], name, trusted=True)
            value = text if known == "True" else f"({text}) if {known} else None"
        elif fact in effect.resets:
            text, known = python_number(effect.resets[fact], name, trusted=True)
            value = f"frozenset(({text},)) if {known} else None"
        elif fact in effect.adds:
            text, known = python_number(effect.adds[fact], name, trusted=True)
            value = f"s.{fact} | {{{text}}} if s.{fact} is not None and {known} else None"
        elif fact in effect.chooses:
            value = repr(_choice(option, group, fact, effect.chooses[fact]))
        elif effect.renews and fact in ("recorded", "measured"):
            value = repr(f"renewed:{group.id}/{option.id}")
        else:
            value = f"s.{fact}" if fact in effect.keeps else "None"
        body.append(f"n.{fact} = {value}")
    return [*body, "return n"]


def _choice(option: BoundOption, group: BoundGroup, fact: str, promise: Node) -> int:
    """A value that an allocator might pick: the smallest positive multiple of a constant that keeps the promise."""
    path = f"self.{fact}"
    for candidate in (*sorted({int(v) for v in group.constants.values() if int(v) > 0}), 1, 0):
        if interpret(promise, {path: candidate}) is True:
            return candidate
    raise BindError(
        f"no value was found that keeps the promise on {fact}",
        where=option.where,
        rule=option.rule,
        expected="a promise that some constant of the group keeps",
    )


def _compile(name: str, signature: str, body: list[str], constants: dict[str, Any]) -> Function:
    source = f"def {name}({signature}):\n" + "\n".join(f"    {line}" for line in body)
    namespace: dict[str, Any] = {"__builtins__": {"float": float, "frozenset": frozenset, "min": min, "max": max, "abs": abs, "bool": bool, "type": type}}
    namespace.update(constants)
    # The text comes from checked trees and declared names only, never from a user's string.
    exec(compile(source, f"<generated {name}>", "exec"), namespace)
    function: Function = namespace[name]
    return function


