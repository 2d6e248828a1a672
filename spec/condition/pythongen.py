"""Python text for conditions: flat expressions that test each fact once, for the warm path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hitproof.spec.condition.intervals import check_bounds
from hitproof.spec.condition.nodes import (
    And,
    Arith,
    Compare,
    Extreme,
    Known,
    Literal,
    Member,
    Negate,
    Node,
    Not,
    Or,
    Ref,
    type_of,
)
from hitproof.spec.condition.operators import MIRRORED, OPPOSITE
from hitproof.spec.condition.traverse import refs

__all__ = ["Name", "compile_python", "python_false", "python_number", "python_true"]

Name = Callable[[str], tuple[str, bool]]
"""From a fact's path to the Python text that reads it, and whether the value may be None."""


def python_true(node: Node, name: Name, *, trusted: bool = False) -> str:
    """Python text that is truthy exactly when the condition is surely true.

    Args:
        node: A bound condition.
        name: Text and possible unknownness of each fact; the text is used several times: let it be a local.
        trusted: True where each value was admitted before (None stands for all that is not): then only
            facts that may be unknown are tested. False: type and domain are tested at each first reading.

    Raises:
        BindError: The condition is not bound.
    """
    check_bounds(node)
    return _both(_Writer(name, trusted).rail(node, True, set()))


def python_false(node: Node, name: Name, *, trusted: bool = False) -> str:
    """Python text that is truthy exactly when the condition is surely false; see `python_true`."""
    check_bounds(node)
    return _both(_Writer(name, trusted).rail(node, False, set()))


def python_number(node: Node, name: Name, *, trusted: bool = False) -> tuple[str, str]:
    """Python texts of an expression's value and of its being known; the value counts only where it is known.

    Works for every kind of expression: a condition's value is its being surely true.
    """
    check_bounds(node)
    writer = _Writer(name, trusted)
    if type_of(node).kind == "bool":
        true, false = (_both(writer.rail(node, wanted, set())) for wanted in (True, False))
        return f"bool({true})", f"({true}) or ({false})"
    return writer.value(node), _both(writer.guards(node, set()))


def compile_python(node: Node, *, trusted: bool = False) -> Callable[[Mapping[str, object]], Any]:
    """A function from values by path to True, False, a number or None, as `interpret` defines them."""
    locals_ = {ref.path: f"v{index}" for index, ref in enumerate(refs(node))}
    lines = ["def evaluate(env):", *(f"    {local} = env.get({path!r})" for path, local in locals_.items())]

    def name(path: str) -> tuple[str, bool]:
        return locals_[path], True

    if type_of(node).kind == "bool":
        lines += [
            f"    if {python_true(node, name, trusted=trusted)}: return True",
            f"    if {python_false(node, name, trusted=trusted)}: return False",
        ]
    else:
        value, known = python_number(node, name, trusted=trusted)
        lines.append(f"    if {known}: return {value}")
    lines.append("    return None")
    space: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<condition>", "exec"), space)
    function: Callable[[Mapping[str, object]], Any] = space["evaluate"]
    return function


def _both(texts: list[str]) -> str:
    return " and ".join(texts) or "True"


