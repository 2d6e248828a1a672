"""Generated Python for each bound group: checks, options, effects and costs as flat functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.compile_options import CompiledOption, compile_offers, compile_option
from hitproof.engine.compile_reasons import compile_dispositions, compile_unneeded
from hitproof.engine.facts import FactTypes
from hitproof.engine.generated import Function, generated, new_segment, price_body
from hitproof.engine.slopes import never_falls, never_rises
from hitproof.engine.state import FAR
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Compare, Literal, Node, Not, Ref, interpret, python_true, reads
from hitproof.spec.condition.pythongen import python_number
from hitproof.spec.price import UNKNOWN_PRICE
from hitproof.spec.rulebook import Disposition

__all__ = ["CompiledGroup", "CompiledOption", "compile_condition", "compile_group", "compile_price", "namer"]

CONTEXT = ("s", "q", "r", "k", "L", "A", "B")
"""Arguments of every generated function: segment, request, run time, kernel, length, share; then peers."""


@dataclass(frozen=True, slots=True)
class CompiledGroup:
    """A group, ready to run.

    Args:
        judge, identity: Generated functions: the mask of the checks that fail, of all or of identity alone.
        fails: Generated function: whether any check fails; it stops at the first.
        levels: Recovery levels of the options.
        offers: Generated function over a mask and the context: the options that mend a failing check and may run,
            each with its price in ticks; by level, then by id.
        state: Generated function over a segment: all its facts.
        shown: Generated function over a segment: its facts that another group's rules read; None where none does.
        empty: Generated function over the request and the tokens that match: the segment that stands for
            "nothing held", a discarded record under the request's own identity.
        idle: Generated function of a length: whether, for all that the length tells, nothing of the group is read
            there; None where something is read at every length above 0.
        unneeded: Generated function: whether surely nothing of the group is read; None where something always is.
        dispositions: The rules of disposition in order, each with a generated function: whether it surely applies.
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
    levels: frozenset[str]
    offers: Function
    state: Function
    shown: Function | None
    empty: Function
    idle: Function | None
    unneeded: Function | None
    dispositions: tuple[tuple[Function, Disposition], ...]


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
        # A role that nobody plays has facts too, and none of them is known.
        return f"p{slot}.{fact}", True

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
    judge = generated("judge", signature, _judge_body(group, name, bits, None), {})
    identity = generated("identity", signature, _judge_body(group, name, bits, "identity"), {})
    first, _ = python_number(group.raw_first, name, trusted=True)
    to, _ = python_number(group.raw_to, name, trusted=True)
    span = generated("span", "L", [f"return {first}, {to}"], {})
    joints = sorted(bound.rulebook.joint)
    owned = bound.rulebook.engine_owned
    options = tuple(
        compile_option(option, group, name, signature, bits, integrity_mask, roles, joints, types, owned)
        for option in group.options
    )
    shown = _facts_for_others(group, bound)
    return CompiledGroup(
        bound=group,
        index=index,
        id=group.id,
        mandatory=group.rules.mandatory,
        roles=roles,
        peer_index=tuple(order[group.peers[role]] for role in roles),
        judge=judge,
        fails=generated("fails", signature, _fails_body(group, name), {}),
        identity=identity,
        identity_mask=identity_mask,
        span=span,
        options=options,
        levels=frozenset(option.bound.level for option in options),
        offers=compile_offers(options, name, signature),
        state=generated("state", "s", [f"return {_tuple_of(group.facts)}"], {}),
        shown=None if shown is None else generated("shown", "s", [f"return {_tuple_of(shown)}"], {}),
        empty=generated("empty", "q, matched", _empty_body(group, types), new_segment(types)),
        idle=_idle(group.needed),
        unneeded=compile_unneeded(group, name, signature),
        dispositions=compile_dispositions(group, name, signature),
    )


def compile_condition(node: Node) -> Function:
    """A function of the request that is true where the condition surely holds; facts of other scopes are unknown."""
    text = python_true(node, _without_segments({"request": "q"}), trusted=True)
    return generated("holds", "q", [f"return bool({text})"], {})


def compile_price(node: Node) -> Function:
    """A function of request, run time and length: ticks, `UNKNOWN_PRICE` where the price is unknown."""
    value, known = python_number(node, _without_segments({"request": "q", "runtime": "r"}), trusted=True)
    return generated("price", "q, r, L", price_body(value, known, "return c"), {"unknown": UNKNOWN_PRICE})


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


def _idle(needed: Node) -> Function | None:
    whole = {"share.first": 0, "share.to": FAR}
    if not reads(needed) <= {"length", *whole}:
        return generated("idle", "L", ["return True"], {})
    grows = (
        isinstance(needed, Compare)
        and needed.op in ("<", "<=")
        and never_rises(needed.left, "length")
        and never_falls(needed.right, "length")
    )
    if (grows or not reads(needed)) and interpret(needed, {"length": 1, **whole}) is True:
        return None
    text = python_true(Not(needed), lambda path: (str(whole.get(path, "L")), False), trusted=True)
    return generated("idle", "L", [f"return {text}"], {})


def _facts_for_others(group: BoundGroup, bound: BoundRulebook) -> list[str] | None:
    """Facts of a group's segments that rules of other groups read; None where no group has it as a peer."""
    readers = [(reader, role) for reader in bound.groups for role, peer in reader.peers.items() if peer == group.id]
    paths = {
        path.partition(".") for reader, role in readers for path in _reads_of(reader) if path.startswith(f"{role}.")
    }
    return sorted({fact for _, _, fact in paths} & set(group.facts)) if readers else None


def _reads_of(group: BoundGroup) -> frozenset[str]:
    """Every path that some rule of a group reads."""
    nodes = [group.needed, *(check.require for check in group.checks)]
    for option in group.options:
        effect = option.effect
        nodes += [option.when, option.cost, *effect.sets.values(), *effect.adds.values(), *effect.resets.values()]
        nodes += effect.chooses.values()
    return frozenset(path for node in nodes for path in reads(node))


def _tuple_of(facts: Iterable[str]) -> str:
    return "(" + "".join(f"s.{fact}, " for fact in facts) + ")"


def _empty_body(group: BoundGroup, types: FactTypes) -> list[str]:
    nothing = {
        "form": "'discarded'",
        "tier": "'nowhere'",
        "bound_for": "'nowhere'",
        **dict.fromkeys(("generation", "pins", "epoch", "start", "end"), "0"),
        "marks": "frozenset()",
        "published": "False",
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
