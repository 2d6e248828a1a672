"""The effect of a recovery option: its own assignments, shared ones, and what its repair keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hitproof.rules.places import Places
from hitproof.rules.reading import Reading, Subject
from hitproof.spec.condition import Node, parse_condition
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKEN_SET, TOKENS
from hitproof.spec.rulebook import Effect, Repair
from hitproof.spec.rulefile import EffectDecl, OptionDecl
from hitproof.spec.yaml_fields import suggest

__all__ = ["check_against_repair", "read_effect"]

NEVER_SET = ("weights", "attention_config", "adapter", "media", "media_from", "salt", "matched", "recorded")


def read_effect(
    reading: Reading,
    subject: Subject,
    decl: OptionDecl,
    repair: Repair,
    mends: tuple[str, ...],
    at: Places,
    rule: str,
    *,
    inherited: bool,
) -> Effect:
    """The whole effect of an option; of a shared or inherited one, what concerns facts that the object has.

    Raises:
        SchemaError: A repair would set identity, a fingerprint, or a fact that it does not establish, or
            would add a boundary to what is no set.
        ReferenceNameError: A fact is not the object's.
    """
    facts = reading.scopes.objects[subject.name]
    found: dict[str, dict[str, Node]] = {"sets": {}, "adds": {}, "resets": {}, "chooses": {}}
    renews = decl.renews
    for effect, place, is_shared in _layers(reading, decl, at, rule):
        renews = renews or effect.renews
        for key, target in found.items():
            values: Mapping[str, object] = getattr(effect, key)
            for fact, text in values.items():
                if fact not in facts:
                    if (is_shared or inherited) and reading.has_fact(fact):
                        continue
                    raise ReferenceNameError(
                        f"'{fact}' is no fact of {subject.name}",
                        where=place(key, fact),
                        rule=rule,
                        got=fact,
                        hint=suggest(fact, facts),
                    )
                _refuse(fact, place(key, fact), rule)
                if key in ("adds", "resets") and facts[fact].type != TOKEN_SET:
                    raise SchemaError(
                        f"`{key}` changes sets alone",
                        where=place(key, fact),
                        rule=rule,
                        got=facts[fact].type,
                        expected=TOKEN_SET,
                    )
                expect = {"sets": facts[fact].type, "adds": TOKENS, "resets": TOKENS}.get(key, "bool")
                target[fact] = parse_condition(
                    str(text), subject.scope, expect=expect, where=place(key, fact), rule=rule
                )
    if renews and "self" in decl.consumes and "fingerprint_matches" in mends:
        raise SchemaError(
            "a repair that reads its own bytes cannot record a new fingerprint of them where the old one fails",
            where=at("id"),
            rule=rule,
            expected="no `renews`, or bytes whose fingerprint held before",
        )
    if not reading.lenient:
        _check_established({fact for values in found.values() for fact in values}, repair, at, rule)
    return Effect(**found, renews=renews, keeps=repair.keeps & set(facts))


def _layers(reading: Reading, decl: OptionDecl, at: Places, rule: str) -> Iterator[tuple[EffectDecl, Places, bool]]:
    for i, name in enumerate(decl.effects):
        effect, place = reading.inherited.effect(name, at("effects", i), rule)
        yield effect, place, True
    yield decl, at, False


def _refuse(fact: str, where: Position, rule: str) -> None:
    if fact in NEVER_SET:
        raise SchemaError(
            "a repair sets neither identity nor a recorded fingerprint",
            where=where,
            rule=rule,
            got=fact,
            expected="other facts, or `renews: true` for newly made bytes",
        )


def _check_established(changed: set[str], repair: Repair, at: Places, rule: str) -> None:
    """An option changes only what its repair says that it writes."""
    strange = sorted(changed - repair.clobbers - set(repair.establishes))
    if strange:
        raise SchemaError(
            f"the repair '{repair.id}' does not establish '{strange[0]}'",
            where=at("id"),
            rule=rule,
            got=strange[0],
            expected="a fact that the repair's declaration establishes or clobbers",
        )


def check_against_repair(
    decl: OptionDecl, repair: Repair, name: str, peers: Mapping[str, tuple[str, ...]], at: Places, rule: str
) -> None:
    """An option consumes what its repair's declaration consumes, and the repair can make this object.

    Raises:
        SchemaError: It names less, more or something else.
    """

    def same(source: str, declared: str) -> bool:
        return source == declared or declared in peers.get(source, ())

    def fits(alternative: tuple[str, ...]) -> bool:
        return len(alternative) == len(decl.consumes) and all(
            any(same(source, declared) for source in decl.consumes) for declared in alternative
        )

    if not any(map(fits, repair.consumes)):
        raise SchemaError(
            f"the option does not consume what the repair '{repair.id}' needs",
            where=at("consumes"),
            rule=rule,
            got=decl.consumes,
            expected=" or ".join("[" + ", ".join(one) + "]" for one in repair.consumes),
        )
    if decl.level != "full_recompute" and not {"self", name} & set(repair.produces):
        raise SchemaError(
            f"the repair '{repair.id}' does not produce {name}",
            where=at("repair"),
            rule=rule,
            got=repair.id,
            expected=", ".join(repair.produces),
        )
