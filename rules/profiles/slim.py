"""The same model with few layers, so that real pages of every group fit into little memory."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import Constant, Group, Profile

__all__ = ["slimmed"]

_OF_ALL_LAYERS = ("row_bytes", "state_bytes")


def slimmed(profile: Profile, layers: int = 1) -> Profile:
    """A profile whose groups have so many layers, and no consumers.

    Bytes that count all layers shrink with them; pages, strides, windows and ratios stay. The receptive field stays
    too: it is a length in tokens, and decisions are those of the whole model. All groups get the same layers, from 0
    on: a group finds the peers that it does not name by the layers that it shares with them.

    Args:
        profile: The whole model.
        layers: Layers a group; a group that has fewer keeps them.

    Raises:
        ProfileError: Fewer than one layer is asked for, or a group's bytes are not shared evenly by its layers.
    """
    if layers < 1:
        raise ProfileError("a group has at least one layer", got=layers)
    groups = tuple(_slim(group, layers) for group in profile.groups)
    changed: Mapping[str, object] = {"groups": groups, "title": f"{profile.title}, slimmed to {layers} a group"}
    return Profile.model_validate({**dict(profile), **changed})


def _slim(group: Group, layers: int) -> Group:
    kept = tuple(range(min(layers, len(group.layers))))
    constants: dict[str, Constant] = dict(group.constants)
    for name in _OF_ALL_LAYERS:
        if name in constants:
            share, left = divmod(constants[name] * len(kept), len(group.layers))
            if left:
                raise ProfileError(f"{name} is not shared evenly by the layers", rule=group.id, got=constants[name])
            constants[name] = share
    return group.model_copy(update={"layers": kept, "consumers": (), "constants": constants, "note": ""})
