"""Binding a resolved rulebook to a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from hitproof.rules.bind_group import GroupBinder
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import BindError
from hitproof.spec.profile import Group, Profile
from hitproof.spec.rulebook import ObjectRules, Rulebook

__all__ = ["bind_rulebook"]


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
    binder = GroupBinder(rules, values, peers, f"{profile.profile}/{group.id}")
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
