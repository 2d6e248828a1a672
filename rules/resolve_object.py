"""The rules of each object: facts and needs, checks, recovery options, transitions, dispositions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from hitproof.rules.resolve_effect import EffectReader, check_against_repair
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Places, Vocabulary, token_fact
from hitproof.spec.condition import Extreme, Node, Ref, Scope, parse_condition
from hitproof.spec.errors import DuplicateError, Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKENS, Fact
from hitproof.spec.rulebook import (
    PSEUDO_SOURCES,
    Check,
    Disposition,
    ObjectRules,
    Option,
    Repair,
    Resumable,
    Transition,
)
from hitproof.spec.rulefile import CheckDecl, EffectDecl, EveryObjectDecl, ObjectDecl, OptionDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_objects"]

IMPLICIT = ("well_formed", "resumable")
"""Checks that come of `domain:` and `resumable:`."""

_Parts = list[tuple[Tree, RuleFile]]
_Path = tuple[str | int, ...]


@dataclass(frozen=True)
class _Placed:
    at: Places
    path: _Path

    def __call__(self, *more: str | int) -> Position:
        return self.at(*self.path, *more)


def resolve_objects(
    parts: _Parts, vocabulary: Vocabulary, scopes: Scopes, repairs: Mapping[str, Repair], *, lenient: bool
) -> tuple[dict[str, ObjectRules], dict[str, tuple[Disposition, ...]]]:
    """All objects of a rulebook, in the order of the files, and the disposition rules of each.

    Raises:
        HitproofError: A name, type, unit or id is wrong; with its place.
    """
    declared: dict[str, tuple[ObjectDecl, _Placed]] = {}
    every: list[tuple[EveryObjectDecl, _Placed]] = []
    for tree, part in parts:
        at = Places(tree)
        for name, decl in part.objects.items():
            vocabulary.claim("object", name, at("objects", name))
            declared[name] = (decl, _Placed(at, ("objects", name)))
        if part.every_object is not None:
            every.append((part.every_object, _Placed(at, ("every_object",))))
    if not declared:
        raise SchemaError("the rulebook declares no object", where=parts[0][0].where, expected="objects")
    _check_peers(declared)
    for name, (decl, at_object) in declared.items():
        _register(name, decl, at_object, vocabulary, scopes)
    reader = _ObjectReader(parts, vocabulary, scopes, repairs, every, lenient)
    objects = {name: reader.read(name, decl, at_object) for name, (decl, at_object) in declared.items()}
    dispositions = {name: tuple(reader.dispositions(name, *placed)) for name, placed in declared.items()}
    return objects, dispositions


def _check_peers(declared: Mapping[str, tuple[ObjectDecl, _Placed]]) -> None:
    graph: dict[str, set[str]] = {}
    for name, (decl, at) in declared.items():
        for role, wanted in decl.peers.items():
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


def _register(name: str, decl: ObjectDecl, at: _Placed, vocabulary: Vocabulary, scopes: Scopes) -> None:
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
    peers = {role: (peer,) if isinstance(peer, str) else tuple(peer) for role, peer in decl.peers.items()}
    scopes.register(name, decl.form, facts, peers)


def _shared_needs(decl: ObjectDecl, needs: Mapping[str, Node]) -> Mapping[str, Node]:
    """Within one piece of a span object, `needs.first` and `needs.to` are cut to the piece's share."""
    if decl.pieces != "span":
        return needs
    first, to = token_fact("share.first"), token_fact("share.to")
    cut = {"first": Extreme("max", (needs["first"], Ref(first.name, first)))}
    return {**needs, **cut, "to": Extreme("min", (needs["to"], Ref(to.name, to)))}


