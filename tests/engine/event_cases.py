"""Segments and contexts of every kind that a transition distinguishes, from seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hitproof.engine.event import EventContext
from hitproof.engine.facts import FactTypes
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Fact

PROFILES = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
MISFITS = (-1, 2**63, True, 1.5, "elsewhere", [1, "2"], object())


@cache
def bound_to(profile: str) -> BoundRulebook:
    """The shipped rulebook bound to a shipped profile."""
    return bind_rulebook(load_rulebook("mixed_attention"), load_profile(profile))


@cache
def types_of(profile: str) -> FactTypes:
    """The carriers of that rulebook."""
    return FactTypes(bound_to(profile).rulebook)


@dataclass(frozen=True)
class Case:
    """A segment and what its event reads; `fresh` gives a copy that may be changed."""

    segment: Any
    context: EventContext

    def fresh(self) -> Any:
        """A copy of the segment."""
        return self.segment.copy()


def cases(
    bound: BoundRulebook, types: FactTypes, group: BoundGroup, form: str, *, seed: int, count: int
) -> Iterator[Case]:
    """Seeded cases of one group in one form; facts take few values, so that guards hold and fail."""
    random = Random(f"{group.id} {form} {seed}")
    other = next((one for one in bound.groups if one.object != group.object), group)
    for _ in range(count):
        donor = segment_of(
            types,
            random.choice([group, group, group, other]),
            random,
            random.choice([form, group.home]),
            bound,
        )
        segment = segment_of(types, group, random, form, bound)
        runtime = types.make("runtime", {name: _value(fact, random) for name, fact in bound.rulebook.runtime.items()})
        kernel = types.make("kernel", {name: _value(fact, random) for name, fact in bound.rulebook.kernel.items()})
        arguments = {
            name: random.choice(MISFITS) if random.random() < 0.05 else _value(fact, random)
            for name, fact in group.facts.items()
            if random.random() < 0.9
        }
        arguments |= {"marks": random.choice([[1, 2], (3,), {4}, frozenset({5}), [[]], None])}
        given = random.choice([None, donor, donor, donor, segment])
        yield Case(segment, EventContext(runtime, kernel, arguments, given, random.random() < 0.8))


def segment_of(types: FactTypes, group: BoundGroup, random: Random, form: str, bound: BoundRulebook) -> Any:
    """A segment of a group in a form; what the engine owns is known, the rest is known most of the time."""
    owned = bound.rulebook.engine_owned
    facts = {name: _value(fact, random, known=name in owned) for name, fact in group.facts.items()}
    facts |= {"form": form, "pins": random.choice([0, 0, 0, 1, 2])}
    return types.segment_of(group.id, facts)


def _value(fact: Fact, random: Random, *, known: bool = False) -> object:
    if not known and random.random() < 0.06:
        return None
    match fact.type.kind:
        case "bool":
            return random.random() < 0.5
        case "enum":
            return random.choice(fact.type.members)
        case "identity":
            return random.choice(["a", "b", 7])
        case "set":
            return frozenset(random.sample(range(6), random.randrange(4)))
        case "real":
            return random.choice([0.0, 0.5, 2])
        case _:
            return fact.hi if random.random() < 0.04 else random.randrange(5)
