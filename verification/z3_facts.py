"""Facts as Z3 constants: one sort for each type, the declared domain folded into being known."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from hitproof.spec.facts import Fact, FactType, Value
from hitproof.verification.terms import COMPARISONS, all_of

__all__ = ["EnumSorts", "FactNames", "Z3Fact", "Z3Facts", "numeral"]


@dataclass(frozen=True, slots=True)
class Z3Fact:
    """A fact: its value, which counts only where `known` holds; `known` implies the fact's domain."""

    value: z3.ExprRef
    known: z3.BoolRef


FactNames = Callable[[str], Z3Fact]
"""From a fact's path to its terms; a `Z3Facts`, or any function."""


class EnumSorts:
    """The enumeration sorts of one Z3 context: one for each enum, since a context takes a name only once."""

    def __init__(self, ctx: z3.Context) -> None:
        self.ctx = ctx
        self.true = z3.BoolVal(True, ctx=ctx)
        self._sorts: dict[FactType, tuple[z3.SortRef, dict[str, z3.ExprRef]]] = {}
        self._plain: dict[str, z3.SortRef] = {}
        self._numerals: dict[tuple[int | float, str], z3.ArithRef] = {}

    def sort(self, kind: FactType) -> z3.SortRef:
        """The sort of an enum type, made at first use."""
        return self._entry(kind)[0]

    def member(self, kind: FactType, name: str) -> z3.ExprRef:
        """The term of an enum member."""
        return self._entry(kind)[1][name]

    def _entry(self, kind: FactType) -> tuple[z3.SortRef, dict[str, z3.ExprRef]]:
        if kind not in self._sorts:
            names = [f"{kind.enum}.{member}" for member in kind.members]
            sort, terms = z3.EnumSort(str(kind.enum), names, ctx=self.ctx)
            self._sorts[kind] = sort, dict(zip(kind.members, terms, strict=True))
        return self._sorts[kind]

    def of_type(self, kind: FactType) -> z3.SortRef:
        """The sort of any fact type: identities are Int, sets of integers are arrays from Int to Bool."""
        if kind.kind == "enum":
            return self.sort(kind)
        if kind.kind not in self._plain:
            self._plain[kind.kind] = _plain_sort(kind, self.ctx)
        return self._plain[kind.kind]

    def numeral(self, value: int | float, kind: FactType) -> z3.ArithRef:
        """A number of this type as a term, made once."""
        name = (value, kind.kind)
        if name not in self._numerals:
            self._numerals[name] = numeral(value, kind, self.ctx)
        return self._numerals[name]

    def within(self, fact: Fact, value: Any) -> z3.BoolRef:
        """The value is in the fact's declared domain."""
        if fact.lo is None or fact.hi is None or not fact.type.is_number:
            return self.true
        low, high = (self.numeral(bound, fact.type) for bound in (fact.lo, fact.hi))
        return all_of((COMPARISONS[">="](value, low), COMPARISONS["<="](value, high)), self.true)


def _plain_sort(kind: FactType, ctx: z3.Context) -> z3.SortRef:
    match kind.kind:
        case "bool":
            return z3.BoolSort(ctx)
        case "real":
            return z3.RealSort(ctx)
        case "set":
            return z3.ArraySort(z3.IntSort(ctx), z3.BoolSort(ctx))
        case _:
            return z3.IntSort(ctx)


class Z3Facts:
    """Facts as fresh Z3 constants, each made once.

    Args:
        enums: The enumeration sorts; its context is used for everything.
        lookup: Declarations by path.
        prefix: Put before each constant's name, so that several states can stand beside one another.
        always_known: Paths that are never unknown; their domain goes to `assumptions` instead.
    """

    def __init__(
        self,
        enums: EnumSorts,
        lookup: Mapping[str, Fact] | Callable[[str], Fact],
        prefix: str = "",
        always_known: Container[str] | Callable[[str], bool] = (),
    ) -> None:
        self.enums, self.ctx, self.prefix = enums, enums.ctx, prefix
        self._lookup = lookup if callable(lookup) else lookup.__getitem__
        self._always_known = always_known if callable(always_known) else always_known.__contains__
        self._facts: dict[str, Z3Fact] = {}
        self._flags: dict[str, z3.BoolRef] = {}
        self._assumptions: dict[str, z3.BoolRef] = {}

    def __call__(self, path: str) -> Z3Fact:
        """The terms of a fact."""
        if path not in self._facts:
            self._facts[path] = self._make(path)
        return self._facts[path]

    @property
    def assumptions(self) -> list[z3.BoolRef]:
        """The domains of the always known facts read so far: assert them with every query."""
        return list(self._assumptions.values())

    @property
    def paths(self) -> tuple[str, ...]:
        """The facts read so far."""
        return tuple(self._facts)

    def flag(self, path: str) -> z3.BoolRef:
        """The free Boolean behind `known` of a fact, for substitution; true itself where always known."""
        self(path)
        return self._flags[path]

    def decode(self, model: z3.ModelRef, path: str) -> Value:
        """The value of a fact in a model, None where it is unknown there.

        Identities come back as integers. A set is not decoded, as it may be infinite: ask for single members.

        Raises:
            TypeError: The fact is a set.
        """
        fact, kind = self(path), self._lookup(path).type
        if not z3.is_true(model.eval(fact.known, model_completion=True)):
            return None
        value: Any = model.eval(fact.value, model_completion=True)
        match kind.kind:
            case "bool":
                return bool(z3.is_true(value))
            case "real":
                return float(value.as_fraction())
            case "enum":
                return str(value).split(".", 1)[1]
            case "set":
                raise TypeError(f"{path} is a set: ask the model for single members")
            case _:
                return int(value.as_long())

    def _make(self, path: str) -> Z3Fact:
        fact, name = self._lookup(path), self.prefix + path
        value = z3.Const(name, self.enums.of_type(fact.type))
        inside = self.enums.within(fact, value)
        if not self._always_known(path):
            self._flags[path] = z3.Bool(name + "?", ctx=self.ctx)
            return Z3Fact(value, all_of((self._flags[path], inside), self.enums.true))
        if fact.type.is_number:
            self._assumptions[path] = inside
        self._flags[path] = self.enums.true
        return Z3Fact(value, self._flags[path])


def numeral(value: int | float, kind: FactType, ctx: z3.Context) -> z3.ArithRef:
    """A number of this type as a term; reals are exact."""
    if kind.kind != "real":
        return z3.IntVal(int(value), ctx=ctx)
    exact = Fraction(value)
    return z3.RealVal(f"{exact.numerator}/{exact.denominator}", ctx=ctx)
