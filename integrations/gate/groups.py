"""Which blocks a framework keeps, and the model's profile cut into the framework's own groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import Group, Profile

__all__ = ["GroupBlocks", "gate_profile", "group_ids"]


@dataclass(frozen=True, slots=True)
class GroupBlocks:
    """The blocks of one group of a framework.

    Args:
        layers: Numbers of its layers, all of one kind of attention.
        tokens: Tokens of a block.
        stride: Bytes from one block to the next in one layer.
        address: Absolute address of block 0 in one layer.
        alignment: Bytes that the attention kernel asks for; the profile's own without.
        part_of: Id of the profile's group; needed where a layer has data in several, and found by the layers else.
    """

    layers: tuple[int, ...]
    tokens: int
    stride: int
    address: int = 0
    alignment: int | None = None
    part_of: str | None = None


def gate_profile(profile: Profile, groups: Mapping[str, GroupBlocks]) -> Profile:
    """The profile with each group that has blocks cut into the framework's groups, in their geometry.

    A framework may keep several groups of one kind of attention, each with its own table. Each becomes a group of the
    profile, whose bytes are its share of the whole by its layers.

    Args:
        profile: The model, as derived from its configuration.
        groups: The framework's groups by its own names.

    Raises:
        ProfileError: A group's layers are not of one kind, a layer is held by none or by two, a block is smaller than
            its rows, or a peer's layers are not in one group.
    """
    ids = group_ids(profile, groups)
    parts: dict[str, list[Group]] = {}
    for name, blocks in groups.items():
        whole = _whole(profile, name, blocks)
        parts.setdefault(whole.id, []).append(_part(profile, whole, ids[name], blocks))
    for whole_id, cut in parts.items():
        held = [layer for part in cut for layer in part.layers]
        expected = list(profile.group(whole_id).layers)
        if sorted(held) != expected:
            raise ProfileError(
                f"the framework's groups do not hold every layer of '{whole_id}' once",
                got=sorted(held),
                expected=expected,
            )
    kept: list[Group] = []
    for group in profile.groups:
        for part in parts.get(group.id, [group]):
            kept.append(part.model_copy(update={"peers": _peers(part, parts)}))
    return Profile.model_validate({**profile.model_dump(), "groups": [group.model_dump() for group in kept]})


def group_ids(profile: Profile, groups: Mapping[str, GroupBlocks]) -> dict[str, str]:
    """The id that each of the framework's groups has in the profile.

    Raises:
        ProfileError: A group's layers are not of one kind, or two names are one id.
    """
    ids: dict[str, str] = {}
    for name, blocks in groups.items():
        made = f"{_whole(profile, name, blocks).id}_{re.sub(r'[^a-z0-9]+', '_', str(name).lower())}"
        if made in ids.values():
            raise ProfileError("two groups of the framework have one name", got=name)
        ids[name] = made
    return ids


def _whole(profile: Profile, name: str, blocks: GroupBlocks) -> Group:
    """The group of the profile that the layers belong to."""
    if not blocks.layers or blocks.tokens < 1:
        raise ProfileError(f"group '{name}' has no layers, or no tokens a block", got=blocks)
    fitting = [
        group
        for group in profile.groups
        if {"row_bytes", "state_bytes"}.intersection(group.constants)
        and group.object != "layer_inputs"
        and set(blocks.layers) <= set(group.layers)
        and blocks.part_of in (None, group.id)
    ]
    if len(fitting) != 1:
        raise ProfileError(
            f"the layers of group '{name}' are not those of one kind of attention",
            got=blocks.layers,
            expected=", ".join(
                f"{group.id}: {group.layers}" for group in profile.groups if "stride" in group.constants
            ),
        )
    return fitting[0]


def _part(profile: Profile, whole: Group, made: str, blocks: GroupBlocks) -> Group:
    constants = dict(whole.constants)
    for name in ("row_bytes", "state_bytes"):
        if name in constants:
            constants[name] = constants[name] // len(whole.layers) * len(blocks.layers)
    constants["stride"] = blocks.stride
    if blocks.alignment is not None:
        constants["alignment"] = blocks.alignment
    if "state_bytes" in constants:
        least = constants["state_bytes"] // len(blocks.layers)
    else:
        rows = blocks.tokens // profile.constants_of(whole).get("row_tokens", 1)
        least = constants["row_bytes"] // len(blocks.layers) * rows
    if blocks.stride < least:
        raise ProfileError(
            f"a block of '{made}' has fewer bytes than the model writes into it", got=blocks.stride, expected=least
        )
    layers = tuple(sorted(blocks.layers))
    consumers = whole.consumers if layers == whole.layers else ()
    return whole.model_copy(update={"id": made, "layers": layers, "constants": constants, "consumers": consumers})


def _peers(group: Group, parts: Mapping[str, list[Group]]) -> dict[str, str]:
    """Peers by the ids of the parts: of several, the one that holds the group's own layers."""
    peers: dict[str, str] = {}
    for role, peer in group.peers.items():
        cut = parts.get(peer)
        if cut is None:
            peers[role] = peer
            continue
        fitting = [part for part in cut if len(cut) == 1 or set(group.layers) <= set(part.layers)]
        if len(fitting) != 1:
            raise ProfileError(f"the peer '{role}' of '{group.id}' is cut apart", got=peer, expected="one group for it")
        peers[role] = fitting[0].id
    return peers
