"""The events of an object's form machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hitproof.rules.places import Places
from hitproof.rules.reading import Reading
from hitproof.rules.resolve_keys import filing, key_facts, refuse_published
from hitproof.spec.condition import parse_condition
from hitproof.spec.errors import DuplicateError, Position, ReferenceNameError, SchemaError
from hitproof.spec.rulebook import Transition
from hitproof.spec.rulefile import RuleFile, TransitionDecl
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node

__all__ = ["read_transitions"]

DEVICE, BELOW = "device", "demoted"


def read_transitions(reading: Reading, name: str, parts: list[tuple[Node, RuleFile]]) -> Iterator[Transition]:
    """The transitions that concern object `name`, in file order.

    Raises:
        DuplicateError: An id stands twice.
        ReferenceNameError: A form, an object or a fact does not exist.
        ConditionError: An expression is wrong.
        SchemaError: What an event does to blocks contradicts what it does to facts.
    """
    seen: set[str] = set()
    named = key_facts(parts)
    for tree, part in parts:
        for i, decl in enumerate(part.transitions):
            at = Places(tree, ("transitions", i))
            if decl.id in seen:
                raise DuplicateError(f"transition {decl.id} stands twice", where=at("id"), rule=decl.id)
            seen.add(decl.id)
            for j, wanted in enumerate(decl.objects or ()):
                if wanted not in reading.scopes.objects:
                    raise ReferenceNameError(
                        f"'{wanted}' is no object",
                        where=at("objects", j),
                        rule=decl.id,
                        got=wanted,
                        hint=suggest(wanted, reading.scopes.objects),
                    )
            if decl.objects is None or name in decl.objects:
                yield _transition(reading, name, decl, named, at)


def _transition(reading: Reading, name: str, decl: TransitionDecl, named: frozenset[str], at: Places) -> Transition:
    rule = f"{name}/{decl.id}"
    scope, facts = reading.scopes.event(name), reading.scopes.objects[name]
    refuse_published(decl, at, rule)
    if not reading.lenient:
        _check_blocks(decl, at, rule)
    when = None
    if decl.when is not None:
        when = reading.condition(decl.when, scope, at("when"), rule, known="any")
    sets = {
        fact: parse_condition(str(decl.sets[fact]), scope, expect=facts[fact].type, where=at("sets", fact), rule=rule)
        for fact in _own(reading, name, decl.sets, at("sets"), rule)
    }
    return Transition(
        id=decl.id,
        object=name,
        sources=tuple(_form(reading, name, form, at("from", j), rule) for j, form in enumerate(decl.from_)),
        target=_form(reading, name, decl.to, at("to"), rule),
        pins=decl.pins,
        owner=decl.owner,
        actor=decl.actor,
        donor=decl.donor,
        when=when,
        takes=_own(reading, name, decl.takes, at("takes"), rule),
        sets={**sets, **filing(reading, name, decl, sets, named, at("key"), rule)},
        forgets=_own(reading, name, decl.forgets, at("forgets"), rule),
        keeps_prefix=decl.keeps_prefix,
        allocates=decl.allocates,
        writes=decl.writes,
        moves=decl.moves,
        frees=decl.frees,
        key=decl.key,
        because=decl.because,
        source=decl.source,
        where=at("id"),
    )


def _check_blocks(decl: TransitionDecl, at: Places, rule: str) -> None:
    """What is said of blocks must agree with what is said of facts, else a pool and its segments drift apart."""
    wanted = "address" in decl.takes
    if decl.allocates + decl.moves != wanted:
        raise SchemaError(
            "an event that takes an address allocates or moves, and no other does",
            where=at("takes") if wanted else at("id"),
            rule=rule,
            got=[flag for flag in ("allocates", "moves") if getattr(decl, flag)] or "neither",
            expected="one of allocates and moves" if wanted else "neither",
        )
    # What lies in slower storage alone holds no block of the device.
    leaves = decl.sets.get("tier", DEVICE) != DEVICE and decl.from_ != [BELOW]
    if decl.frees != leaves:
        raise SchemaError(
            "an event that takes a segment off the device frees its block, and no other does",
            where=at("sets", "tier") if leaves else at("id"),
            rule=rule,
            got=f"frees: {str(decl.frees).lower()}",
            expected=f"frees: {str(leaves).lower()}",
        )


def _own(reading: Reading, name: str, names: Iterable[str], where: Position, rule: str) -> tuple[str, ...]:
    """Those of the facts that the object has; a fact of other objects alone takes no part."""
    objects = reading.scopes.objects
    anywhere = {fact for facts in objects.values() for fact in facts}
    found = tuple(names)
    for fact in found:
        if fact not in anywhere:
            raise ReferenceNameError(
                f"'{fact}' is no fact of any object",
                where=where,
                rule=rule,
                got=fact,
                hint=suggest(fact, anywhere),
            )
    return tuple(fact for fact in found if fact in objects[name])


def _form(reading: Reading, name: str, form: str, where: Position, rule: str) -> str:
    if form == "home":
        return reading.scopes.homes[name]
    forms = reading.vocabulary.enums["form"]
    if form not in forms:
        raise ReferenceNameError(
            f"'{form}' is no form",
            where=where,
            rule=rule,
            got=form,
            hint=suggest(form, [*forms, "home"]),
        )
    return form