class _Writer:
    """Writes one rail (surely true, or surely false) as texts that must all be truthy, left to right.

    `seen` holds the facts that texts further left have proved known, so that each is tested once.
    """

    def __init__(self, name: Name, trusted: bool) -> None:
        self.name, self.trusted = name, trusted

    def rail(self, node: Node, wanted: bool, seen: set[str]) -> list[str]:
        match node:
            case Literal(value=value):
                return [] if value is wanted else ["False"]
            case Not(x=x):
                return self.rail(x, not wanted, seen)
            case And(terms=terms) | Or(terms=terms):
                every = isinstance(node, And) is wanted
                return self._every(terms, wanted, seen) if every else self._some(terms, wanted, seen)
            case Known(ref=ref):
                guards = self.guards(ref, seen if wanted else set(seen))
                return guards if wanted else [f"not ({_both(guards)})"] if guards else ["False"]
            case Ref():
                return self._flag(node, wanted, seen)
            case Compare(op=op, left=left, right=right):
                sign = op if wanted else OPPOSITE[op]
                guards = self._guards_of_equals(node, seen) if sign == "==" else self.guards(node, seen)
                return [*guards, self._compare(sign, left, right)]
            case Member(item=item, container=container):
                if isinstance(container, Ref):
                    group = self.name(container.path)[0]
                else:
                    group = "(" + "".join(f"{one.value!r}, " for one in container) + ")"
                return [
                    *self.guards(node, seen),
                    f"{self.value(item)} {'in' if wanted else 'not in'} {group}",
                ]
            case _:
                raise TypeError(f"not a condition: {node!r}")

    def guards(self, node: Node, seen: set[str]) -> list[str]:
        """Texts that make sure that every fact of the expression is known."""
        texts: list[str] = []
        for ref in refs(node):
            if ref.path not in seen:
                seen.add(ref.path)
                texts += self._guard(ref)
        return texts

    def _guards_of_equals(self, node: Compare, seen: set[str]) -> list[str]:
        """The same for an equation: unknown is None, and equal to no value, so one known side vouches for the other."""
        sides = [side for side in (node.left, node.right) if isinstance(side, Ref | Literal)]
        open_ = [side for side in sides if isinstance(side, Ref) and self._unsure(side, seen)]
        same = node.left == node.right
        if not self.trusted or len(sides) < 2 or same:
            return self.guards(node, seen)
        seen.update(side.path for side in sides if isinstance(side, Ref))
        return self._guard(open_[0]) if len(open_) == 2 else []

    def _unsure(self, ref: Ref, seen: set[str]) -> bool:
        return ref.path not in seen and self.name(ref.path)[1]

    def value(self, node: Node) -> str:
        """Text of a value, right where all its facts are known."""
        match node:
            case Literal(value=value):
                return repr(value) if isinstance(value, str | bool) or value >= 0 else f"({value!r})"
            case Ref(path=path, fact=fact):
                text = self.name(path)[0]
                return f"float({text})" if fact.type.kind == "real" and not self.trusted else text
            case Negate(x=x):
                return f"(-{self.value(x)})"
            case Arith(op=op, left=left, right=right):
                return f"({self.value(left)} {op} {self.value(right)})"
            case Extreme(op=op, args=args):
                return f"{op}({', '.join(map(self.value, args))})"
            case _:
                raise TypeError(f"not a value: {node!r}")

    def _every(self, terms: tuple[Node, ...], wanted: bool, seen: set[str]) -> list[str]:
        texts = [text for term in terms for text in self.rail(term, wanted, seen)]
        return ["False"] if "False" in texts else texts

    def _some(self, terms: tuple[Node, ...], wanted: bool, seen: set[str]) -> list[str]:
        options = [self.rail(term, wanted, set(seen)) for term in terms]
        if [] in options:
            return []
        possible = [_both(option) for option in options if option != ["False"]]
        return [f"({' or '.join(possible)})"] if possible else ["False"]

    def _flag(self, ref: Ref, wanted: bool, seen: set[str]) -> list[str]:
        text, may_be_unknown = self.name(ref.path)
        tested = ref.path in seen or (self.trusted and not may_be_unknown)
        seen.add(ref.path)
        if not self.trusted and not tested:
            return [f"{text} is {wanted}"]
        if wanted:
            return [text]
        return [f"not {text}" if tested else f"{text} is False"]

    def _guard(self, ref: Ref) -> list[str]:
        text, may_be_unknown = self.name(ref.path)
        if self.trusted:
            return [f"{text} is not None"] if may_be_unknown else []
        fact = ref.fact
        match fact.type.kind:
            case "int" | "counter":
                return [f"type({text}) is int", f"{fact.lo} <= {text} <= {fact.hi}"]
            case "real":
                return [f"type({text}) in (float, int)", f"{fact.lo} <= {text} <= {fact.hi}"]
            case "bool":
                return [f"type({text}) is bool"]
            case "enum":
                return [f"isinstance({text}, str)", f"{text} in {fact.type.members!r}"]
            case "identity":
                return [f"type({text}) in (str, int)"]
            case "set":
                return [f"type({text}) is frozenset", f"all(type(_item) is int for _item in {text})"]

    def _compare(self, sign: str, left: Node, right: Node) -> str:
        """One comparison; a bound that is a `min` or `max` is taken apart, which spares a call."""
        if isinstance(left, Extreme) and not isinstance(right, Extreme):
            left, right, sign = right, left, MIRRORED[sign]
        cheap = isinstance(left, Ref | Literal) and isinstance(right, Extreme) and right.op != "abs"
        if cheap and isinstance(right, Extreme) and sign not in ("==", "!="):
            joiner = " or " if sign.startswith("<") is (right.op == "max") else " and "
            return "(" + joiner.join(self._compare(sign, left, arg) for arg in right.args) + ")"
        return f"{self.value(left)} {sign} {self.value(right)}"
