"""From rule files to the resolved rulebook: expressions parsed and typed, every name found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hitproof.rules.places import Places
from hitproof.rules.resolve_keys import resolve_keys
from hitproof.rules.resolve_leasing import resolve_leasing
from hitproof.rules.resolve_object import resolve_objects
from hitproof.rules.resolve_policy import resolve_policy
from hitproof.rules.resolve_process import resolve_process
from hitproof.rules.resolve_thresholds import resolve_thresholds
from hitproof.rules.scopes import Scopes
from hitproof.rules.source import RuleSource, read_source
from hitproof.rules.vocabulary import Vocabulary, merge_vocabulary
from hitproof.spec.condition import Node, parse_condition
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.rulebook import (
    ORDER,
    PSEUDO_SOURCES,
    Assumption,
    Choosing,
    Flag,
    Invariant,
    ObjectRules,
    Prefill,
    Repair,
    Rulebook,
)
from hitproof.spec.rulefile import ChoosingDecl, FlagDecl, InvariantDecl, RepairFile, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["load_rulebook", "resolve"]


def load_rulebook(name_or_path: str | Path) -> Rulebook:
    """Read and resolve a rulebook: an embedded name, a folder, or a `rulebook.yaml`.

    Raises:
        HitproofError: With file, line, column and rule id.
    """
    return resolve(read_source(name_or_path))


def resolve(source: RuleSource, *, lenient: bool = False) -> Rulebook:
    """Resolve rule files.

    Args:
        source: The files.
        lenient: Let pass what only the checker of `known`, the uniqueness of ids, the declarations of repairs and the
            names of mended checks forbid, so that the verifier can be shown a faulty rulebook; never used for a
            rulebook that decides.

    Raises:
        HitproofError: With file, line, column and rule id.
    """
    root = source.root()
    parts = list(source.parts())
    vocabulary = merge_vocabulary(parts)
    scopes = Scopes(vocabulary)
    repairs = _repairs(source, vocabulary, parts)
    objects, dispositions = resolve_objects(parts, vocabulary, scopes, repairs, lenient=lenient)
    joint: dict[str, str] = {}
    assumptions: dict[str, Assumption] = {}
    invariants: list[Invariant] = []
    flags: list[Flag] = []
    prefill: Prefill | None = None
    choosing: Choosing | None = None
    for tree, part in parts:
        at = Places(tree)
        for i, one in enumerate(part.joint):
            vocabulary.claim("joint repair", one.id, at("joint", i, "id"))
            joint[one.id] = one.level
        for i, assumed in enumerate(part.assume):
            vocabulary.claim("assumption", assumed.id, at("assume", i, "id"))
            assumptions[assumed.id] = Assumption(assumed.id, assumed.because, at("assume", i, "id"))
        for i, invariant in enumerate(part.invariants):
            vocabulary.claim("invariant", invariant.id, at("invariants", i, "id"))
            invariants.append(_invariant(invariant, scopes, list(objects), at, i))
        for i, flag in enumerate(part.flags):
            vocabulary.claim("flag", flag.id, at("flags", i, "id"))
            flags.append(_flag(flag, scopes, list(objects), at, i))
        if part.prefill is not None:
            where = at("prefill", "cost")
            vocabulary.claim("section", "prefill", where)
            cost = parse_condition(
                str(part.prefill.cost), scopes.decision(), expect="cost", where=where, rule="prefill"
            )
            prefill = Prefill(cost, where)
        if part.choosing is not None:
            vocabulary.claim("section", "choosing", at("choosing", "order"))
            choosing = _choosing(part.choosing, at)
    if prefill is None:
        raise SchemaError("the rulebook has no `prefill:` cost", where=parts[0][0].where, expected="prefill")
    if choosing is None:
        raise SchemaError("the rulebook has no `choosing:` order", where=parts[0][0].where, expected="choosing")
    _check_joint(objects, joint)
    resolved = Rulebook(
        name=root.rulebook,
        title=root.title,
        digest=source.digest,
        enums=vocabulary.enums,
        request=vocabulary.facts["request"],
        runtime=vocabulary.facts["runtime"],
        kernel=vocabulary.facts["kernel"],
        group=vocabulary.facts["group"],
        group_defaults=vocabulary.defaults,
        environment=vocabulary.environment,
        door=tuple(name for name, _ in vocabulary.door),
        engine_owned=frozenset(name for name, _ in vocabulary.engine_owned),
        objects=objects,
        repairs=repairs,
        dispositions=dispositions,
        keys=resolve_keys(parts, vocabulary, scopes),
        invariants=tuple(invariants),
        assumptions=assumptions,
        prefill=prefill,
        choosing=choosing,
        joint=joint,
        flags=tuple(flags),
        policy=resolve_policy(parts, vocabulary, scopes, repairs),
        recovering=resolve_process(parts, vocabulary, scopes),
        leasing=resolve_leasing(parts, vocabulary),
        thresholds={},
        where=parts[0][0].where,
    )
    # Thresholds name checks, steps and events of everything before.
    return replace(resolved, thresholds=resolve_thresholds(parts, vocabulary, resolved))


def _repairs(source: RuleSource, vocabulary: Vocabulary, parts: list[tuple[Tree, RuleFile]]) -> Mapping[str, Repair]:
    objects = {name for _, part in parts for name in part.objects}
    known = set(vocabulary.facts["segment"])
    for _, part in parts:
        for thing in part.objects.values():
            known.update(thing.facts)
    roles = {role for _, part in parts for o in part.objects.values() for role in o.peers}
    found: dict[str, Repair] = {}
    for tree, declared in source.repair_parts():
        at = Places(tree)
        if declared.repair in found:
            raise DuplicateError(f"repair {declared.repair} stands twice", where=at("repair"), rule=declared.repair)
        found[declared.repair] = _repair(declared, vocabulary, known, objects, roles, at)
    return found


def _repair(
    declared: RepairFile,
    vocabulary: Vocabulary,
    known: set[str],
    objects: set[str],
    roles: set[str],
    at: Places,
) -> Repair:
    rule = f"repairs/{declared.repair}"

    def name_all(names: list[str], allowed: set[str], *path: str | int) -> None:
        for i, name in enumerate(names):
            if name not in allowed:
                raise ReferenceNameError(
                    f"'{name}' refers to nothing",
                    where=at(*path, i),
                    rule=rule,
                    got=name,
                    hint=suggest(name, allowed),
                )

    for i, alternative in enumerate(declared.consumes):
        name_all(alternative, {*objects, *roles, *PSEUDO_SOURCES}, "consumes", i)
    name_all(declared.produces, {*objects, "self"}, "produces")
    for fact in declared.establishes:
        name_all([fact], known, "establishes", fact)
    return Repair(
        id=declared.repair,
        runs=declared.runs,
        summary=declared.summary,
        consumes=tuple(map(tuple, declared.consumes)),
        produces=tuple(declared.produces),
        keeps=vocabulary.expand(declared.keeps, known, at.under("keeps"), rule),
        clobbers=vocabulary.expand(declared.clobbers, known, at.under("clobbers"), rule),
        establishes=dict(declared.establishes),
        writes=declared.writes,
        dtypes=tuple(declared.dtypes),
        layouts=tuple(declared.layouts),
        alignment=declared.alignment,
        reads_at=declared.alignment if declared.reads_at is None else declared.reads_at,
        source=declared.source,
        where=at("repair"),
    )


def _invariant(declared: InvariantDecl, scopes: Scopes, objects: list[str], at: Places, i: int) -> Invariant:
    where = at("invariants", i, "require")
    text = str(declared.require)
    names = objects if declared.over in ("pair", "used", "lease") else ["*"]
    require: dict[str, Node] = {}
    for name in names:
        scope = scopes.invariant(declared.over, name)
        require[name] = parse_condition(text, scope, where=where, rule=declared.id)
    return Invariant(declared.id, declared.check, declared.over, require, declared.because, declared.source, where)


def _flag(declared: FlagDecl, scopes: Scopes, objects: list[str], at: Places, i: int) -> Flag:
    where = at("flags", i, "unless")
    names = objects if declared.over == "segment" else ["*"]
    unless = {
        name: parse_condition(str(declared.unless), scopes.flag(declared.over, name), where=where, rule=declared.id)
        for name in names
    }
    return Flag(declared.id, declared.over, unless, where)


def _choosing(declared: ChoosingDecl, at: Places) -> Choosing:
    where = at("choosing", "order")
    if sorted(declared.order) != sorted(ORDER):
        raise SchemaError(
            "the order of choosing does not name each of its parts once",
            where=where,
            rule="choosing",
            got=", ".join(declared.order),
            expected=", ".join(ORDER),
        )
    return Choosing(tuple(declared.order), where)


def _check_joint(objects: Mapping[str, ObjectRules], joint: Mapping[str, str]) -> None:
    for rules in objects.values():
        for option in rules.options:
            if option.joint is None:
                continue
            if option.joint not in joint:
                raise ReferenceNameError(
                    f"'{option.joint}' is no joint repair",
                    where=option.where,
                    rule=option.rule,
                    got=option.joint,
                    hint=suggest(option.joint, joint),
                )
            if option.level != joint[option.joint]:
                raise SchemaError(
                    f"the joint repair '{option.joint}' has another level",
                    where=option.where,
                    rule=option.rule,
                    got=option.level,
                    expected=joint[option.joint],
                )
