"""Facts, enumerations and fact sets of a rulebook, merged from its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hitproof.rules.places import Places
from hitproof.spec.errors import DuplicateError, Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import BOOL, TOKENS, Fact, Value, admit, declare_fact
from hitproof.spec.rulefile import FactDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node

__all__ = ["Vocabulary", "merge_vocabulary"]

SCOPES = ("segment", "request", "runtime", "kernel", "group")


@dataclass
class Vocabulary:
    """Everything that a rule can name, with the place where it was declared."""

    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    facts: dict[str, dict[str, Fact]] = field(default_factory=lambda: {scope: {} for scope in SCOPES})
    healthy: dict[str, tuple[object, Position]] = field(default_factory=dict)
    defaults: dict[str, int | bool] = field(default_factory=dict)
    environment: dict[str, Value] = field(default_factory=dict)
    fact_sets: dict[str, tuple[tuple[str, ...], Places]] = field(default_factory=dict)
    door: list[tuple[str, Position]] = field(default_factory=list)
    engine_owned: list[tuple[str, Position]] = field(default_factory=list)
    places: dict[str, Position] = field(default_factory=dict)

    def claim(self, kind: str, name: str, where: Position) -> None:
        """Record that `name` is declared here.

        Raises:
            DuplicateError: It was declared before.
        """
        key = f"{kind} {name}"
        if key in self.places:
            raise DuplicateError(
                f"{key} stands twice",
                where=where,
                rule=name,
                got=name,
                expected=f"once; first at {self.places[key]}",
            )
        self.places[key] = where

    def fact(self, name: str, declared: FactDecl | str, where: Position, rule: str) -> Fact:
        """The fact of a declaration."""
        if isinstance(declared, str):
            declared = FactDecl(type=declared)
        return declare_fact(
            name,
            declared.type,
            self.enums,
            domain=declared.domain,
            because=declared.because or "",
            where=where,
            rule=rule,
        )

    def expand(self, names: Iterable[str], known: Iterable[str], at: Places, rule: str) -> frozenset[str]:
        """Fact names, listed at a place, with fact sets put in place of their names.

        Raises:
            ReferenceNameError: A name is neither a fact nor a fact set.
        """
        known = set(known)
        result: set[str] = set()
        for i, name in enumerate(names):
            if name in self.fact_sets:
                result.update(self._members(name, known))
            elif name in known:
                result.add(name)
            else:
                raise ReferenceNameError(
                    f"'{name}' is neither a fact nor a fact set",
                    where=at(i),
                    rule=rule,
                    got=name,
                    hint=suggest(name, [*known, *self.fact_sets]),
                )
        return frozenset(result)

    def _members(self, name: str, known: set[str]) -> tuple[str, ...]:
        members, at = self.fact_sets[name]
        for i, member in enumerate(members):
            if member not in known:
                raise ReferenceNameError(
                    f"'{member}' is no fact of any object",
                    where=at(i),
                    rule=name,
                    got=member,
                    hint=suggest(member, known),
                )
        return members


def merge_vocabulary(parts: Iterable[tuple[Node, RuleFile]]) -> Vocabulary:
    """Merge the declarations of all files; enumerations first, for facts may be of their type.

    Raises:
        DuplicateError, ReferenceNameError, UnitError, SchemaError: With the place.
    """
    parts = list(parts)
    found = Vocabulary()
    for tree, part in parts:
        at = Places(tree)
        for name, members in part.enums.items():
            found.claim("enum", name, at("enums", name))
            if len(set(members)) != len(members) or not members:
                raise SchemaError("members of an enum differ", where=at("enums", name), rule=name, got=members)
            found.enums[name] = tuple(members)
    for needed in ("form", "tier"):
        if needed not in found.enums:
            raise SchemaError(f"the rulebook declares no enum `{needed}`", where=parts[0][0].where, expected=needed)
    for tree, part in parts:
        at = Places(tree)
        for scope in SCOPES:
            declared: Mapping[str, FactDecl | str] = getattr(part, scope)
            for name, decl in declared.items():
                where = at(scope, name)
                found.claim(f"{scope} fact", name, where)
                found.facts[scope][name] = found.fact(name, decl, where, f"{scope}.{name}")
                _add_values(found, scope, found.facts[scope][name], decl, at.under(scope, name))
        for name, members in part.fact_sets.items():
            found.claim("fact set", name, at("fact_sets", name))
            found.fact_sets[name] = (tuple(members), at.under("fact_sets", name))
        found.door += [(name, at("door", i)) for i, name in enumerate(part.door)]
        found.engine_owned += [(name, at("engine_owned", i)) for i, name in enumerate(part.engine_owned)]
    _check_names(found)
    return found


def _add_values(found: Vocabulary, scope: str, fact: Fact, declared: FactDecl | str, at: Places) -> None:
    """Record the healthy value or the default of a fact."""
    healthy = None if isinstance(declared, str) else declared.healthy
    default = None if isinstance(declared, str) else declared.default
    if default is not None and (scope != "group" or not isinstance(default, int) or admit(fact, default) is None):
        raise SchemaError(
            "the default does not fit the fact" if scope == "group" else "only a group fact has a default",
            where=at("default"),
            rule=f"{scope}.{fact.name}",
            got=default,
            expected=fact.type if scope == "group" else "`healthy`",
        )
    if scope == "group":
        if healthy is not None:
            raise SchemaError(
                "a group fact has no healthy value, its profile gives it",
                where=at("healthy"),
                rule=f"{scope}.{fact.name}",
                got=healthy,
                expected="`default`",
            )
        if isinstance(default, int):
            found.defaults[fact.name] = default
    elif scope != "segment":
        found.environment[f"{scope}.{fact.name}"] = _usual(fact, healthy, at("healthy"), f"{scope}.{fact.name}")
    elif healthy is not None:
        found.healthy[fact.name] = (healthy, at("healthy"))


def _usual(fact: Fact, given: object, where: Position, rule: str) -> Value:
    """Value of a request, run-time or kernel fact in a scenario that does not name it; identities get their name."""
    if given is None:
        return fact.name if fact.type.kind == "identity" else None
    value = admit(fact, given)
    if value is None:
        raise SchemaError(
            "the healthy value does not fit the fact",
            where=where,
            rule=rule,
            got=given,
            expected=fact.type,
        )
    return value


def _check_names(found: Vocabulary) -> None:
    for names, scope in ((found.door, "request"), (found.engine_owned, "segment")):
        for name, where in names:
            if name not in found.facts[scope]:
                raise ReferenceNameError(
                    f"'{name}' is no fact of the {scope}",
                    where=where,
                    got=name,
                    hint=suggest(name, found.facts[scope]),
                )


def pseudo_fact(name: str) -> Fact:
    """A Boolean that the engine gives, such as `kv.ready`."""
    return Fact(name, BOOL)


def token_fact(name: str) -> Fact:
    """A fact in tokens with the default domain, such as `length`."""
    return Fact(name, TOKENS, 0, 2**40)


def block_fact(name: str) -> Fact:
    """A fact in blocks with the default domain, such as `boundary`."""
    return declare_fact(name, "blocks", {})
