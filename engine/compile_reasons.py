"""Generated Python for what is told beside a decision: what is needed, dispositions, flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hitproof.engine.generated import Function, generated
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Literal, Not, python_true
from hitproof.spec.rulebook import Disposition

__all__ = ["CompiledFlag", "compile_dispositions", "compile_flags", "compile_unneeded"]

Namer = Callable[[str], tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A flag, ready to run.

    Args:
        request: Generated function over request, run time and length: whether its condition surely holds; None where
            it is asked of segments.
        segments: By group id the same over a segment, for the groups that have bytes.
    """

    id: str
    request: Function | None
    segments: Mapping[str, Function]


def compile_dispositions(group: BoundGroup, name: Namer, signature: str) -> tuple[tuple[Function, Disposition], ...]:
    """The group's rules of disposition in order, each with a function of the context: whether it surely applies."""
    return tuple(
        (generated("applies", signature, [f"return {python_true(rule.when, name, trusted=True)}"], {}), rule)
        for rule in group.dispositions
    )


def compile_unneeded(group: BoundGroup, name: Namer, signature: str) -> Function | None:
    """A function of the context: whether surely nothing of the group is read; None where something always is."""
    if isinstance(group.needed, Literal) and group.needed.value is True:
        return None
    return generated("unneeded", signature, [f"return {python_true(Not(group.needed), name, trusted=True)}"], {})


def compile_flags(bound: BoundRulebook) -> tuple[CompiledFlag, ...]:
    """The rulebook's flags in order; of other scopes than its own a condition knows nothing."""
    made = []
    for flag in bound.flags:
        if flag.over == "request":
            text = python_true(flag.unless["*"], _scopes({"request": "q", "runtime": "r"}), trusted=True)
            made.append(CompiledFlag(flag.id, generated("holds", "q, r, L", [f"return {text}"], {}), {}))
            continue
        segments = {
            group.id: generated(
                "holds",
                "s",
                [f"return {python_true(flag.unless[group.object], _scopes({'self': 's'}), trusted=True)}"],
                {},
            )
            for group in bound.groups
            if group.constants.get("has_bytes")
        }
        made.append(CompiledFlag(flag.id, None, segments))
    return tuple(made)


def _scopes(held: Mapping[str, str]) -> Namer:
    def name(path: str) -> tuple[str, bool]:
        scope, _, fact = path.partition(".")
        if path == "length":
            return ("L", False) if "request" in held else ("None", True)
        return (f"{held[scope]}.{fact}" if scope in held else "None"), True

    return name
