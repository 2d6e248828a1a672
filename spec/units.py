"""Units of measure as exponent vectors, so that tokens never meet bytes by accident."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hitproof.spec.errors import Position, UnitError

__all__ = ["BASE_UNITS", "DIMENSIONLESS", "Unit", "parse_unit"]

BASE_UNITS = ("blocks", "bytes", "layers", "tokens", "us")

_MAX_TEXT = 200
_MAX_POWER = 8
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(1)(?!\w)|([*/()]))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Unit:
    """A product of powers of base units; `exponents` is sorted and holds no zero."""

    exponents: tuple[tuple[str, int], ...] = ()

    def __mul__(self, other: Unit) -> Unit:
        return _unit([*self.exponents, *other.exponents])

    def __truediv__(self, other: Unit) -> Unit:
        return _unit([*self.exponents, *((base, -power) for base, power in other.exponents)])

    @property
    def is_time(self) -> bool:
        """True where microseconds take part: such quantities are real numbers, all others integers."""
        return any(base == "us" for base, _ in self.exponents)

    def __str__(self) -> str:
        above = [base for base, power in self.exponents for _ in range(power)]
        below = [base for base, power in self.exponents for _ in range(-power)]
        text = "*".join(above) or "1"
        if not below:
            return text
        return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


DIMENSIONLESS = Unit()


def _unit(powers: Iterable[tuple[str, int]]) -> Unit:
    total: dict[str, int] = {}
    for base, power in powers:
        total[base] = total.get(base, 0) + power
    return Unit(tuple(sorted((base, power) for base, power in total.items() if power)))


def parse_unit(text: str, *, where: Position | None = None, rule: str | None = None) -> Unit:
    """Read a unit such as `tokens`, `bytes/tokens` or `us/(tokens*layers)`.

    Args:
        text: Base units joined by `*` and `/`, brackets allowed, `1` for none.
        where: Position of the text, for the error.
        rule: Id of the rule or fact concerned.

    Raises:
        UnitError: The text is not a unit.
    """
    return _UnitReader(text, where, rule).read()


class _UnitReader:
    def __init__(self, text: str, where: Position | None, rule: str | None) -> None:
        self.text, self.where, self.rule = text, where, rule
        self.tokens: list[str] = []
        self.at = 0

    def read(self) -> Unit:
        if len(self.text) > _MAX_TEXT:
            raise self.error("the unit is too long")
        place = 0
        text = self.text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise self.error("this is not a unit")
            self.tokens.append(match.group().strip())
            place = match.end()
        unit = self.product(0)
        if self.at < len(self.tokens):
            raise self.error(f"'{self.tokens[self.at]}' stands where the unit should end")
        if any(abs(power) > _MAX_POWER for _, power in unit.exponents):
            raise self.error("the power of a base unit is too high")
        return unit

    def product(self, depth: int) -> Unit:
        unit = self.factor(depth)
        while self.at < len(self.tokens) and self.tokens[self.at] in "*/":
            operator = self.tokens[self.at]
            self.at += 1
            other = self.factor(depth)
            unit = unit * other if operator == "*" else unit / other
        return unit

    def factor(self, depth: int) -> Unit:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        self.at += 1
        if token == "(" and depth < 10:
            unit = self.product(depth + 1)
            if self.at >= len(self.tokens) or self.tokens[self.at] != ")":
                raise self.error("a bracket of the unit is not closed")
            self.at += 1
            return unit
        if token == "1":
            return DIMENSIONLESS
        if token in BASE_UNITS:
            return Unit(((token, 1),))
        raise self.error("the unit is not complete" if token is None else f"'{token}' is not a base unit")

    def error(self, message: str) -> UnitError:
        return UnitError(
            message,
            where=self.where,
            rule=self.rule,
            got=self.text,
            expected="products and quotients of " + ", ".join(BASE_UNITS),
            hint="for example us/(tokens*layers)",
        )
