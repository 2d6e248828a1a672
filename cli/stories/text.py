"""A counterexample in lines of text: what goes wrong, and each rule concerned with the values that it read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitproof.spec.proof import Counterexample
from hitproof.spec.seen import ConjunctSeen, FactValue, RuleSeen

__all__ = ["rule_lines", "shown", "story_lines"]

_MOST_RULES = 4
_MOST_CHANGES = 8
_TRUTH = {True: "holds", False: "fails", None: "unknown"}


def story_lines(found: Counterexample) -> list[str]:
    """What goes wrong and where, the rules concerned, and what the engine did."""
    lines = [f"  {found.place}: {found.sentence}", f"  rule: {found.rule}"]
    for seen in found.seen[:_MOST_RULES]:
        lines += rule_lines(seen)
    left = len(found.seen) - _MOST_RULES
    if left > 0:
        lines.append(f"    and {left} more rules, which --format json tells")
    if found.replayed:
        return [*lines, "  the engine replayed it"]
    if not found.differences:
        return [*lines, "  the engine could not replay it"]
    return [
        *lines,
        "  the engine does otherwise, so this is no counterexample; one of the two readings of the rules is wrong:",
        *(f"    {difference}" for difference in found.differences),
        "  this is an error of hitproof: please report it with the rules and the scenario",
    ]


def rule_lines(seen: RuleSeen) -> list[str]:
    """A rule, the parts of its condition with their truth and what they read, and what it has changed."""
    lines = [f"    {seen.rule}, {seen.moment} ({seen.place})"]
    for part in seen.conjuncts:
        lines.append(f"      {_TRUTH[part.holds]:8}{part.text}{_values(part)}")
    changes = list(seen.changes.items())
    told = [f"{path}: {shown(before)} -> {shown(after)}" for path, (before, after) in changes[:_MOST_CHANGES]]
    more = f" and {len(changes) - len(told)} more" if len(changes) > len(told) else ""
    return [*lines, f"      changes {'; '.join(told)}{more}"] if told else lines


def shown(value: FactValue) -> str:
    """A value as a rule file would have it."""
    if isinstance(value, list):
        return f"{{{', '.join(map(str, value))}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "unknown" if value is None else str(value)


def _values(part: ConjunctSeen) -> str:
    return f"   [{_listed(part.values)}]" if part.values else ""


def _listed(values: Mapping[str, FactValue]) -> str:
    pairs: Sequence[str] = [f"{path} = {shown(value)}" for path, value in values.items()]
    return ", ".join(pairs)
