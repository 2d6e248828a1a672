"""Binding a resolved rulebook to a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from hitproof.spec.bound import BoundCheck, BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Literal, Node, Ref, bind, bind_constant, conjunction, reads
from hitproof.spec.errors import BindError, Position, SchemaError
from hitproof.spec.facts import BOOL, COST
from hitproof.spec.profile import Group, Profile
from hitproof.spec.rulebook import OF_REQUEST, PSEUDO_SOURCES, Effect, ObjectRules, Option, Rulebook, Transition

__all__ = ["bind_rulebook"]

TRUE = Literal(True, BOOL)
FREE = Literal(0.0, COST)


def bind_rulebook(rulebook: Rulebook, profile: Profile) -> BoundRulebook:
    """Bind every rule of a rulebook to the groups of a model.

    Raises:
        BindError: A constant or a peer that a rule needs is not given by the profile.
    """
    groups = [bound for group in profile.groups for bound in _bind_group(rulebook, profile, group)]
    by_id = {group.id: group for group in groups}
    order = TopologicalSorter({group.id: sorted(group.peers.values()) for group in groups}).static_order()
    return BoundRulebook(
        rulebook=rulebook,
        profile=profile,
        groups=tuple(by_id[name] for name in order),
        flags=rulebook.flags,
        invariants=rulebook.invariants,
    )


def _bind_group(rulebook: Rulebook, profile: Profile, group: Group) -> list[BoundGroup]:
    rules = rulebook.objects.get(group.object)
    if rules is None:
        raise BindError(
            f"the rulebook has no rules for '{group.object}'",
            rule=group.id,
            got=group.object,
            expected=", ".join(rulebook.objects),
        )
    constants = _constants(rulebook, profile, group)
    unknown = sorted(set(constants) - set(rulebook.group))
    if unknown:
        raise BindError(
            f"the rulebook declares no group fact '{unknown[0]}'",
            rule=f"{profile.profile}/{group.id}",
            got=unknown[0],
        )
    values: dict[str, object] = {f"group.{name}": value for name, value in constants.items()}
    peers = _peers(profile, group, rules)
    binder = _Binder(rules, values, peers, f"{profile.profile}/{group.id}")
    bound = binder.group(group, constants, rulebook)
    ranks = _ranks(constants)
    spread = {other.id: _ranks(_constants(rulebook, profile, other)) for other in profile.groups}
    for role, peer in peers.items():
        if spread[peer] not in (1, ranks):
            raise BindError(
                f"peer '{role}' of group '{group.id}' is spread over other ranks",
                rule=f"{profile.profile}/{group.id}",
                got=spread[peer],
                expected=f"1 or {ranks}" if ranks > 1 else "1",
            )
    if ranks == 1:
        return [bound]
    return [
        replace(
            bound,
            id=f"{group.id}@{rank}",
            peers={role: f"{peer}@{rank}" if spread[peer] > 1 else peer for role, peer in peers.items()},
        )
        for rank in range(ranks)
    ]


def _constants(rulebook: Rulebook, profile: Profile, group: Group) -> dict[str, int | bool]:
    """The rulebook's defaults, what the object fixes, and what the profile says of the group."""
    rules = rulebook.objects.get(group.object)
    return {**rulebook.group_defaults, **(rules.constants if rules else {}), **profile.constants_of(group)}


def _ranks(constants: Mapping[str, int | bool]) -> int:
    return max(1, int(constants.get("ranks", 1)))


def _peers(profile: Profile, group: Group, rules: ObjectRules) -> dict[str, str]:
    """Roles of the profile, and the single group that fits a role which the profile leaves out."""
    found = dict(group.peers)
    for role, peer in group.peers.items():
        wanted = rules.peers.get(role)
        got = profile.group(peer).object
        if wanted is None or got not in wanted:
            raise BindError(
                f"peer '{role}' of group '{group.id}' has the wrong object",
                rule=f"{profile.profile}/{group.id}",
                got=got,
                expected=", ".join(wanted) if wanted else f"one of the roles {', '.join(rules.peers) or 'none'}",
            )
    for role, objects in rules.peers.items():
        fitting = [
            other
            for other in profile.groups
            if other.object in objects and other.id != group.id and set(other.layers) >= set(group.layers)
        ]
        if role not in found and len(fitting) == 1:
            found[role] = fitting[0].id
    return found


