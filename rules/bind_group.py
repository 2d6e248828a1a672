"""One group's share of a bound rulebook: its checks, options and transitions with constants and peers in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hitproof.spec.bound import BoundCheck, BoundGroup, BoundKey, BoundOption
from hitproof.spec.condition import Literal, Node, Ref, bind, bind_constant, conjunction, reads
from hitproof.spec.errors import BindError, Position, SchemaError
from hitproof.spec.facts import BOOL, COST
from hitproof.spec.profile import Group
from hitproof.spec.rulebook import OF_REQUEST, PSEUDO_SOURCES, Effect, Key, ObjectRules, Option, Rulebook, Transition

__all__ = ["GroupBinder"]

TRUE = Literal(True, BOOL)
FREE = Literal(0.0, COST)
# The engine proposes the length.
_NEVER_UNKNOWN = frozenset({"length"})


class GroupBinder:
    """Binds the rules of one object to the constants and peers of one group."""

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
            keys=tuple(self._key(key) for key in rulebook.keys.values()),
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
        return bind(node, self.values, never_unknown=_NEVER_UNKNOWN, where=where, rule=rule or self.rule)

    def _key(self, key: Key) -> BoundKey:
        """A key with the fields that the object has; one of other objects alone takes no part."""
        rule = f"keys/{key.tier}"
        fields = {f: self.node(node, key.where, rule) for f, node in key.fields.items() if f in self.rules.facts}
        begins = {field: fact for field, fact in key.begins.items() if field in fields}
        return BoundKey(key.tier, self.node(key.tokens, key.where, rule), fields, begins, key.where)

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
