"""What can be reported in a recovery, what should follow, and how the engine's own counts change by it.

Sources: article sections 4.3 and 6.3, and the life of a hit: repairs write private copies and are judged on measured
bytes; a repair runs only while something fails, and never one whose level is barred for its segment; one that failed
has its level barred, for at least that segment; no decision brings a barred level back, and a decision anew may find
any number of checks failing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import z3

from hitproof.spec.process import MEASURES, OF_A_REPAIR
from hitproof.verification.z3_facts import Z3Fact

__all__ = ["Measured", "Onward", "follows", "onward", "reported"]

LEFT, SPENT = "an attempt is left", "no attempt is left"


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


@dataclass(frozen=True)
class Onward:
    """What should follow a report in one case.

    Args:
        case: The case in words.
        when: The case as a term.
        then: What follows.
        bars: The level of the repair that ran is barred.
        quarantines: What the repair wrote is set apart.
        spent: The case is that no attempt is left.
    """

    case: str
    when: Any
    then: str
    bars: bool = False
    quarantines: bool = False
    spent: bool = False


def onward(report: str, before: Measured, now: Measured, budget: Any) -> list[Onward]:
    """The least that should follow a report: a hit is given up only where nothing else is left to try.

    Article 4.3: incremental recovery first, and full recompute where history cannot be restored. What a repair wrote
    and did not mend is set apart, and its level is not tried again; where its source was lost, nothing was written. A
    copy between tiers may fail by chance, so it is made again as long as an attempt is left, and so is a decision whose
    ground has moved.

    Args:
        budget: Some attempt is left.
    """
    true, spent = z3.BoolVal(True, ctx=now.failing.ctx), z3.Not(budget)
    ends = [
        Onward("the prompt can be computed", now.recomputable, "recompute"),
        Onward("nothing can be computed from", z3.Not(now.recomputable), "refuse"),
    ]
    given_up = [replace(one, case=f"{SPENT} and {one.case}", when=z3.And(one.when, spent), spent=True) for one in ends]
    unmended = Onward("what it wrote mends nothing", true, "decide", bars=True, quarantines=True)
    match report:
        case "done":
            fewer = now.failing < before.failing
            idle = replace(unmended, case="no fewer checks fail", when=z3.Not(fewer))
            return [Onward("fewer checks fail", fewer, "go_on"), idle]
        case "failed":
            return [unmended]
        case "source_lost":
            return [Onward("nothing was written", true, "decide", bars=True)]
        case "transfer_failed":
            return [Onward(LEFT, budget, "retry"), replace(unmended, case=SPENT, when=spent, spent=True)]
        case "moved":
            return [Onward(LEFT, budget, "decide"), *given_up]
        case "ready":
            return [Onward("nothing fails", true, "use")]
        case _:
            return ends
