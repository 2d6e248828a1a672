"""The rules of each object: its facts and needs, and all that is declared about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from hitproof.rules.inherited import Inherited
from hitproof.rules.places import Places
from hitproof.rules.reading import Reading, Subject
from hitproof.rules.resolve_checks import IMPLICIT, read_checks, read_resumable
from hitproof.rules.resolve_healthy import read_healthy
from hitproof.rules.resolve_options import read_options
from hitproof.rules.resolve_transitions import read_transitions
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary, token_fact
from hitproof.spec.condition import Extreme, Node, Ref, parse_condition
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKENS, Fact, admit
from hitproof.spec.rulebook import PSEUDO_SOURCES, Disposition, ObjectRules, Repair
from hitproof.spec.rulefile import DispositionDecl, ObjectDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_objects"]

_Parts = list[tuple[Tree, RuleFile]]
_RESERVED = frozenset(
    {"donor", "event", "group", "kernel", "lease", "length", "needs", "other", "repair", "request", "runtime", "share"}
).union(PSEUDO_SOURCES)


def resolve_objects(
    parts: _Parts, vocabulary: Vocabulary, scopes: Scopes, repairs: Mapping[str, Repair], *, lenient: bool
) -> tuple[dict[str, ObjectRules], dict[str, tuple[Disposition, ...]]]:
    """All objects of a rulebook, in the order of the files, and the disposition rules of each.

    Raises:
        HitproofError: A name, type, unit or id is wrong; with its place.
    """
    declared: dict[str, tuple[ObjectDecl, Places]] = {}
    for tree, part in parts:
        at = Places(tree)
        for name, decl in part.objects.items():
            vocabulary.claim("object", name, at("objects", name))
            declared[name] = (decl, at.under("objects", name))
    if not declared:
        raise SchemaError("the rulebook declares no object", where=parts[0][0].where, expected="objects")
    _check_peers(declared)
    for name, (decl, at) in declared.items():
        _register(name, decl, at, vocabulary, scopes)
    inherited = Inherited(parts, vocabulary)
    checks = {check.id for check, _ in inherited.checks()}
    checks.update(IMPLICIT, (check.id for decl, _ in declared.values() for check in decl.checks))
    if not lenient:
        inherited.refuse_unknown(checks)
    roles = frozenset(role for decl, _ in declared.values() for role in decl.peers)
    reading = Reading(vocabulary, scopes, repairs, inherited, frozenset(checks), roles, lenient)
    objects = {name: _read(reading, name, decl, at, parts) for name, (decl, at) in declared.items()}
    dispositions = {name: tuple(_dispositions(reading, name, *placed)) for name, placed in declared.items()}
    return objects, dispositions


def _check_peers(declared: Mapping[str, tuple[ObjectDecl, Places]]) -> None:
    graph: dict[str, set[str]] = {}
    for name, (decl, at) in declared.items():
        for role, wanted in decl.peers.items():
            if role in _RESERVED:
                raise SchemaError(
                    f"'{role}' has a meaning of its own and is no name for a peer",
                    where=at("peers", role),
                    rule=name,
                    got=role,
                    expected="another name",
                )
            for peer in [wanted] if isinstance(wanted, str) else wanted:
                if peer not in declared:
                    raise ReferenceNameError(
                        f"peer '{role}' refers to no object",
                        where=at("peers", role),
                        rule=name,
                        got=peer,
                        hint=suggest(peer, declared),
                    )
                graph.setdefault(name, set()).add(peer)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise SchemaError(
            f"peers form a circle: {circle}",
            where=declared[error.args[1][0]][1]("peers"),
            rule=error.args[1][0],
        ) from error


def _register(name: str, decl: ObjectDecl, at: Places, vocabulary: Vocabulary, scopes: Scopes) -> None:
    if decl.form not in vocabulary.enums["form"]:
        raise ReferenceNameError(
            f"'{decl.form}' is no form",
            where=at("form"),
            rule=name,
            got=decl.form,
            hint=suggest(decl.form, vocabulary.enums["form"]),
        )
    facts: dict[str, Fact] = dict(vocabulary.facts["segment"])
    for fact, one in decl.facts.items():
        if fact in facts:
            raise DuplicateError(f"every segment has a fact '{fact}' already", where=at("facts", fact), rule=name)
        facts[fact] = vocabulary.fact(fact, one, at("facts", fact), f"{name}.{fact}")
    if "ready" in facts:
        where = at("facts", "ready")
        raise SchemaError("of a peer, `ready` says that it may be used", where=where, rule=name, got="ready")
    _check_constants(name, decl, at, vocabulary)
    peers = {role: (peer,) if isinstance(peer, str) else tuple(peer) for role, peer in decl.peers.items()}
    scopes.register(name, decl.form, facts, peers)


def _check_constants(name: str, decl: ObjectDecl, at: Places, vocabulary: Vocabulary) -> None:
    known = vocabulary.facts["group"]
    for constant, value in decl.constants.items():
        where = at("constants", constant)
        if constant not in known:
            raise ReferenceNameError(
                f"'{constant}' is no group fact",
                where=where,
                rule=name,
                got=constant,
                hint=suggest(constant, known),
            )
        if admit(known[constant], value) is None:
            raise SchemaError(
                "the constant does not fit its fact",
                where=where,
                rule=name,
                got=value,
                expected=known[constant].type,
            )


def _read(reading: Reading, name: str, decl: ObjectDecl, at: Places, parts: _Parts) -> ObjectRules:
    geometry = reading.scopes.geometry(name)
    needs = {
        need: parse_condition(str(text), geometry, expect=TOKENS, where=at("needs", need), rule=name)
        for need, text in decl.needs.items()
    }
    for need in ("first", "to"):
        if need not in needs:
            raise SchemaError(f"an object needs `needs.{need}`", where=at("needs"), rule=name, expected=need)
    scope = reading.scopes.rule(name, _shared_needs(decl, needs))
    subject = Subject(name, decl, at, scope)
    checks = read_checks(reading, subject)
    return ObjectRules(
        name=name,
        title=decl.title,
        home=decl.form,
        pieces=decl.pieces,
        mandatory=decl.mandatory,
        constants=dict(decl.constants),
        facts=reading.scopes.objects[name],
        healthy=read_healthy(reading, subject),
        domain=tuple(
            parse_condition(str(text), scope, where=at("domain", i), rule=name) for i, text in enumerate(decl.domain)
        ),
        needs=needs,
        needed=None if decl.needed is None else reading.condition(decl.needed, scope, at("needed"), name),
        peers=reading.scopes.peers[name],
        resumable=read_resumable(subject),
        checks=checks,
        options=read_options(reading, subject, checks),
        transitions=tuple(read_transitions(reading, name, parts)),
        where=at(),
    )


def _shared_needs(decl: ObjectDecl, needs: Mapping[str, Node]) -> Mapping[str, Node]:
    """Within one piece of a span object, `needs.first` and `needs.to` are cut to the piece's share."""
    if decl.pieces != "span":
        return needs
    first, to = token_fact("share.first"), token_fact("share.to")
    cut = {"first": Extreme("max", (needs["first"], Ref(first.name, first)))}
    return {**needs, **cut, "to": Extreme("min", (needs["to"], Ref(to.name, to)))}


def _dispositions(reading: Reading, name: str, decl: ObjectDecl, at: Places) -> Iterator[Disposition]:
    """The object's own dispositions first, then those of every object."""
    scope, seen = reading.scopes.rule(name, {}), set[str]()
    own: list[tuple[DispositionDecl, Places]] = [
        (one, at.under("disposition", i)) for i, one in enumerate(decl.disposition)
    ]
    for one, place in [*own, *reading.inherited.dispositions()]:
        if one.id in seen:
            rule = f"{name}/{one.id}"
            raise DuplicateError(f"disposition {rule} stands twice", where=place("id"), rule=rule, got=one.id)
        seen.add(one.id)
        where = place("when")
        when = reading.condition(one.when, scope, where, f"{name}/{one.id}", known="any")
        yield Disposition(one.id, name, when, one.then, where)
