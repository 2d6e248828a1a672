"""The form machine as a graph of forms: what its diagrams show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.rulebook import ObjectRules, Rulebook, Transition

__all__ = ["FormGraph", "Machinery", "START", "form_graph"]

START = "discarded"
"""The form of a segment that holds nothing: where its life begins and ends."""

Machinery = Rulebook | BoundRulebook | BoundGroup | ObjectRules
"""Whatever has a form machine to draw."""


@dataclass(frozen=True, slots=True)
class FormGraph:
    """Forms in the order of a life, and the events between them.

    Args:
        title: What the machine belongs to.
        forms: Forms that some event leaves or reaches, beginning with `START` where it is one of them.
        edges: Events by (source, target), in file order.
        note: What the diagram leaves out, a sentence or nothing.
    """

    title: str
    forms: tuple[str, ...]
    edges: dict[tuple[str, str], tuple[str, ...]]
    note: str = ""


def form_graph(rules: Machinery) -> FormGraph:
    """The graph of one object kind, or of a whole rulebook.

    Of a whole rulebook the home forms of all objects are one form, `home`. An object whose home is a form
    that others pass through (a manifest, at home where others are demoted) would blur that: it is left out,
    and named in the note.
    """
    if isinstance(rules, BoundGroup):
        rules = rules.rules
    if isinstance(rules, ObjectRules):
        edges = _edges(_of(rules.transitions, {}))
        return FormGraph(f"{rules.title} ({rules.name})", _in_order(edges), edges)
    rulebook = rules.rulebook if isinstance(rules, BoundRulebook) else rules
    passed = {
        form
        for rules in rulebook.objects.values()
        for one in rules.transitions
        for form in (*one.sources, one.target)
        if form != rules.home
    }
    drawn = [rules for rules in rulebook.objects.values() if rules.home not in passed]
    rest = [rules.name for rules in rulebook.objects.values() if rules not in drawn]
    edges = _edges(step for rules in drawn for step in _of(rules.transitions, {rules.home: "home"}))
    note = f"Not shown, at home in a form that others pass through: {', '.join(rest)}." if rest else ""
    return FormGraph(rulebook.title, _in_order(edges), edges, note)


def _of(transitions: Iterable[Transition], alias: dict[str, str]) -> Iterable[tuple[str, str, str]]:
    for one in transitions:
        for source in one.sources:
            yield alias.get(source, source), alias.get(one.target, one.target), one.id


def _edges(steps: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for source, target, event in steps:
        found.setdefault((source, target), {})[event] = None
    return {pair: tuple(events) for pair, events in found.items()}


def _in_order(edges: dict[tuple[str, str], tuple[str, ...]]) -> tuple[str, ...]:
    """Depth first from the start, then reversed on the way out: each form before those that it leads to."""
    forms = dict.fromkeys(form for pair in edges for form in pair)
    roots = ([START] if START in forms else []) + list(forms)
    seen: set[str] = set()
    finished: list[str] = []

    def visit(form: str) -> None:
        seen.add(form)
        for source, target in reversed(edges):
            if source == form and target not in seen:
                visit(target)
        finished.append(form)

    for root in roots:
        if root not in seen:
            visit(root)
    return tuple(reversed(finished))
