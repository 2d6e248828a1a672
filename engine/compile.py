"""Generated Python for each bound group: checks, options, effects and costs as flat functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Literal, Node, Not, Ref, interpret, interval, python_true, reads
from hitproof.spec.condition.pythongen import python_number
from hitproof.spec.errors import BindError
from hitproof.spec.rulebook import LEVELS

__all__ = ["CompiledGroup", "CompiledOption", "compile_condition", "compile_group", "compile_price", "namer"]

Function = Callable[..., Any]
CONTEXT = ("s", "q", "r", "k", "L", "A", "B")
"""Arguments of every generated function: segment, request, run time, kernel, length, share; then peers."""


@dataclass(frozen=True, slots=True)
class CompiledOption:
    """A recovery option, ready to run.

    Args:
        mends: Bit mask of the checks that it mends.
        needs_true: Bit mask of the checks that must hold before (own bytes are read).
        when, apply, cost: Generated functions over the context; `apply` gives the segment after the repair, or None
            where a fact that the engine owns would leave its domain.
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
    """A group, ready to run.

    Args:
        judge, identity: Generated functions: the mask of the checks that fail, of all or of identity alone.
        fails: Generated function: whether any check fails; it stops at the first.
        choose: Generated function over a mask and the context: the cheapest option that mends a failing check
            and may run, with its price, or None; at equal price the lower level, then the lesser id.
        empty: Generated function over the request and the tokens that match: the segment that stands for
            "nothing held", a discarded record under the request's own identity.
    """

    bound: BoundGroup
    index: int
    id: str
    mandatory: bool
    roles: tuple[str, ...]
    peer_index: tuple[int, ...]
    judge: Function
    fails: Function
    identity: Function
    identity_mask: int
    span: Function
    options: tuple[CompiledOption, ...]
    choose: Function
    empty: Function


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
        _compile_option(option, group, name, signature, bits, integrity_mask, roles, types, bound.rulebook.engine_owned)
        for option in group.options
    )
    return CompiledGroup(
        bound=group,
        index=index,
        id=group.id,
        mandatory=group.rules.mandatory,
        roles=roles,
        peer_index=tuple(order[group.peers[role]] for role in roles),
        judge=judge,
        fails=_compile("fails", signature, _fails_body(group, name), {}),
        identity=identity,
        identity_mask=identity_mask,
        span=span,
        options=options,
        choose=_compile_choose(options, name, signature),
        empty=_compile("empty", "q, matched", _empty_body(group, types), _new(types)),
    )


def compile_condition(node: Node) -> Function:
    """A function of the request that is true where the condition surely holds; facts of other scopes are unknown."""
    text = python_true(node, _without_segments({"request": "q"}), trusted=True)
    return _compile("holds", "q", [f"return bool({text})"], {})


def compile_price(node: Node) -> Function:
    """A function of request, run time and length: microseconds, infinite where the price is unknown."""
    value, known = python_number(node, _without_segments({"request": "q", "runtime": "r"}), trusted=True)
    body = [f"return float({value}) if {known} else unknown"]
    return _compile("price", "q, r, L", body, {"unknown": float("inf")})


def _without_segments(held: Mapping[str, str]) -> Callable[[str], tuple[str, bool]]:
    def name(path: str) -> tuple[str, bool]:
        scope, _, fact = path.partition(".")
        if path == "length":
            return "L", False
        return f"{held[scope]}.{fact}" if scope in held else "None", True

    return name


def _judge_body(group: BoundGroup, name: Any, bits: Mapping[str, int], layer: str | None) -> list[str]:
    texts = {
        check.id: python_true(check.require, name, trusted=True)
        for check in group.checks
        if layer is None or check.layer == layer
    }
    body = _unless_needed(group, name)
    if texts:
        body.append("if " + " and ".join(f"({text})" for text in texts.values()) + ": return 0")
    body.append("m = 0")
    body += [f"if not ({text}): m |= {bits[check]}" for check, text in texts.items()]
    body.append("return m")
    return body


def _fails_body(group: BoundGroup, name: Any) -> list[str]:
    texts = [f"({python_true(check.require, name, trusted=True)})" for check in group.checks]
    return [*_unless_needed(group, name), f"return not ({' and '.join(texts) or 'True'})"]


def _unless_needed(group: BoundGroup, name: Any) -> list[str]:
    if isinstance(group.needed, Literal) and group.needed.value is True:
        return []
    return [f"if {python_true(Not(group.needed), name, trusted=True)}: return 0"]


