"""What a key says of the segment that is found by it, and what a look-up by an equal key says of two prompts.

Sources: article section 4.2 (metadata takes part in matching together with the hash); public bugs in which a key was
poorer than the identity that it stood for, or outlived what it named: sgl-project/sglang#26747,
vllm-project/vllm#51640, ovg-project/kvcached#362. A key is a digest of tagged fields: `keys_tell` takes equal digests
for equal fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundKey
from hitproof.verification.axioms.truth import IDENTITY
from hitproof.verification.encode import Z3Fact, encode_number
from hitproof.verification.model import GroupModel

__all__ = ["Named", "names_what_is_held", "same_key"]

FILED = ("home", "moving", "demoted")
"""Forms in which a segment can be found; before them nothing is committed, after them nothing is left."""

SPAN = ("start", "end")
BEGINNINGS = ("media_from",)


@dataclass(frozen=True)
class Named:
    """What the key names under which a segment is filed: ghost values that no event changes but a new filing."""

    values: Mapping[str, Any]

    @classmethod
    def fresh(cls, model: GroupModel, tag: str) -> Named:
        """A key of which nothing is known."""
        return cls({fact: z3.Int(f"{tag}named.{fact}", ctx=model.world.ctx) for fact in named_facts(model)})

    @classmethod
    def of(cls, model: GroupModel, own: Any) -> Named:
        """The key of a segment as it is in this state."""
        return cls({fact: own(fact).value for fact in named_facts(model)})


def named_facts(model: GroupModel) -> list[str]:
    """The span, the identity that every query asks for, and what the rulebook's keys hold beside."""
    keys = model.group.keys
    wanted = {*SPAN, *BEGINNINGS, *IDENTITY, *(fact for key in keys for fact in (*key.fields, *key.begins.values()))}
    return sorted(wanted & set(model.group.facts))


def names_what_is_held(model: GroupModel, own: Any, named: Named) -> list[tuple[str, Any]]:
    """The invariant, in labelled clauses: what is found by a key is what the key names, whole and never written again.

    Args:
        model: The group.
        own: Source of the segment's facts, before or after a change.
        named: What the key names.
    """
    form = model.group.facts["form"].type
    forms = [model.group.home if name == "home" else name for name in FILED]
    there = z3.Or([own("form").value == model.world.enums.member(form, name) for name in forms])
    sealed = own("sealed")
    parts = [("form", there), ("sealed", z3.And(sealed.known, sealed.value))]
    for fact, value in named.values.items():
        parts.append((fact, z3.And(own(fact).known, own(fact).value == value)))
    return [(label, z3.Implies(own("published").value, part)) for label, part in parts]


def same_key(
    key: BoundKey,
    ctx: z3.Context,
    end: Any,
    one: Callable[[str], Z3Fact],
    other: Callable[[str], Z3Fact],
    agree: Callable[[Any], Any],
) -> list[Any]:
    """Two keys for a segment that ends at `end` are the same: both exist, name equal tokens and hold equal fields.

    Args:
        key: What the keys are made of.
        end: Where the segment ends, in tokens.
        one, other: A field's, or a beginning's, value on each side; a key with an unknown field does not exist.
        agree: Whether the two sides' leading tokens are the same up to a number of tokens.
    """
    tokens, _ = encode_number(key.tokens, lambda _: Z3Fact(end, z3.BoolVal(True, ctx=ctx)), ctx=ctx)
    parts = [agree(tokens)]
    for field in key.fields:
        same = _same(one(field), other(field))
        if field in key.begins:
            first, second = one(key.begins[field]), other(key.begins[field])
            here, there = first.value < tokens, second.value < tokens
            same = z3.And(
                first.known, second.known, here == there, z3.Implies(here, z3.And(same, first.value == second.value))
            )
        parts.append(same)
    return parts


def _same(one: Z3Fact, other: Z3Fact) -> Any:
    return z3.And(one.known, other.known, one.value == other.value)
