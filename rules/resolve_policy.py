"""The rules about the system's load: pools, admission, execution, waiting, demotion, retention and policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hitproof.rules.places import Places
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.condition import Node, Scope, parse_condition
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import Fact
from hitproof.spec.policy import (
    AdmissionRule,
    DemotionRule,
    ExecutionRule,
    Policy,
    PolicyRules,
    Pool,
    RetentionRule,
    Waiting,
)
from hitproof.spec.rulefile import DemotionDecl, PolicyDecl, PoolDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node as Tree

__all__ = ["resolve_policy"]


def resolve_policy(
    parts: list[tuple[Tree, RuleFile]], vocabulary: Vocabulary, scopes: Scopes, repairs: Collection[str]
) -> PolicyRules:
    """Resolve what all files say about load; a rulebook that says nothing has no pools, rules or policies.

    Raises:
        HitproofError: With file, line, column and rule id.
    """
    return _Reader(vocabulary, scopes, repairs).read(parts)


class _Reader:
    def __init__(self, vocabulary: Vocabulary, scopes: Scopes, repairs: Collection[str]) -> None:
        self._vocabulary, self._scopes, self._repairs = vocabulary, scopes, repairs
        self._runtime: Mapping[str, Fact] = vocabulary.facts["runtime"]

    def read(self, parts: list[tuple[Tree, RuleFile]]) -> PolicyRules:
        claim = self._vocabulary.claim
        pools: dict[str, Pool] = {}
        for tree, part in parts:
            at = Places(tree)
            for i, pool in enumerate(part.pools):
                claim("pool", pool.id, at("pools", i, "id"))
                pools[pool.id] = self._pool(pool, at.under("pools", i))
                for key in ("capacity", "used", "reserved"):
                    claim("count of a pool", getattr(pool, key), at("pools", i, key))
        scope = self._scopes.plan({name: pool.demand for name, pool in pools.items()})
        admission: dict[str, AdmissionRule] = {}
        execution: dict[str, ExecutionRule] = {}
        demotion: dict[str, DemotionRule] = {}
        retention: dict[str, RetentionRule] = {}
        waiting: Waiting | None = None
        for tree, part in parts:
            at = Places(tree)
            for i, rule in enumerate(part.admission):
                claim("admission rule", rule.id, at("admission", i, "id"))
                where = at("admission", i, "require")
                require = parse_condition(str(rule.require), scope, where=where, rule=rule.id)
                admission[rule.id] = AdmissionRule(rule.id, require, rule.otherwise, rule.because, rule.source, where)
            for i, way in enumerate(part.execution):
                claim("execution rule", way.id, at("execution", i, "id"))
                where = at("execution", i, "when")
                when = parse_condition(str(way.when), scope, where=where, rule=way.id)
                execution[way.id] = ExecutionRule(way.id, when, way.then, way.because, way.source, where)
            if part.waiting is not None:
                here = at.under("waiting")
                claim("section", "waiting", here("rank"))
                rank = parse_condition(str(part.waiting.rank), scope, expect="cost", where=here("rank"), rule="waiting")
                aged = parse_condition(str(part.waiting.aged), scope, where=here("aged"), rule="waiting")
                waiting = Waiting(rank, aged, part.waiting.because, part.waiting.source, here("rank"))
            for i, leave in enumerate(part.demotion):
                claim("demotion rule", leave.id, at("demotion", i, "id"))
                demotion[leave.id] = self._demotion(leave, at.under("demotion", i))
            for i, keep in enumerate(part.retention):
                claim("retention rule", keep.id, at("retention", i, "id"))
                where = at("retention", i, "keep")
                kept = parse_condition(str(keep.keep), self._scopes.retention(), where=where, rule=keep.id)
                retention[keep.id] = RetentionRule(keep.id, kept, keep.follows, keep.because, keep.source, where)
        policies: dict[str, Policy] = {}
        found: dict[str, Mapping[str, object]] = {
            "admission": admission,
            "execution": execution,
            "demotion": demotion,
            "retention": retention,
        }
        for tree, part in parts:
            at = Places(tree)
            for i, policy in enumerate(part.policies):
                claim("policy", policy.id, at("policies", i, "id"))
                policies[policy.id] = self._policy(policy, found, scope, at.under("policies", i))
                if policy.waiting == "ranked" and waiting is None:
                    raise SchemaError(
                        "no rule says how waiting requests are ranked",
                        where=at("policies", i, "waiting"),
                        rule=policy.id,
                        got="ranked",
                        expected="a section `waiting`, or waiting: arrival",
                    )
        return PolicyRules(pools, admission, execution, waiting, demotion, retention, policies)

    def _pool(self, declared: PoolDecl, at: Places) -> Pool:
        facts = [self._fact(getattr(declared, key), key, declared.id, at) for key in ("capacity", "used", "reserved")]
        unit = facts[0].type
        for key, fact in zip(("used", "reserved"), facts[1:], strict=True):
            if fact.type != unit:
                raise SchemaError(
                    f"'{key}' has another unit than 'capacity'",
                    where=at(key),
                    rule=declared.id,
                    got=fact.type,
                    expected=unit,
                )
        demand = parse_condition(
            str(declared.demand), self._scopes.plan({}), expect=unit, where=at("demand"), rule=declared.id
        )
        return Pool(
            id=declared.id,
            capacity=declared.capacity,
            used=declared.used,
            reserved=declared.reserved,
            demand=demand,
            because=declared.because,
            source=declared.source,
            where=at("demand"),
        )

    def _fact(self, path: str, key: str, rule: str, at: Places) -> Fact:
        scope, _, name = path.partition(".")
        if scope != "runtime" or name not in self._runtime:
            known = [f"runtime.{one}" for one in self._runtime]
            raise ReferenceNameError(
                f"'{path}' is no run-time fact", where=at(key), rule=rule, got=path, hint=suggest(path, known)
            )
        fact = self._runtime[name]
        if fact.type.kind != "int":
            raise SchemaError(
                f"'{path}' cannot be counted", where=at(key), rule=rule, got=fact.type, expected="blocks or bytes"
            )
        return fact

    def _demotion(self, declared: DemotionDecl, at: Places) -> DemotionRule:
        objects = declared.objects
        for i, name in enumerate(objects or ()):
            self._known(name, self._scopes.objects, "object", at("objects", i), declared.id)
        when: dict[str, Node] = {}
        rank: dict[str, Node] = {}
        for name in objects if objects is not None else self._scopes.objects:
            scope = self._scopes.demotion(name)
            when[name] = parse_condition(str(declared.when), scope, where=at("when"), rule=declared.id)
            rank[name] = parse_condition(str(declared.rank), scope, expect="cost", where=at("rank"), rule=declared.id)
        return DemotionRule(declared.id, when, rank, declared.to, declared.because, declared.source, at("when"))

    def _policy(
        self, declared: PolicyDecl, found: Mapping[str, Mapping[str, object]], scope: Scope, at: Places
    ) -> Policy:
        for key in ("admission", "execution", "demotion"):
            names: list[str] = getattr(declared, key)
            for i, name in enumerate(names):
                self._known(name, found[key], f"{key} rule", at(key, i), declared.id)
        self._known(declared.retention, found["retention"], "retention rule", at("retention"), declared.id)
        minimise = None
        if declared.minimise is not None:
            where = at("minimise")
            minimise = parse_condition(str(declared.minimise), scope, expect="cost", where=where, rule=declared.id)
        repairs = None if declared.repairs == "all" else frozenset(declared.repairs)
        for i, name in enumerate(declared.repairs if repairs is not None else ()):
            self._known(name, self._repairs, "repair", at("repairs", i), declared.id)
        return Policy(
            id=declared.id,
            minimise=minimise,
            repairs=repairs,
            admission=tuple(declared.admission),
            execution=tuple(declared.execution),
            waiting=declared.waiting,
            demotion=tuple(declared.demotion),
            retention=declared.retention,
            because=declared.because,
            source=declared.source,
            where=at("id"),
        )

    @staticmethod
    def _known(name: str, known: Collection[str], what: str, where: Position, rule: str) -> None:
        if name not in known:
            raise ReferenceNameError(
                f"'{name}' is no {what}", where=where, rule=rule, got=name, hint=suggest(name, known)
            )
