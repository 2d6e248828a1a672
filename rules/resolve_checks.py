"""The checks of an object, inherited and its own, and the lengths at which it can resume."""

from __future__ import annotations

from collections.abc import Iterator

from hitproof.rules.places import Places
from hitproof.rules.reading import Reading, Subject
from hitproof.rules.vocabulary import token_fact
from hitproof.spec.condition import Arith, Compare, Literal, Member, Ref, parse_condition
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKEN_SET, TOKENS
from hitproof.spec.rulebook import Check, Resumable
from hitproof.spec.rulefile import CheckDecl
from hitproof.spec.yaml_fields import suggest

__all__ = ["IMPLICIT", "read_checks", "read_resumable"]

IMPLICIT = ("well_formed", "resumable")
"""Checks that come of `domain:` and `resumable:`."""

_LENGTH = Ref("length", token_fact("length"))


def read_checks(reading: Reading, subject: Subject) -> tuple[Check, ...]:
    """The checks that every object has, or those of them that `inherits:` names, then the object's own.

    Raises:
        ReferenceNameError: `inherits:` names no check of every object.
        DuplicateError: An id stands twice, or is that of an implicit check.
        ConditionError: An expression is wrong.
    """
    found: dict[str, Check] = {}
    for decl, at in _declared(reading, subject):
        rule = f"{subject.name}/{decl.id}"
        if decl.id in found or decl.id in IMPLICIT:
            raise DuplicateError(f"check {rule} stands twice", where=at("id"), rule=rule, got=decl.id)
        found[decl.id] = _check(reading, subject, decl, at, rule)
    return tuple(found.values())


def read_resumable(subject: Subject) -> Resumable:
    """Where the object can resume.

    Raises:
        SchemaError: Neither or both of `every` and `stored` are given, or `stored` is no set of boundaries.
        ConditionError: An expression is wrong.
    """
    declared, at, scope, name = subject.decl.resumable, subject.at, subject.scope, subject.name
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
        every = parse_condition(str(declared.every), scope, expect=TOKENS, where=where, rule=name)
        rest = Arith("%", _LENGTH, every)
        return Resumable("every", every, Compare("==", rest, Literal(0, TOKENS)), where)
    where = at("resumable", "stored")
    stored = parse_condition(str(declared.stored), scope, expect="any", where=where, rule=name)
    if not isinstance(stored, Ref) or stored.fact.type != TOKEN_SET:
        raise SchemaError(
            "`stored` names the fact that holds the boundaries",
            where=where,
            rule=name,
            got=declared.stored,
            expected=f"a {TOKEN_SET}",
        )
    return Resumable("stored", None, Member(_LENGTH, stored), where)


def _declared(reading: Reading, subject: Subject) -> Iterator[tuple[CheckDecl, Places]]:
    inherits = subject.decl.inherits
    available = {check.id for check, _ in reading.inherited.checks()}
    for i, wanted in enumerate(inherits or ()):
        if wanted not in available:
            raise ReferenceNameError(
                f"'{wanted}' is no check of every object",
                where=subject.at("inherits", i),
                rule=subject.name,
                got=wanted,
                hint=suggest(wanted, available),
            )
    for check, at in reading.inherited.checks():
        if inherits is None or check.id in inherits:
            yield check, at
    yield from ((own, subject.at.under("checks", i)) for i, own in enumerate(subject.decl.checks))


def _check(reading: Reading, subject: Subject, decl: CheckDecl, at: Places, rule: str) -> Check:
    applies = None
    if decl.applies is not None:
        applies = parse_condition(
            str(decl.applies), subject.scope, expect="applies", where=at("applies"), rule=rule, allow_known="any"
        )
    return Check(
        id=decl.id,
        object=subject.name,
        layer=decl.layer,
        require=reading.condition(decl.require, subject.scope, at("require"), rule),
        applies=applies,
        because=decl.because,
        source=decl.source,
        where=at("require"),
    )
