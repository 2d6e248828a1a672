"""Generated Python for recovery options: when each may run, at which price, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.engine.generated import Function, generated, new_segment, price_body
from hitproof.spec.bound import BoundGroup, BoundOption
from hitproof.spec.condition import Node, interpret, interval, python_true
from hitproof.spec.condition.pythongen import python_number
from hitproof.spec.errors import BindError
from hitproof.spec.price import UNKNOWN_PRICE
from hitproof.spec.rulebook import LEVELS

__all__ = ["CompiledOption", "compile_offers", "compile_option"]


@dataclass(frozen=True, slots=True)
class CompiledOption:
    """A recovery option, ready to run.

    Args:
        mends: Bit mask of the checks that it mends.
        needs_true: Bit mask of the checks that must hold before (own bytes are read).
        slot: Position of its joint repair among all of the rulebook's, -1 where it is none.
        when, apply: Generated functions over the context; `apply` gives the segment after the repair, or None where a
            fact that the engine owns would leave its domain.
        peer_slots: Positions of the peers that must be ready.
    """

    bound: BoundOption
    level: int
    mends: int
    needs_true: int
    slot: int
    when: Function
    apply: Function
    peer_slots: tuple[int, ...]


def compile_option(
    option: BoundOption,
    group: BoundGroup,
    name: Any,
    signature: str,
    bits: Mapping[str, int],
    integrity_mask: int,
    roles: tuple[str, ...],
    joints: Sequence[str],
    types: FactTypes,
    owned: frozenset[str],
) -> CompiledOption:
    """Compile one option.

    Raises:
        BindError: No value meets the promise of a `chooses`.
    """
    mends = sum(bits[check] for check in option.mends)
    apply = generated("apply", signature, _apply_body(option, group, name, types, owned), new_segment(types))
    return CompiledOption(
        bound=option,
        level=LEVELS.index(option.level),
        mends=mends,
        needs_true=integrity_mask & ~mends if option.own_bytes else 0,
        slot=-1 if option.joint is None else joints.index(option.joint),
        when=generated("when", signature, [f"return {python_true(option.when, name, trusted=True)}"], {}),
        apply=apply,
        peer_slots=tuple(roles.index(role) for role in option.peers),
    )


def compile_offers(options: tuple[CompiledOption, ...], name: Any, signature: str) -> Function:
    """All options in one function, in the order in which equal prices are settled."""
    constants: dict[str, Any] = {"unknown": UNKNOWN_PRICE}
    body = ["found = []"]
    for place, option in enumerate(sorted(options, key=lambda one: (one.level, one.bound.id))):
        constants[f"o{place}"] = option
        guards = [f"m & {option.mends}", *(f"y{slot}" for slot in option.peer_slots)]
        if option.needs_true:
            guards.append(f"not m & {option.needs_true}")
        guards.append(f"({python_true(option.bound.when, name, trusted=True)})")
        price = price_body(*python_number(option.bound.cost, name, trusted=True), f"found.append((o{place}, c))")
        body += [f"if {' and '.join(guards)}:", *(f"    {line}" for line in price)]
    return generated("offers", f"m, {signature}", [*body, "return found"], constants)


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
