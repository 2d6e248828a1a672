"""What is counted of decisions, recoveries and transitions: one name in rules, counters, exports and dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.process import REPORTS
from hitproof.spec.rulebook import LAYERS, LEVELS, Rulebook

__all__ = [
    "COUNTERS",
    "Counted",
    "DOOR",
    "HISTOGRAMS",
    "Histogram",
    "NO_LEVEL",
    "OF_REQUEST",
    "PARTS",
    "RECOVERY_RESULTS",
    "TRANSITION_RESULTS",
    "VERDICTS",
    "label_values",
]

PARTS = ("touched", "logical", "effective", "recovered", "recomputed")
"""Of all tokens touched, those that matched, and of these what was reused clean, reused after repair, computed anew."""

VERDICTS = ("miss", "reuse", "repair", "rebuild", "recompute", "defer", "refuse")
RECOVERY_RESULTS = ("used", "recomputed", "refused", "halted")
TRANSITION_RESULTS = ("fired", "refused", "impossible")
DOOR = "door"
"""The layer of facts of the request that must be known before any rule is asked."""

OF_REQUEST = "request"
"""What stands for an object where a fact of the request is meant."""

NO_LEVEL = "none"
"""The level of a recovery in which no repair ran."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A count that only grows.

    Args:
        labels: What tells its parts apart.
        apart: Whether its parts exclude each other, so that their sum means something.
        help: What one of it is.
    """

    labels: tuple[str, ...]
    help: str
    apart: bool = True


@dataclass(frozen=True, slots=True)
class Histogram:
    """How values spread.

    Args:
        bounds: Upper bounds of its buckets, rising; one without a bound follows.
        help: What is measured, with its unit.
    """

    bounds: tuple[float, ...]
    help: str


COUNTERS: Mapping[str, Counted] = {
    "tokens": Counted(
        ("part",),
        "Tokens of served requests: touched, of these logical, of these effective, recovered and recomputed",
        apart=False,
    ),
    "requests": Counted(("verdict",), "Requests by what they ended with, after recovery where there was one"),
    "decisions": Counted(("verdict",), "Decisions by verdict; a recovery may decide more than once for a request"),
    "explained_decisions": Counted((), "Decisions that tell which checks failed; the others do not count as drift"),
    "failed_checks": Counted(("layer", "rule", "object"), "Checks that did not hold, by explained decisions"),
    "drift": Counted(("layer",), "Explained decisions in which some check of the layer did not hold", apart=False),
    "admission": Counted(("rule", "otherwise"), "Decisions whose wanted plan a rule of admission stood against"),
    "recoveries": Counted(("level", "result"), "Recoveries by the severest level of a repair that ran, and their end"),
    "recovery_steps": Counted(("step", "report"), "Steps of recoveries, by what they answered"),
    "transitions": Counted(("transition", "result"), "Events of the form machine: fired, refused, impossible"),
}
"""Every counter by its name in rules; it is exported as `hitproof_<name>_total`."""

HISTOGRAMS: Mapping[str, Histogram] = {
    "recovery_cost_us": Histogram(
        (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        "Price of the repairs of a reused plan, in microseconds",
    ),
    "usable_tokens": Histogram(
        (0, 128, 512, 2_048, 8_192, 32_768, 131_072, 524_288),
        "Tokens that a served request reuses",
    ),
}
"""Every histogram by its name; it is exported as `hitproof_<name>`."""


def label_values(rulebook: Rulebook) -> dict[str, dict[str, tuple[str, ...]]]:
    """The values that each label of each counter can have: names that rules declare, and closed lists.

    Neither tokens nor keys, addresses or tenants are among them, so the number of series is bounded by the rulebook.
    """
    objects = rulebook.objects.values()
    checks = {"resumable", "well_formed", *(check.id for one in objects for check in one.checks)}
    layers = (DOOR, *LAYERS)
    rules = rulebook.policy.admission.values()
    steps = () if rulebook.recovering is None else rulebook.recovering.steps
    return {
        "tokens": {"part": PARTS},
        "requests": {"verdict": VERDICTS},
        "decisions": {"verdict": VERDICTS},
        "explained_decisions": {},
        "failed_checks": {
            "layer": layers,
            "rule": tuple(sorted(checks.union(rulebook.door))),
            "object": (*rulebook.objects, OF_REQUEST),
        },
        "drift": {"layer": layers},
        "admission": {
            "rule": tuple(rule.id for rule in rules),
            "otherwise": tuple(dict.fromkeys(rule.otherwise for rule in rules)),
        },
        "recoveries": {"level": (NO_LEVEL, *LEVELS), "result": RECOVERY_RESULTS},
        "recovery_steps": {"step": tuple(step.id for step in steps), "report": REPORTS},
        "transitions": {
            "transition": tuple(dict.fromkeys(event.id for one in objects for event in one.transitions)),
            "result": TRANSITION_RESULTS,
        },
    }
