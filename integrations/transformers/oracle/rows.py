"""What is told: a row for each fault done to each model, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["Blinded", "ModelTold", "OracleReport", "Row", "Skipped", "Validated", "WITHIN", "report_of"]

WITHIN = 1.05
"""How much dearer than the best exact plan a plan may be."""


@dataclass(frozen=True, slots=True)
class Blinded:
    """What the blind arm did.

    Args:
        error: Largest difference of a logit from cold, as a share of cold's spread; None where it raised.
        raised: What it raised; empty where it answered.
        reused: Tokens that it took from what was stored.
    """

    error: float | None
    raised: str
    reused: int


@dataclass(frozen=True, slots=True)
class Validated:
    """What the validated arm did.

    Args:
        error: Largest difference of a logit from cold, as a share of cold's spread.
        verdict: The verdict after recovery.
        level: Severest recovery level of the plan that was run: `none`, `in_place`, `intra_layer`, `full_recompute`.
        repairs: Repairs of that plan, each named once.
        logical: Tokens on which what is stored and the prompt agree, with identity.
        reused: Tokens that were reused.
        cost_us: Price of everything that was run, repairs in vain included, with the rest of the prefill.
        failed: Checks that did not hold at the logical length.
    """

    error: float
    verdict: str
    level: str
    repairs: tuple[str, ...]
    logical: int
    reused: int
    cost_us: float
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One fault done to one model in one seed.

    Args:
        model, fault, seed: What was done.
        natural: Whether a cache does this by its own design.
        inputs: Whether the layers' inputs were kept.
        observable: Whether logits must show it.
        tolerance: Error that valid reuse of this model stays below.
        blind: The arm that compares hashes alone.
        blind_caught: Whether that arm was outside of the tolerance, or raised.
        validated: The arm that asks the rules.
        validated_inside: Whether that arm was within the tolerance.
        best_us: Price of the best exact plan, found by brute force over what measuring all bytes would tell.
    """

    model: str
    fault: str
    seed: int
    natural: bool
    inputs: bool
    observable: bool
    tolerance: float
    blind: Blinded
    blind_caught: bool
    validated: Validated
    validated_inside: bool
    best_us: float

    @property
    def dearer(self) -> float:
        """Price of what was run, as a multiple of the best exact plan's."""
        return self.validated.cost_us / self.best_us


@dataclass(frozen=True, slots=True)
class Skipped:
    """A fault that a model cannot have, and why."""

    model: str
    fault: str
    why: str


@dataclass(frozen=True, slots=True)
class ModelTold:
    """One model's part.

    Args:
        model: Its name.
        tolerance: Error that valid reuse stays below, as a share of the logits' spread.
        calibrated: Largest error of the valid runs that it was taken from; `runs` is how many.
        controls: Valid requests; `reusable` are the tokens that they could reuse by construction, `reused` those that
            the validated arm did.
        false_rejections: Valid requests of which less was reused than could be.
        controls_outside: Valid requests whose logits were outside of the tolerance.
        always_recomputes: Whether nothing at all was reused in any valid request.
        seconds: Time that it took.
        rows: Faults done to it.
        skipped: Faults that it cannot have.
    """

    model: str
    tolerance: float
    calibrated: float
    runs: int
    controls: int
    reusable: int
    reused: int
    false_rejections: int
    controls_outside: int
    always_recomputes: bool
    seconds: float
    rows: tuple[Row, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class OracleReport:
    """What `hitproof oracle` answers.

    Args:
        models: Each model, without its rows.
        rows: Every fault done.
        faults: The faults that were done, in the catalogue's order, each with its sentence.
        skipped: Faults that a model cannot have.
        unobservable: Faults that no logit can show, with the reason.
        validated_outside: Rows and controls in which the validated arm was outside of the tolerance.
        blind_inside: Rows of observable faults in which the blind arm was within it.
        false_rejections: Valid controls of which less was reused than could be.
        levels: Rows by the severest recovery level of the plan that was run.
        within: Share of rows whose plan was at most 1.05 times as dear as the best exact one.
        logical, reused: Tokens that hashes claimed, and that were reused, over all rows.
    """

    models: tuple[ModelTold, ...]
    rows: tuple[Row, ...]
    faults: Mapping[str, str]
    skipped: tuple[Skipped, ...]
    unobservable: Mapping[str, str]
    validated_outside: int
    blind_inside: int
    false_rejections: int
    levels: Mapping[str, int] = field(default_factory=dict)
    within: float = 1.0
    logical: int = 0
    reused: int = 0

    @property
    def good(self) -> bool:
        """Whether the rules let nothing wrong through, and nothing valid lie."""
        return not self.validated_outside and not self.false_rejections


def report_of(
    told: Sequence[ModelTold], unobservable: Mapping[str, str], titles: Mapping[str, str] | None = None
) -> OracleReport:
    """The report on some models.

    Args:
        told: What each came to.
        unobservable: Faults that no logit can show, with the reason.
        titles: The catalogue: each fault's sentence.
    """
    rows = tuple(row for one in told for row in one.rows)
    levels = Counter(row.validated.level for row in rows)
    done = dict.fromkeys((row.fault for row in rows), "")
    known = {fault: title for fault, title in (titles or {}).items() if fault in done}
    return OracleReport(
        models=tuple(replace(one, rows=(), skipped=()) for one in told),
        rows=rows,
        faults={**known, **{fault: "" for fault in done if fault not in known}},
        skipped=tuple(one for model in told for one in model.skipped),
        unobservable={fault: why for fault, why in unobservable.items() if fault in done},
        validated_outside=_count(not row.validated_inside for row in rows) + sum(one.controls_outside for one in told),
        blind_inside=_count(row.observable and not row.blind_caught for row in rows),
        false_rejections=sum(one.false_rejections for one in told),
        levels={level: levels[level] for level in ("none", "in_place", "intra_layer", "full_recompute")},
        within=_count(row.dearer <= WITHIN for row in rows) / len(rows) if rows else 1.0,
        logical=sum(row.validated.logical for row in rows),
        reused=sum(row.validated.reused for row in rows),
    )


def _count(found: Iterable[bool]) -> int:
    return sum(found)
