"""The recovery options of an object, inherited and its own: what each mends, reads, does and costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hitproof.rules.places import Places
from hitproof.rules.reading import Reading, Subject
from hitproof.rules.resolve_checks import IMPLICIT
from hitproof.rules.resolve_effect import check_against_repair, read_effect
from hitproof.spec.condition import Literal, Node, Scope, parse_condition
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.facts import FactType
from hitproof.spec.rulebook import OF_REQUEST, PSEUDO_SOURCES, Check, Option, Repair
from hitproof.spec.rulefile import OptionDecl
from hitproof.spec.units import parse_unit
from hitproof.spec.yaml_fields import suggest

__all__ = ["read_options"]

ALIGNMENT = FactType("int", parse_unit("bytes"))


def read_options(reading: Reading, subject: Subject, checks: tuple[Check, ...]) -> tuple[Option, ...]:
    """The options that every object has, then the object's own.

    An inherited option that consumes a role which the object lacks is kept as one that no group can take.

    Raises:
        HitproofError: An id stands twice, a name refers to nothing, or the option asks more of its repair
            than the repair declares.
    """
    found: dict[str, Option] = {}
    result: list[Option] = []
    for decl, at, inherited in _declared(reading, subject):
        rule = f"{subject.name}/{decl.id}"
        if decl.id in found and not reading.lenient:
            raise DuplicateError(f"option {rule} stands twice", where=at("id"), rule=rule, got=decl.id)
        found[decl.id] = _option(reading, subject, decl, at, checks, inherited=inherited)
        result.append(found[decl.id])
    return tuple(result)


def _declared(reading: Reading, subject: Subject) -> Iterator[tuple[OptionDecl, Places, bool]]:
    yield from ((decl, at, True) for decl, at in reading.inherited.options())
    for i, own in enumerate(subject.decl.recovery):
        yield own, subject.at.under("recovery", i), False


def _option(
    reading: Reading,
    subject: Subject,
    decl: OptionDecl,
    at: Places,
    checks: tuple[Check, ...],
    *,
    inherited: bool,
) -> Option:
    rule = f"{subject.name}/{decl.id}"
    if decl.repair not in reading.repairs:
        raise ReferenceNameError(
            f"'{decl.repair}' is no declared repair",
            where=at("repair"),
            rule=rule,
            got=decl.repair,
            hint=suggest(decl.repair, reading.repairs),
        )
    repair = reading.repairs[decl.repair]
    scope = _with_contract(subject.scope, repair)
    peers = reading.scopes.peers[subject.name]
    takes_part = _can_consume(reading, decl, {*peers, *PSEUDO_SOURCES}, at, rule, inherited=inherited)
    mends = _mends(reading, decl, checks, at, rule, inherited=inherited)
    applies, when, cost = None, None, None
    if decl.applies is not None:
        applies = parse_condition(
            str(decl.applies), scope, expect="applies", where=at("applies"), rule=rule, allow_known="any"
        )
    if takes_part and decl.when is not None:
        when = reading.condition(decl.when, scope, at("when"), rule, known="any")
    if takes_part and decl.cost is not None:
        cost = parse_condition(str(decl.cost), scope, expect="cost", where=at("cost"), rule=rule)
    if decl.level != "full_recompute" and decl.cost is None:
        raise SchemaError("a recovery option needs a cost", where=at("id"), rule=rule, expected="cost")
    if takes_part and not reading.lenient:
        check_against_repair(decl, repair, subject.name, peers, at, rule)
    return Option(
        id=decl.id,
        object=subject.name,
        level=decl.level,
        repair=decl.repair,
        joint=decl.joint,
        mends=mends,
        consumes=tuple(decl.consumes) if takes_part else ("?",),
        applies=applies,
        when=when,
        effect=read_effect(reading, subject, decl, repair, mends, at, rule, inherited=inherited),
        cost=cost,
        because=decl.because,
        source=decl.source,
        where=at("id"),
    )


def _with_contract(scope: Scope, repair: Repair) -> Scope:
    """The option's names, with what its repair asks of rows that it reads and promises of rows that it writes."""
    contract: dict[str, Node] = {
        "repair.alignment": Literal(repair.alignment, ALIGNMENT),
        "repair.reads_at": Literal(repair.reads_at, ALIGNMENT),
    }
    return replace(scope, macros={**scope.macros, **contract})


def _can_consume(
    reading: Reading, decl: OptionDecl, roles: set[str], at: Places, rule: str, *, inherited: bool
) -> bool:
    """Whether the object has every role that is consumed; one of other objects alone will do to inherit."""
    allowed = roles | reading.roles if inherited else roles
    for i, source in enumerate(decl.consumes):
        if source not in allowed:
            raise ReferenceNameError(
                f"'{source}' is neither a peer nor a source",
                where=at("consumes", i),
                rule=rule,
                got=source,
                hint=suggest(source, allowed),
            )
        if source in OF_REQUEST and f"has_{source}" not in reading.vocabulary.facts["request"]:
            raise SchemaError(
                f"nothing tells whether the request's {source} are at hand",
                where=at("consumes", i),
                rule=rule,
                got=source,
                expected=f"a request fact `has_{source}`",
            )
    return roles.issuperset(decl.consumes)


def _mends(
    reading: Reading, decl: OptionDecl, checks: tuple[Check, ...], at: Places, rule: str, *, inherited: bool
) -> tuple[str, ...]:
    """Ids of the object's checks that are mended; one that it does not have takes no part."""
    ids = [check.id for check in checks]
    if decl.mends == "all":
        return (*ids, *IMPLICIT)
    sets = reading.inherited.check_sets
    known = reading.checks if inherited else {check.id for check, _ in reading.inherited.checks()}
    result: list[str] = []
    for i, mended in enumerate(decl.mends):
        for check in sets.get(mended, (mended,)):
            if check in ids or check in IMPLICIT:
                result.append(check)
            elif check not in known and mended not in sets and not reading.lenient:
                raise ReferenceNameError(
                    f"'{check}' is no check of this object",
                    where=at("mends", i),
                    rule=rule,
                    got=check,
                    hint=suggest(check, ids),
                )
    identity = {check.id for check in checks if check.layer == "identity"}
    forbidden = [check for check in result if check in identity]
    if forbidden and not reading.lenient:
        raise SchemaError(
            "no repair mends identity",
            where=at("mends"),
            rule=rule,
            got=forbidden[0],
            expected="checks of the other layers",
        )
    return tuple(dict.fromkeys(result))