class _Binder:
    def __init__(self, rules: ObjectRules, values: Mapping[str, object], peers: Mapping[str, str], rule: str) -> None:
        self.rules, self.values, self.peers, self.rule = rules, values, peers, rule

    def group(self, group: Group, constants: Mapping[str, int | bool], rulebook: Rulebook) -> BoundGroup:
        rules = self.rules
        checks = self._checks()
        ids = frozenset(check.id for check in checks)
        options = [self._option(option, ids, rulebook) for option in rules.options if self._takes_part(option)]
        every = None if rules.resumable.every is None else self.node(rules.resumable.every)
        return BoundGroup(
            id=group.id,
            rules=rules,
            layers=group.layers,
            constants=constants,
            peers=self.peers,
            needed=TRUE if rules.needed is None else self.node(rules.needed),
            raw_first=self.node(rules.needs["first"]),
            raw_to=self.node(rules.needs["to"]),
            resumable=rules.resumable.kind,
            every=int(every.value) if isinstance(every, Literal) else None,
            checks=checks,
            options=tuple(option for option in options if option.level != "full_recompute"),
            recompute=next((option for option in options if option.level == "full_recompute"), None),
            transitions=tuple(
                replace(
                    one,
                    when=self._guard(one),
                    sets={fact: self.node(value, one.where, one.id) for fact, value in one.sets.items()},
                )
                for one in rules.transitions
            ),
            dispositions=tuple(
                replace(one, when=self.node(one.when, one.where, one.id))
                for one in rulebook.dispositions[rules.name]
                if not self._missing_peers(one.when)
            ),
            healthy={
                fact: value
                if isinstance(value, str)
                else tuple(map(self.node, value))
                if isinstance(value, tuple)
                else self.node(value)
                for fact, value in rules.healthy.items()
                if not self._missing_peers(value)
            },
        )

    def node(self, node: Node, where: Position | None = None, rule: str | None = None) -> Node:
        missing = self._missing_peers(node)
        if missing:
            raise BindError(
                f"group '{self.rule}' needs a peer that the profile does not give",
                where=where,
                rule=rule or self.rule,
                got=f"no group for the role {missing[0]}",
                expected=f"a group of {' or '.join(self.rules.peers[missing[0]])}",
            )
        return bind(node, self.values, where=where, rule=rule or self.rule)

    def _guard(self, transition: Transition) -> Node | None:
        """The condition of a transition; None where the profile makes it always true."""
        if transition.when is None:
            return None
        bound = self.node(transition.when, transition.where, transition.id)
        return None if bound == TRUE else bound

    def _missing_peers(self, *values: Node | tuple[Node, ...] | str | None) -> list[str]:
        """Roles that the expressions read and the model has no group for."""
        absent = set(self.rules.peers) - set(self.peers)
        nodes = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
        paths = [path for node in nodes if node is not None and not isinstance(node, str) for path in reads(node)]
        return sorted(absent.intersection(path.partition(".")[0] for path in paths)) if absent else []

    def _checks(self) -> tuple[BoundCheck, ...]:
        found = []
        for check in self.rules.checks:
            if check.applies is not None and not bind_constant(
                check.applies, self.values, where=check.where, rule=check.rule
            ):
                continue
            require = self.node(check.require, check.where, check.rule)
            found.append(BoundCheck(check.id, check.layer, require, check.rule, check.because, check.where))
        if self.rules.domain:
            found.append(
                BoundCheck(
                    "well_formed",
                    "block_integrity",
                    conjunction(map(self.node, self.rules.domain)),
                    f"{self.rules.name}/well_formed",
                    "a segment whose facts contradict each other is no segment",
                    self.rules.where,
                )
            )
        stop = self.rules.resumable
        if stop.condition is not None:
            rule = f"{self.rules.name}/resumable"
            found.append(
                BoundCheck(
                    "resumable",
                    "group_intersection",
                    self.node(stop.condition, stop.where, rule),
                    rule,
                    "the group can resume only at its own boundaries",
                    stop.where,
                )
            )
        return tuple(found)

    def _takes_part(self, option: Option) -> bool:
        """Whether the model has every peer that the option consumes or reads, and `applies` holds of the group."""
        if any(role not in self.peers and role not in PSEUDO_SOURCES for role in option.consumes):
            return False
        effect = option.effect
        values = [*effect.sets.values(), *effect.adds.values(), *effect.resets.values(), *effect.chooses.values()]
        if self._missing_peers(option.when, option.cost, *values):
            return False
        return option.applies is None or bind_constant(
            option.applies, self.values, where=option.where, rule=option.rule
        )

    def _option(self, option: Option, checks: frozenset[str], rulebook: Rulebook) -> BoundOption:
        conditions = [] if option.when is None else [self.node(option.when, option.where, option.rule)]
        for source in OF_REQUEST:
            if source in option.consumes:
                conditions.append(Ref(f"request.has_{source}", rulebook.request[f"has_{source}"]))
        effect = self._effect(option)
        self._check_owned(option, effect, rulebook)
        return BoundOption(
            id=option.id,
            level=option.level,
            repair=option.repair,
            joint=option.joint,
            mends=frozenset(option.mends) & checks,
            peers=tuple(role for role in option.consumes if role not in PSEUDO_SOURCES),
            own_bytes="self" in option.consumes,
            history="history" in option.consumes,
            when=conjunction(conditions),
            effect=effect,
            cost=FREE if option.cost is None else self.node(option.cost, option.where, option.rule),
            rule=option.rule,
            where=option.where,
        )

    def _effect(self, option: Option) -> Effect:
        def each(values: Mapping[str, Node]) -> dict[str, Node]:
            return {fact: self.node(value, option.where, option.rule) for fact, value in values.items()}

        effect = option.effect
        return replace(
            effect,
            sets=each(effect.sets),
            adds=each(effect.adds),
            resets=each(effect.resets),
            chooses=each(effect.chooses),
        )

    def _check_owned(self, option: Option, effect: Effect, rulebook: Rulebook) -> None:
        if option.level == "full_recompute":
            return
        lost = rulebook.engine_owned - effect.keeps - set(effect.sets) - set(effect.chooses)
        if lost:
            raise SchemaError(
                "a repair would leave a fact unknown that the engine owns",
                where=option.where,
                rule=option.rule,
                got=sorted(lost)[0],
                expected="kept by the repair or set by the option",
            )
