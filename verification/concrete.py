"""Formulas of the proof read on states that really were: facts are put in, and what is left is true or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from hitproof.spec.facts import Fact, FactType, Value
from hitproof.verification.z3_facts import EnumSorts, Z3Facts

__all__ = ["Formula", "Reader", "Scopes"]

Scopes = Mapping[str, Mapping[str, Value]]
"""Values by scope and path; what is not named is unknown."""

_Read = tuple[Any, str, str, FactType | None, bool]
"""A constant, the scope and path that it stands for, its type, and whether it says only that the fact is known."""


class Reader:
    """Knows which constant stands for which fact; equal identities are equal numbers, and no others.

    Args:
        enums: The enumeration sorts of the context.
    """

    def __init__(self, enums: EnumSorts) -> None:
        self._enums = enums
        self._facts: list[tuple[str, Z3Facts, Mapping[str, Fact]]] = []
        self._heard: list[int] = []
        self._constants: dict[str, tuple[str, str, FactType | None]] = {}
        self._flags: dict[str, tuple[str, str]] = {}
        self._identities: dict[str, int] = {}

    def facts(self, scope: str, facts: Z3Facts, declared: Mapping[str, Fact]) -> None:
        """Constants that were made of facts, and those that will be."""
        self._facts.append((scope, facts, declared))
        self._heard.append(0)

    def constant(self, scope: str, path: str, term: Any, kind: FactType | None = None) -> None:
        """One constant; without a type it is a whole number, or true or false."""
        self._constants[term.decl().name()] = scope, path, kind

    def formula(self, term: Any) -> Formula:
        """A formula over the constants that are known by now; others stay free."""
        for place, (scope, facts, declared) in enumerate(self._facts):
            paths = facts.paths
            for path in (path for path in paths[self._heard[place] :] if path in declared):
                self.constant(scope, path, facts(path).value, declared[path].type)
                self._flags[facts.flag(path).decl().name()] = scope, path
            self._heard[place] = len(paths)
        reads: list[_Read] = []
        for constant in _constants(term):
            name = constant.decl().name()
            if name in self._constants:
                reads.append((constant, *self._constants[name], False))
            elif name in self._flags:
                reads.append((constant, *self._flags[name], None, True))
        return Formula(self, term, reads)

    def term(self, kind: FactType | None, value: Any) -> Any:
        """A value as a term."""
        ctx = self._enums.ctx
        if isinstance(value, bool):
            return z3.BoolVal(value, ctx=ctx)
        if kind is None:
            return z3.IntVal(value, ctx=ctx)
        if kind.kind == "enum":
            return self._enums.member(kind, value)
        if kind.kind == "set":
            made = z3.K(z3.IntSort(ctx), z3.BoolVal(False, ctx=ctx))
            for member in sorted(value):
                made = z3.Store(made, z3.IntVal(member, ctx=ctx), z3.BoolVal(True, ctx=ctx))
            return made
        if isinstance(value, str):
            return z3.IntVal(self._identities.setdefault(value, len(self._identities) + 1), ctx=ctx)
        return self._enums.numeral(value, kind)


class Formula:
    """A formula, and the facts that it reads; what was worked out once for equal facts is remembered."""

    def __init__(self, reader: Reader, term: Any, reads: list[_Read]) -> None:
        self._reader, self._term, self._reads = reader, term, reads
        self._known: dict[tuple[Value, ...], bool] = {}

    def holds(self, scopes: Scopes) -> bool:
        """Whether it surely holds of these facts, whatever stays free."""
        values = tuple([scopes.get(scope, {}).get(path) for _, scope, path, _, _ in self._reads])
        known = self._known.get(values)
        if known is None:
            known = self._known[values] = self._decided(values)
        return known

    def _decided(self, values: tuple[Value, ...]) -> bool:
        pairs = []
        for (constant, _, _, kind, flag), value in zip(self._reads, values, strict=True):
            if flag:
                pairs.append((constant, self._reader.term(None, value is not None)))
            elif value is not None:
                pairs.append((constant, self._reader.term(kind, value)))
        return bool(z3.is_true(z3.simplify(z3.substitute(self._term, *pairs))))


def _constants(term: Any) -> list[Any]:
    """Every constant of a term that has no meaning of its own, once."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    left = [term]
    while left:
        one = left.pop()
        if one.get_id() in seen:
            continue
        seen.add(one.get_id())
        if z3.is_const(one) and one.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[one.get_id()] = one
        left.extend(one.children())
    return list(found.values())
