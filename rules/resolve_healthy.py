"""The value of each fact in a faultless segment, from which scenarios start."""

from __future__ import annotations

from hitproof.rules.reading import Reading, Subject
from hitproof.spec.condition import Node, Scope, parse_condition
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKEN_SET, TOKENS, Fact
from hitproof.spec.yaml_fields import suggest

__all__ = ["read_healthy"]


def read_healthy(reading: Reading, subject: Subject) -> dict[str, Node | tuple[Node, ...] | str]:
    """Healthy values by fact: those of every segment, of the object's own facts, then those it states anew.

    Raises:
        ReferenceNameError: The object has no such fact.
        SchemaError: A list is given to what is no set.
        ConditionError: A value does not fit its fact.
    """
    name, at, facts = subject.name, subject.at, reading.scopes.objects[subject.name]
    given = dict(reading.vocabulary.healthy)
    for fact, one in subject.decl.facts.items():
        if not isinstance(one, str) and one.healthy is not None:
            given[fact] = (one.healthy, at("facts", fact, "healthy"))
    for fact, value in subject.decl.healthy.items():
        if fact not in facts:
            raise ReferenceNameError(
                f"'{fact}' is no fact of {name}",
                where=at("healthy", fact),
                rule=name,
                got=fact,
                hint=suggest(fact, facts),
            )
        given[fact] = (value, at("healthy", fact))
    return {
        fact: _value(facts[fact], value, subject.scope, where, f"{name}.{fact}")
        for fact, (value, where) in given.items()
    }


def _value(fact: Fact, value: object, scope: Scope, where: Position, rule: str) -> Node | tuple[Node, ...] | str:
    if isinstance(value, list):
        if fact.type != TOKEN_SET:
            raise SchemaError("only a set is a list", where=where, rule=rule, got=value, expected=fact.type)
        return tuple(parse_condition(str(one), scope, expect=TOKENS, where=where, rule=rule) for one in value)
    text = str(value)
    if fact.type.kind == "identity" and "." not in text:
        return text
    return parse_condition(text, scope, expect=fact.type, where=where, rule=rule)
