"""Keys under which segments are found in each tier, and what events do to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hitproof.rules.places import Places
from hitproof.rules.reading import Reading
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.condition import Literal, Node, parse_condition, reads
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import BOOL, TOKENS
from hitproof.spec.rulebook import Key
from hitproof.spec.rulefile import KeyDecl, RuleFile, TransitionDecl
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["filing", "key_facts", "refuse_published", "resolve_keys"]

PUBLISHED = "published"
_Parts = Iterable[tuple[Tree, RuleFile]]


def resolve_keys(parts: _Parts, vocabulary: Vocabulary, scopes: Scopes) -> dict[str, Key]:
    """The keys of all tiers, by tier.

    Raises:
        DuplicateError: A tier has two.
        ReferenceNameError: A tier or a fact does not exist.
        SchemaError: A field is no identity, a beginning is no number of tokens, or no fact tells what is published.
        ConditionError, UnitError: An expression is wrong.
    """
    found: dict[str, Key] = {}
    for tree, part in parts:
        for tier, decl in part.keys.items():
            at = Places(tree, ("keys", tier))
            vocabulary.claim("key", tier, at())
            _name(tier, vocabulary.enums["tier"], "tier", at(), f"keys/{tier}")
            found[tier] = _key(tier, decl, vocabulary, scopes, at)
    return found


def key_facts(parts: _Parts) -> frozenset[str]:
    """Facts of a segment that some key is made of, beside the end of its tokens."""
    keys = [key for _, part in parts for key in part.keys.values()]
    return frozenset(name for key in keys for name in (*key.fields, *key.begins.values()))


def filing(
    reading: Reading,
    name: str,
    decl: TransitionDecl,
    sets: Mapping[str, Node],
    named: frozenset[str],
    where: Position,
    rule: str,
) -> dict[str, Node]:
    """What an event does to the fact `published`: a segment is found only where every fact of its key is known then.

    Args:
        sets: What else the event sets.
        named: Facts that keys are made of.

    Raises:
        SchemaError: No fact tells whether a segment is found by its key.
    """
    if decl.key == "keep":
        return {}
    _must_tell(reading.vocabulary, where, rule)
    wanted = sorted({"start", "end", *named} & set(reading.scopes.objects[name]))
    if decl.key == "clear" or not set(wanted).isdisjoint(decl.forgets):
        return {PUBLISHED: Literal(False, BOOL)}
    known = [path for fact in wanted for path in _sources(decl, fact, sets)]
    text = " and ".join(f"known({path})" for path in known)
    return {PUBLISHED: parse_condition(text, reading.scopes.event(name), where=where, rule=rule, allow_known="any")}


def refuse_published(decl: TransitionDecl, at: Places, rule: str) -> None:
    """Only `key` says what an event does to the key.

    Raises:
        SchemaError: The fact is set, taken or forgotten beside it.
    """
    for section in ("sets", "takes", "forgets"):
        if PUBLISHED in getattr(decl, section):
            raise SchemaError(
                "an event changes the key of a segment by `key` alone",
                where=at(section),
                rule=rule,
                got=f"{section}: {PUBLISHED}",
                expected="key: publish, clear or keep",
            )


def _sources(decl: TransitionDecl, fact: str, sets: Mapping[str, Node]) -> list[str]:
    """Paths that must be known for the fact to be known after the event."""
    if fact in sets:
        return sorted(reads(sets[fact]))
    scope = "event" if fact in decl.takes else "donor" if decl.donor else "self"
    return [f"{scope}.{fact}"]


def _key(tier: str, decl: KeyDecl, vocabulary: Vocabulary, scopes: Scopes, at: Places) -> Key:
    rule, scope = f"keys/{tier}", scopes.key()
    _must_tell(vocabulary, at(), rule)
    everywhere = {name: fact for facts in scopes.objects.values() for name, fact in facts.items()}
    fields: dict[str, Node] = {}
    for name, text in decl.fields.items():
        where = at("fields", name)
        _name(name, everywhere, "fact of any object", where, rule)
        if everywhere[name].type.kind != "identity":
            raise SchemaError(
                "a field of a key is an identity",
                where=where,
                rule=rule,
                got=f"{name}: {everywhere[name].type}",
                expected="a fact of type identity",
            )
        fields[name] = parse_condition(str(text), scope, expect=everywhere[name].type, where=where, rule=rule)
    for name, fact in decl.begins.items():
        where = at("begins", name)
        _name(name, fields, "field of this key", where, rule)
        for side in ("segment", "request"):
            _name(fact, vocabulary.facts[side], f"fact of the {side}", where, rule)
            if vocabulary.facts[side][fact].type != TOKENS:
                raise SchemaError(
                    "a field begins at a number of tokens",
                    where=where,
                    rule=rule,
                    got=f"{side}.{fact}: {vocabulary.facts[side][fact].type}",
                    expected=TOKENS,
                )
    tokens = parse_condition(str(decl.tokens), scope, expect=TOKENS, where=at("tokens"), rule=rule)
    return Key(tier, tokens, fields, dict(decl.begins), decl.because, decl.source, at())


def _name(name: str, known: Iterable[str], kind: str, where: Position, rule: str) -> None:
    if name not in set(known):
        raise ReferenceNameError(f"'{name}' is no {kind}", where=where, rule=rule, got=name, hint=suggest(name, known))


def _must_tell(vocabulary: Vocabulary, where: Position, rule: str) -> None:
    """A rulebook with keys tells of each segment whether it is filed, and the engine knows it."""
    fact = vocabulary.facts["segment"].get(PUBLISHED)
    owned = {name for name, _ in vocabulary.engine_owned}
    if fact is None or fact.type != BOOL or PUBLISHED not in owned:
        raise SchemaError(
            "nothing tells whether a segment is found by its key",
            where=where,
            rule=rule,
            expected=f"a segment fact `{PUBLISHED}` of type bool, under `engine_owned`",
        )
