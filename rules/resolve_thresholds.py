"""Thresholds on rates: the counts, labels and values that they name, found in the rulebook."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.rules.places import Places
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.errors import ReferenceNameError, SchemaError
from hitproof.spec.metrics import COUNTERS, label_values
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.rulefile import RuleFile, SeriesDecl, ThresholdDecl
from hitproof.spec.thresholds import Series, Span, Threshold
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_thresholds"]


def resolve_thresholds(
    parts: list[tuple[Tree, RuleFile]], vocabulary: Vocabulary, rulebook: Rulebook
) -> dict[str, Threshold]:
    """The thresholds that a rulebook declares, in file order.

    Args:
        rulebook: Everything else that is declared; its names are the values that labels can have.

    Raises:
        DuplicateError: An id stands twice.
        ReferenceNameError: A metric, a label or a value does not exist.
        SchemaError: A window is not given once, or parts that overlap would be added up.
    """
    values = label_values(rulebook)
    found: dict[str, Threshold] = {}
    for tree, part in parts:
        at = Places(tree)
        for i, declared in enumerate(part.thresholds):
            here = at.under("thresholds", i)
            vocabulary.claim("threshold", declared.id, here("id"))
            found[declared.id] = _threshold(declared, values, here)
    return found


def _threshold(declared: ThresholdDecl, values: Mapping[str, Mapping[str, tuple[str, ...]]], at: Places) -> Threshold:
    return Threshold(
        id=declared.id,
        of=_series(declared.of, values, at.under("of"), f"thresholds/{declared.id}"),
        over=_series(declared.over, values, at.under("over"), f"thresholds/{declared.id}"),
        above=declared.above,
        span=_span(declared, at),
        at_least=declared.at_least,
        severity=declared.severity,
        because=declared.because,
        source=declared.source,
        where=at("id"),
    )


def _series(declared: SeriesDecl, values: Mapping[str, Mapping[str, tuple[str, ...]]], at: Places, rule: str) -> Series:
    metric = declared.metric
    if metric not in COUNTERS:
        raise ReferenceNameError(
            f"'{metric}' is not counted", where=at("metric"), rule=rule, got=metric, hint=suggest(metric, COUNTERS)
        )
    where: dict[str, tuple[str, ...]] = {}
    for label, given in declared.where.items():
        if label not in COUNTERS[metric].labels:
            raise ReferenceNameError(
                f"'{metric}' has no label '{label}'",
                where=at("where", label),
                rule=rule,
                got=label,
                hint=suggest(label, COUNTERS[metric].labels),
            )
        listed = [given] if isinstance(given, str) else given
        for i, value in enumerate(listed):
            if value not in values[metric][label]:
                raise ReferenceNameError(
                    f"'{value}' is no {label} of '{metric}'",
                    where=at("where", label) if isinstance(given, str) else at("where", label, i),
                    rule=rule,
                    got=value,
                    hint=suggest(value, values[metric][label]),
                )
        where[label] = tuple(dict.fromkeys(listed))
    if not COUNTERS[metric].apart:
        for label in COUNTERS[metric].labels:
            if len(where.get(label, ())) != 1:
                raise SchemaError(
                    f"the parts of '{metric}' overlap, so one of them must be named",
                    where=at("where", label),
                    rule=rule,
                    got=", ".join(where.get(label, ())) or "all of them",
                    expected=f"one {label}",
                )
    return Series(metric, where)


def _span(declared: ThresholdDecl, at: Places) -> Span:
    given = [(kind, size) for kind, size in declared.for_.model_dump().items() if size is not None]
    if len(given) != 1:
        raise SchemaError(
            "a threshold looks back over decisions or over seconds",
            where=at("for"),
            rule=f"thresholds/{declared.id}",
            got=", ".join(kind for kind, _ in given) or "neither",
            expected="one of decisions, seconds",
        )
    return Span(*given[0])
