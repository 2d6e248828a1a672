"""Rates of one machine: what a byte, a token and a launch cost there, and how each figure was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hitproof.spec.errors import SchemaError

__all__ = ["Machine", "Origin", "Rate", "RateSample", "Rates"]

Origin = Literal["measured", "scaled", "given", "stated"]
"""`measured` on the machine, `scaled` up from a smaller measurement, `given` by hand, `stated` by the rulebook."""

_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=1000)]
_Figure = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RateSample(_Model):
    """Several runs of one measurement, in the unit of its rate.

    `low` is the fastest run and `high` the slowest; `spread` is the range of the middle half over the median.
    """

    runs: Annotated[int, Field(ge=1, le=1_000_000)]
    low: _Figure
    median: _Figure
    high: _Figure
    spread: _Figure

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.median <= self.high:
            raise SchemaError(
                "the median lies outside its sample",
                got=f"{self.low}, {self.median}, {self.high}",
                expected="low, median and high, rising",
            )
        return self


class Rate(_Model):
    """One figure: its value, the unit as the vocabulary writes it, where it comes from, and how it was found."""

    value: _Figure
    unit: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    origin: Origin
    how: _Text = ""
    sample: RateSample | None = None

    @model_validator(mode="after")
    def _supported(self) -> Self:
        runs = self.origin in ("measured", "scaled")
        if runs != (self.sample is not None):
            raise SchemaError(
                f"a rate that is {self.origin} {'lacks its sample' if runs else 'has no sample'}",
                got=self.origin,
                expected="a sample where a rate is measured or scaled, and nowhere else",
            )
        if self.sample is not None and self.sample.median != self.value:
            raise SchemaError(
                f"the value of a rate that is {self.origin} is the median of its sample",
                got=self.value,
                expected=self.sample.median,
                hint="a value of your own has `origin: given` and no sample",
            )
        return self


class Machine(_Model):
    """What was measured on; None where it cannot be told.

    `load` is the load average of the last minute, taken before the first run.
    """

    system: _Text
    cpu: _Text
    cores: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(ge=1)] | None = None
    load: _Figure | None = None
    python: _Text
    numpy: _Text
    torch: _Text | None = None
    accelerator: _Text | None = None


class Rates(_Model):
    """A rates file.

    `rates` is the version of the shape. Where `model` is named, the file is for that model alone. `facts` take the
    place of the rulebook's run-time facts of the same names, `figures` are told and read by no rule.
    """

    rates: Literal[1]
    rulebook: _Text
    model: _Text | None = None
    made: Annotated[str, StringConstraints(max_length=64)]
    machine: Machine
    facts: Annotated[Mapping[_Name, Rate], Field(min_length=1, max_length=64)]
    figures: Annotated[Mapping[_Name, Rate], Field(max_length=64)] = {}