def _compile_option(
    option: BoundOption,
    group: BoundGroup,
    name: Any,
    signature: str,
    bits: Mapping[str, int],
    integrity_mask: int,
    roles: tuple[str, ...],
    types: FactTypes,
    owned: frozenset[str],
) -> CompiledOption:
    mends = sum(bits[check] for check in option.mends)
    cost, known = python_number(option.cost, name, trusted=True)
    apply = _compile("apply", signature, _apply_body(option, group, name, types, owned), _new(types))
    return CompiledOption(
        bound=option,
        level=LEVELS.index(option.level),
        mends=mends,
        needs_true=integrity_mask & ~mends if option.own_bytes else 0,
        when=_compile("when", signature, [f"return {python_true(option.when, name, trusted=True)}"], {}),
        apply=apply,
        cost=_compile("cost", signature, [f"return max(0.0, float({cost})) if {known} else None"], {}),
        peer_slots=tuple(roles.index(role) for role in option.peers),
    )


def _compile_choose(options: tuple[CompiledOption, ...], name: Any, signature: str) -> Function:
    """All options in one function, in the order in which equal prices are settled."""
    constants: dict[str, Any] = {"unknown": float("inf")}
    body = ["best = None"]
    for place, option in enumerate(sorted(options, key=lambda one: (one.level, one.bound.id))):
        constants[f"o{place}"] = option
        guards = [f"m & {option.mends}", *(f"y{slot}" for slot in option.peer_slots)]
        if option.needs_true:
            guards.append(f"not m & {option.needs_true}")
        guards.append(f"({python_true(option.bound.when, name, trusted=True)})")
        cost, known = python_number(option.bound.cost, name, trusted=True)
        body += [
            f"if {' and '.join(guards)}:",
            f"    c = max(0.0, float({cost}))" + ("" if known == "True" else f" if {known} else unknown"),
            f"    if best is None or c < price: best, price = o{place}, c",
        ]
    body.append("return None if best is None else (best, price)")
    return _compile("choose", f"m, {signature}", body, constants)


def _empty_body(group: BoundGroup, types: FactTypes) -> list[str]:
    nothing = {
        "form": "'discarded'",
        "tier": "'nowhere'",
        "bound_for": "'nowhere'",
        **dict.fromkeys(("generation", "pins", "epoch", "start", "end"), "0"),
        "marks": "frozenset()",
        "matched": "matched",
        **_request_identity(group),
    }
    body = ["n = new(cls)", f"n.group = {group.id!r}"]
    body += [f"n.{fact} = {nothing.get(fact)}" for fact in types.segment.names]
    return [*body, "return n"]


def _request_identity(group: BoundGroup) -> dict[str, str]:
    """Facts that identity checks read and that a healthy segment takes from the request, with the text of each."""
    wanted = {path for check in group.checks if check.layer == "identity" for path in reads(check.require)}
    return {
        fact: f"q.{value.path.removeprefix('request.')}"
        for fact, value in group.healthy.items()
        if isinstance(value, Ref) and value.path.startswith("request.") and f"self.{fact}" in wanted
    }


def _new(types: FactTypes) -> dict[str, Any]:
    return {"new": object.__new__, "cls": types.segment}


def _apply_body(
    option: BoundOption, group: BoundGroup, name: Any, types: FactTypes, owned: frozenset[str]
) -> list[str]:
    effect = option.effect
    body = ["n = new(cls)", "n.group = s.group"]
    for fact in types.segment.names:
        if fact not in group.facts:
            value = "None"
        elif fact in effect.sets:
            body += _assignment(fact, effect.sets[fact], group, name, owned=fact in owned)
            value = "v"
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


def _assignment(fact: str, value: Node, group: BoundGroup, name: Any, *, owned: bool) -> list[str]:
    """The value set, as `v`: unknown outside the fact's domain; what the engine owns must stay known."""
    text, known = python_number(value, name, trusted=True)
    body = [f"v = {text}" if known == "True" else f"v = ({text}) if {known} else None"]
    lo, hi = group.facts[fact].lo, group.facts[fact].hi
    outside = [] if known == "True" else ["v is None"]
    if lo is not None and hi is not None:
        least, most = interval(value)
        if least < lo or most > hi:
            outside.append(f"not {lo!r} <= v <= {hi!r}")
    if outside:
        body.append(f"if {' or '.join(outside)}: " + ("return None" if owned else "v = None"))
    return body


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
    namespace: dict[str, Any] = {
        "__builtins__": {
            "float": float,
            "frozenset": frozenset,
            "min": min,
            "max": max,
            "abs": abs,
            "bool": bool,
            "type": type,
        }
    }
    namespace.update(constants)
    # The text comes from checked trees and declared names only, never from a user's string.
    exec(compile(source, f"<generated {name}>", "exec"), namespace)
    function: Function = namespace[name]
    return function
