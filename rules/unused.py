"""Names that a rulebook declares and never uses: no error, but often a slip of the pen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hitproof.rules.places import Places
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import Position

__all__ = ["UnusedName", "unused_names"]


@dataclass(frozen=True, slots=True)
class UnusedName:
    """A declared name that nothing refers to.

    Args:
        kind: What was declared.
        name: Its name.
        where: Where it was declared.
    """

    kind: str
    name: str
    where: Position


def unused_names(source: RuleSource) -> list[UnusedName]:
    """Effects, check sets, fact sets and joint repairs that no rule of the rulebook refers to.

    Raises:
        HitproofError: A file has the wrong shape.
    """
    used = set(_used(source))
    found: list[UnusedName] = []
    for tree, part in source.parts():
        at = Places(tree)
        if part.every_object is not None:
            for name in part.every_object.effects:
                found.append(UnusedName("effect", name, at("every_object", "effects", name)))
            for name in part.every_object.check_sets:
                found.append(UnusedName("check set", name, at("every_object", "check_sets", name)))
        found += [UnusedName("fact set", name, at("fact_sets", name)) for name in part.fact_sets]
        found += [UnusedName("joint repair", one.id, at("joint", i, "id")) for i, one in enumerate(part.joint)]
    return [one for one in found if (one.kind, one.name) not in used]


def _used(source: RuleSource) -> Iterator[tuple[str, str]]:
    for _, part in source.parts():
        every = [] if part.every_object is None else part.every_object.recovery
        for option in [*every, *(option for one in part.objects.values() for option in one.recovery)]:
            yield from (("effect", name) for name in option.effects)
            yield from (("check set", name) for name in option.mends if option.mends != "all")
            if option.joint is not None:
                yield "joint repair", option.joint
    for _, repair in source.repair_parts():
        yield from (("fact set", name) for name in (*repair.keeps, *repair.clobbers))