class _ObjectReader:
    def __init__(
        self,
        parts: _Parts,
        vocabulary: Vocabulary,
        scopes: Scopes,
        repairs: Mapping[str, Repair],
        every: list[tuple[EveryObjectDecl, _Placed]],
        lenient: bool,
    ) -> None:
        self.parts, self.vocabulary, self.scopes, self.repairs = parts, vocabulary, scopes, repairs
        self.every, self.lenient = every, lenient
        self.effects: dict[str, tuple[EffectDecl, _Placed]] = {}
        self.check_sets: dict[str, tuple[str, ...]] = {}
        for decl, at in every:
            for name, effect in decl.effects.items():
                vocabulary.claim("effect", name, at("effects", name))
                self.effects[name] = (effect, _Placed(at.at, (*at.path, "effects", name)))
            for name, members in decl.check_sets.items():
                vocabulary.claim("check set", name, at("check_sets", name))
                self.check_sets[name] = tuple(members)

    def read(self, name: str, decl: ObjectDecl, at: _Placed) -> ObjectRules:
        facts = self.scopes.objects[name]
        needs = {
            need: parse_condition(
                str(text), self.scopes.geometry(name), expect=TOKENS, where=at("needs", need), rule=name
            )
            for need, text in decl.needs.items()
        }
        for need in ("first", "to"):
            if need not in needs:
                raise SchemaError(f"an object needs `needs.{need}`", where=at("needs"), rule=name, expected=need)
        scope = self.scopes.rule(name, _shared_needs(decl, needs))
        checks = self._checks(name, decl, at, scope)
        return ObjectRules(
            name=name,
            title=decl.title,
            home=decl.form,
            pieces=decl.pieces,
            mandatory=decl.mandatory,
            constants=dict(decl.constants),
            facts=facts,
            healthy=self._healthy(name, decl, at, scope),
            domain=tuple(
                parse_condition(str(text), scope, where=at("domain", i), rule=name)
                for i, text in enumerate(decl.domain)
            ),
            needs=needs,
            needed=None if decl.needed is None else self._condition(decl.needed, scope, at("needed"), name),
            peers=self.scopes.peers[name],
            resumable=self._resumable(decl, scope, at, name),
            checks=checks,
            options=self._options(name, decl, at, scope, checks),
            transitions=tuple(self._transitions(name)),
            where=at(),
        )

    def dispositions(self, name: str, own: ObjectDecl, at_own: _Placed) -> Iterable[Disposition]:
        """The object's own dispositions first, then those of every object."""
        scope = self.scopes.rule(name, {})
        layers: list[tuple[ObjectDecl | EveryObjectDecl, _Placed]] = [(own, at_own), *self.every]
        for decl, at in layers:
            for i, one in enumerate(decl.disposition):
                where = at("disposition", i, "when")
                when = self._condition(one.when, scope, where, f"{name}/{one.id}", known="any")
                yield Disposition(one.id, name, when, one.then, where)

    def _condition(self, text: object, scope: Scope, where: Position, rule: str, known: str = "positive") -> Node:
        allow = "any" if self.lenient else known
        return parse_condition(str(text), scope, where=where, rule=rule, allow_known=allow)  # type: ignore[arg-type]

    def _healthy(
        self, name: str, decl: ObjectDecl, at: _Placed, scope: Scope
    ) -> dict[str, Node | tuple[Node, ...] | str]:
        given: dict[str, tuple[object, Position]] = {
            k: v for k, v in self.vocabulary.healthy.items() if k in self.scopes.objects[name]
        }
        for fact, one in decl.facts.items():
            if not isinstance(one, str) and one.healthy is not None:
                given[fact] = (one.healthy, at("facts", fact, "healthy"))
        for fact, value in decl.healthy.items():
            if fact not in self.scopes.objects[name]:
                raise ReferenceNameError(
                    f"'{fact}' is no fact of {name}", where=at("healthy", fact), rule=name, got=fact,
                    hint=suggest(fact, self.scopes.objects[name]),
                )  # fmt: skip
            given[fact] = (value, at("healthy", fact))
        return {
            fact: self._healthy_value(self.scopes.objects[name][fact], value, scope, where, f"{name}.{fact}")
            for fact, (value, where) in given.items()
        }

    def _healthy_value(
        self, fact: Fact, value: object, scope: Scope, where: Position, rule: str
    ) -> Node | tuple[Node, ...] | str:
        if isinstance(value, list):
            return tuple(parse_condition(str(v), scope, expect="number", where=where, rule=rule) for v in value)
        text = str(value)
        if fact.type.kind == "identity" and "." not in text:
            return text
        return parse_condition(text, scope, expect=fact.type, where=where, rule=rule)

    def _resumable(self, decl: ObjectDecl, scope: Scope, at: _Placed, name: str) -> Resumable:
        declared = decl.resumable
        if declared == "any":
            return Resumable("any")
        if (declared.every is None) == (declared.stored is None):
            raise SchemaError(
                "resumable takes either `every` or `stored`",
                where=at("resumable"),
                rule=name,
                expected="one of them",
            )
        if declared.every is not None:
            where = at("resumable", "every")
            every = parse_condition(str(declared.every), scope, expect="number", where=where, rule=name)
            condition = parse_condition(f"length % ({declared.every}) == 0", scope, where=where, rule=name)
            return Resumable("every", every, condition, where)
        where = at("resumable", "stored")
        condition = parse_condition(f"length in {declared.stored}", scope, where=where, rule=name)
        return Resumable("stored", None, condition, where)

    def _checks(self, name: str, decl: ObjectDecl, at: _Placed, scope: Scope) -> tuple[Check, ...]:
        found: dict[str, Check] = {}
        available = {c.id for every, _ in self.every for c in every.checks}
        for i, wanted in enumerate(decl.inherits or ()):
            if wanted not in available:
                raise ReferenceNameError(
                    f"'{wanted}' is no check of every object", where=at("inherits", i), rule=name, got=wanted,
                    hint=suggest(wanted, available),
                )  # fmt: skip
        for every, at_every in self.every:
            for i, inherited in enumerate(every.checks):
                if decl.inherits is None or inherited.id in decl.inherits:
                    place = _Placed(at_every.at, (*at_every.path, "checks", i))
                    self._add_check(found, name, inherited, place, scope)
        for i, own in enumerate(decl.checks):
            self._add_check(found, name, own, _Placed(at.at, (*at.path, "checks", i)), scope)
        return tuple(found.values())

    def _add_check(self, found: dict[str, Check], name: str, decl: CheckDecl, at: _Placed, scope: Scope) -> None:
        rule = f"{name}/{decl.id}"
        if decl.id in found or decl.id in IMPLICIT:
            raise DuplicateError(f"check {rule} stands twice", where=at("id"), rule=rule, got=decl.id)
        applies = None
        if decl.applies is not None:
            applies = parse_condition(
                str(decl.applies), scope, expect="applies", where=at("applies"), rule=rule, allow_known="any"
            )
        require = self._condition(decl.require, scope, at("require"), rule)
        found[decl.id] = Check(decl.id, name, decl.layer, require, applies, decl.because, decl.source, at("require"))

    def _options(
        self, name: str, decl: ObjectDecl, at: _Placed, scope: Scope, checks: tuple[Check, ...]
    ) -> tuple[Option, ...]:
        found: list[Option] = []
        effects = EffectReader(self.vocabulary, self.scopes, self.effects_of, lenient=self.lenient)
        declared = [
            (option, _Placed(at_every.at, (*at_every.path, "recovery", i)), True)
            for every, at_every in self.every
            for i, option in enumerate(every.recovery)
        ]
        declared += [
            (option, _Placed(at.at, (*at.path, "recovery", i)), False) for i, option in enumerate(decl.recovery)
        ]
        for option, place, inherited in declared:
            rule = f"{name}/{option.id}"
            if not self.lenient and any(option.id == other.id for other in found):
                raise DuplicateError(f"option {rule} stands twice", where=place("id"), rule=rule, got=option.id)
            found.append(self._option(name, option, place, scope, checks, effects, inherited=inherited))
        return tuple(found)

    def effects_of(self, name: str, where: Position, rule: str) -> tuple[EffectDecl, _Placed]:
        if name not in self.effects:
            raise ReferenceNameError(
                f"'{name}' is no shared effect",
                where=where,
                rule=rule,
                got=name,
                hint=suggest(name, self.effects),
            )
        return self.effects[name]

    def _option(
        self,
        name: str,
        decl: OptionDecl,
        at: _Placed,
        scope: Scope,
        checks: tuple[Check, ...],
        effects: EffectReader,
        *,
        inherited: bool,
    ) -> Option:
        rule = f"{name}/{decl.id}"
        if decl.repair not in self.repairs:
            raise ReferenceNameError(
                f"'{decl.repair}' is no declared repair", where=at("repair"), rule=rule, got=decl.repair,
                hint=suggest(decl.repair, self.repairs),
            )  # fmt: skip
        repair = self.repairs[decl.repair]
        roles = {*self.scopes.peers[name], *PSEUDO_SOURCES}
        missing = [source for source in decl.consumes if source not in roles]
        if missing and not inherited:
            raise ReferenceNameError(
                f"'{missing[0]}' is neither a peer nor a source", where=at("consumes"), rule=rule, got=missing[0],
                hint=suggest(missing[0], roles),
            )  # fmt: skip
        mends = self._mends(decl, checks, at, rule, inherited=inherited)
        applies, when, cost = None, None, None
        if decl.applies is not None:
            applies = parse_condition(
                str(decl.applies), scope, expect="applies", where=at("applies"), rule=rule, allow_known="any"
            )
        if not missing:
            if decl.when is not None:
                when = self._condition(decl.when, scope, at("when"), rule, known="any")
            if decl.cost is not None:
                cost = parse_condition(str(decl.cost), scope, expect="cost", where=at("cost"), rule=rule)
        if decl.level != "full_recompute" and decl.cost is None:
            raise SchemaError("a recovery option needs a cost", where=at("id"), rule=rule, expected="cost")
        if not missing and not self.lenient:
            check_against_repair(decl, repair, name, self.scopes.peers[name], at, rule)
        effect = effects.read(name, decl, repair, scope, at, rule)
        return Option(
            decl.id, name, decl.level, decl.repair, decl.joint, mends, tuple(decl.consumes) if not missing else ("?",),
            applies, when, effect, cost, decl.because, decl.source, at("id"),
        )  # fmt: skip

    def _mends(
        self, decl: OptionDecl, checks: tuple[Check, ...], at: _Placed, rule: str, *, inherited: bool
    ) -> tuple[str, ...]:
        ids = [check.id for check in checks]
        if decl.mends == "all":
            return (*ids, *IMPLICIT)
        known_anywhere = {c.id for every, _ in self.every for c in every.checks}
        result: list[str] = []
        for i, mended in enumerate(decl.mends):
            names = self.check_sets.get(mended, (mended,))
            for check in names:
                if check in ids or check in IMPLICIT:
                    result.append(check)
                elif not (inherited or check in known_anywhere or mended in self.check_sets):
                    raise ReferenceNameError(
                        f"'{check}' is no check of this object", where=at("mends", i), rule=rule, got=check,
                        hint=suggest(check, ids),
                    )  # fmt: skip
        identity = {check.id for check in checks if check.layer == "identity"}
        forbidden = [check for check in result if check in identity]
        if forbidden and not self.lenient:
            raise SchemaError(
                "no repair mends identity", where=at("mends"), rule=rule, got=forbidden[0],
                expected="checks of the other layers",
            )  # fmt: skip
        return tuple(dict.fromkeys(result))

    def _transitions(self, name: str) -> Iterable[Transition]:
        seen: set[str] = set()
        for tree, part in self.parts:
            at = Places(tree)
            for i, decl in enumerate(part.transitions):
                place = _Placed(at, ("transitions", i))
                rule = f"{name}/{decl.id}"
                if decl.id in seen:
                    raise DuplicateError(f"transition {decl.id} stands twice", where=place("id"), rule=decl.id)
                seen.add(decl.id)
                for j, wanted in enumerate(decl.objects or ()):
                    if wanted not in self.scopes.objects:
                        raise ReferenceNameError(
                            f"'{wanted}' is no object", where=place("objects", j), rule=decl.id, got=wanted,
                            hint=suggest(wanted, self.scopes.objects),
                        )  # fmt: skip
                if decl.objects is not None and name not in decl.objects:
                    continue
                scope = self.scopes.event(name)
                facts = self.scopes.objects[name]
                yield Transition(
                    id=decl.id,
                    object=name,
                    sources=tuple(self._form(name, f, place("from", j), rule) for j, f in enumerate(decl.from_)),
                    target=self._form(name, decl.to, place("to"), rule),
                    pins=decl.pins,
                    owner=decl.owner,
                    actor=decl.actor,
                    donor=decl.donor,
                    when=None
                    if decl.when is None
                    else self._condition(decl.when, scope, place("when"), rule, known="any"),
                    takes=self._own(decl.takes, name, place, "takes", rule),
                    sets={
                        fact: parse_condition(
                            str(value), scope, expect=facts[fact].type, where=place("sets", fact), rule=rule
                        )
                        for fact, value in decl.sets.items()
                        if self._own([fact], name, place, "sets", rule)
                    },
                    forgets=self._own(decl.forgets, name, place, "forgets", rule),
                    keeps_prefix=decl.keeps_prefix,
                    allocates=decl.allocates,
                    writes=decl.writes,
                    moves=decl.moves,
                    frees=decl.frees,
                    because=decl.because,
                    source=decl.source,
                    where=place("id"),
                )

    def _own(self, names: list[str], name: str, place: _Placed, key: str, rule: str) -> tuple[str, ...]:
        anywhere = {fact for facts in self.scopes.objects.values() for fact in facts}
        for fact in names:
            if fact not in anywhere:
                raise ReferenceNameError(
                    f"'{fact}' is no fact of any object", where=place(key), rule=rule, got=fact,
                    hint=suggest(fact, anywhere),
                )  # fmt: skip
        return tuple(fact for fact in names if fact in self.scopes.objects[name])

    def _form(self, name: str, form: str, where: Position, rule: str) -> str:
        if form == "home":
            return self.scopes.homes[name]
        if form not in self.vocabulary.enums["form"]:
            raise ReferenceNameError(
                f"'{form}' is no form", where=where, rule=rule, got=form,
                hint=suggest(form, [*self.vocabulary.enums["form"], "home"]),
            )  # fmt: skip
        return form
