"""What can be reported in a recovery, and how the engine's own counts change by what follows.

Sources: article sections 4.3 and 6.3, and the life of a hit: repairs write private copies and are judged on measured
bytes; a repair runs only while something fails, and never one whose level is barred for its segment; one that failed
has its level barred, for at least that segment; no decision brings a barred level back, and a decision anew may find
any number of checks failing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.process import MEASURES, OF_A_REPAIR
from hitproof.verification.z3_facts import Z3Fact

__all__ = ["Measured", "follows", "reported"]


@dataclass(frozen=True)
class Measured:
    """The engine's counts at one moment."""

    failing: Any
    levels: Any
    recomputable: Any

    @classmethod
    def fresh(cls, ctx: z3.Context, prefix: str) -> Measured:
        """Counts of which nothing is known."""
        failing, levels = (z3.Int(f"{prefix}{name}", ctx=ctx) for name in ("failing", "levels"))
        return cls(failing, levels, z3.Bool(f"{prefix}recomputable", ctx=ctx))

    def fact(self, name: str) -> Z3Fact:
        """One of them as a fact; the engine always knows its own counts."""
        value = getattr(self, name)
        return Z3Fact(value, z3.BoolVal(True, ctx=value.ctx))

    def domain(self) -> list[Any]:
        """Counts are not negative, and far from the end of their range."""
        return [
            bound
            for name in ("failing", "levels")
            for value, fact in [(getattr(self, name), MEASURES[name])]
            for bound in (value >= int(fact.lo or 0), value <= int(fact.hi or 0))
        ]


def reported(report: str, before: Measured, now: Measured) -> list[Any]:
    """When a report can come, and the counts at that moment: those of the copy where a repair is done."""
    same = [now.levels == before.levels, now.recomputable == before.recomputable]
    if report != "done":
        same.append(now.failing == before.failing)
    if report in OF_A_REPAIR:
        return [*same, before.failing >= 1, before.levels >= 1]
    return [*same, before.failing == 0] if report in ("ready", "nothing") else same


def follows(then: str, bars: bool, now: Measured, after: Measured) -> list[Any]:
    """The counts once a step's consequence has been carried out."""
    levels = after.levels <= now.levels - 1 if bars else after.levels == now.levels
    kept = [] if then == "decide" else [after.failing == now.failing]
    return [levels, after.recomputable == now.recomputable, *kept]
