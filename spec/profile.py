"""A model as a list of cache groups: layers, constants and peers, refused when they contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from keyword import iskeyword
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    model_validator,
)

from hitproof.spec.errors import ProfileError

__all__ = [
    "Constant",
    "Group",
    "MAX_LAYERS",
    "OBJECTS",
    "ObjectName",
    "Profile",
    "expand_layers",
]

MAX_LAYERS = 4096
_MAX_CONSTANT = 2**62
_RANGE = re.compile(r"([0-9]{1,4})-([0-9]{1,4})")
_SCOPES = frozenset({"group", "kernel", "length", "needs", "request", "runtime", "self", "share"})

Constant = int | bool
ObjectName = Literal[
    "full_kv",
    "compressed_global",
    "uncompressed_tail",
    "window_boundary",
    "routing_index",
    "recurrent_state",
    "compressor_state",
    "layer_inputs",
    "demoted_prefix",
]
OBJECTS: tuple[str, ...] = get_args(ObjectName)


class _MisplacedError(ProfileError):
    """A contradiction between groups; `loc` leads from the profile to the place, for a reader of files."""

    def __init__(self, message: str, *, loc: tuple[str | int, ...] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.loc = loc


def _not_reserved(name: str) -> str:
    if iskeyword(name):
        raise ProfileError(f"{name!r} is a Python keyword, which no condition can read")
    return name


def _not_scope(role: str) -> str:
    if role in _SCOPES:
        raise ProfileError(f"{role!r} is a scope of the condition language, not a free name for a peer")
    return role


def _not_derived(name: str) -> str:
    if name == "layer_count":
        raise ProfileError("layer_count is counted from `layers`, it cannot be stated")
    return name


def _constant(value: object) -> Constant:
    if not isinstance(value, int):
        raise ProfileError("a constant is a whole number or a Boolean", got=type(value).__name__)
    if not 0 <= value <= _MAX_CONSTANT:
        raise ProfileError("a constant lies between 0 and 2**62")
    return value


def expand_layers(entries: object) -> tuple[int, ...]:
    """Turn layer numbers and inclusive ranges such as `"0-4"` into sorted layer numbers.

    Args:
        entries: A list of integers and range texts; layers count from 0.

    Raises:
        ProfileError: An entry is neither, a range runs backwards, a layer stands twice or passes the cap.
    """
    if not isinstance(entries, list | tuple):
        raise ProfileError("layers are a list of numbers and ranges such as 0-4")
    if len(entries) > MAX_LAYERS:
        raise ProfileError("too many layer entries", got=len(entries), expected=f"at most {MAX_LAYERS}")
    layers: set[int] = set()
    for entry in entries:
        span = _span(entry)
        if not layers.isdisjoint(span):
            raise ProfileError(f"layer {min(layers.intersection(span))} stands twice")
        layers.update(span)
    return tuple(sorted(layers))


def _span(entry: object) -> range:
    if isinstance(entry, int) and not isinstance(entry, bool):
        first = last = entry
    elif isinstance(entry, str) and (match := _RANGE.fullmatch(entry)):
        first, last = int(match[1]), int(match[2])
    else:
        raise ProfileError(
            "a layer is a number or a range such as 0-4",
            got=entry if isinstance(entry, str) else type(entry).__name__,
        )
    if not 0 <= first <= last < MAX_LAYERS:
        raise ProfileError(
            f"layers run upwards between 0 and {MAX_LAYERS - 1}",
            got=entry if abs(first) < 2**63 else "a larger number",
        )
    return range(first, last + 1)


_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64), AfterValidator(_not_reserved)]
_Kebab = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+|\.[0-9]+)*$", max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=1000)]
_Constants = Annotated[
    Mapping[
        Annotated[_Name, AfterValidator(_not_derived)],
        Annotated[Constant, PlainValidator(_constant, json_schema_input_type=Constant)],
    ],
    Field(max_length=64),
]
_Layers = Annotated[
    tuple[int, ...],
    BeforeValidator(expand_layers, json_schema_input_type=list[int | str]),
    Field(min_length=1),
]
_Consumers = Annotated[
    tuple[int, ...],
    BeforeValidator(expand_layers, json_schema_input_type=list[int | str]),
]


class Group(BaseModel):
    """One object's data in the layers that share its geometry.

    Sizes are in bytes and tokens; `row_bytes` and `state_bytes` count all layers of the group together,
    `stride` one page of one layer. `layers` write the data and own its bytes; `consumers` are layers that write none
    and read that of an owner.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: _Name
    object: ObjectName
    layers: _Layers
    consumers: _Consumers = ()
    constants: _Constants = Field(default_factory=dict)
    peers: Annotated[Mapping[Annotated[_Name, AfterValidator(_not_scope)], _Name], Field(max_length=16)] = Field(
        default_factory=dict
    )
    note: _Text = ""


class Profile(BaseModel):
    """A model's groups; `constants` hold for every group unless a group states its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: _Kebab
    title: _Text
    layers: Annotated[int, Field(ge=1, le=MAX_LAYERS, strict=True)]
    sources: tuple[_Text, ...] = ()
    verified_against_checkpoint: Annotated[bool, Field(strict=True)] = False
    constants: _Constants = Field(default_factory=dict)
    groups: Annotated[tuple[Group, ...], Field(min_length=1, max_length=256)]

    @property
    def name(self) -> str:
        """The profile's name, as `profile:` states it."""
        return self.profile

    def group(self, group_id: str) -> Group:
        """The group of that id.

        Raises:
            KeyError: No group has it.
        """
        for group in self.groups:
            if group.id == group_id:
                return group
        raise KeyError(group_id)

    def constants_of(self, group: Group | str) -> dict[str, Constant]:
        """The `group.` facts of a group: model-wide constants, its own over them, and `layer_count`."""
        member = self.group(group) if isinstance(group, str) else group
        return {**self.constants, **member.constants, "layer_count": len(member.layers)}

    def in_peer_order(self) -> tuple[Group, ...]:
        """The groups, each after the peers that it reads; otherwise in the profile's order."""
        return tuple(self.group(group_id) for group_id in self._peer_graph().static_order())

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in self._problems():
            raise problem
        return self

    def _problems(self) -> Iterator[_MisplacedError]:
        known = {group.id for group in self.groups}
        seen: set[str] = set()
        for index, group in enumerate(self.groups):
            if group.id in seen:
                yield _MisplacedError(f"group {group.id!r} stands twice", loc=("groups", index, "id"))
            seen.add(group.id)
            for field, layers in (("layers", group.layers), ("consumers", group.consumers)):
                if layers and layers[-1] >= self.layers:
                    yield _MisplacedError(
                        f"group {group.id!r} names a layer that the model does not have",
                        got=layers[-1],
                        expected=f"0 to {self.layers - 1}",
                        loc=("groups", index, field),
                    )
            yield from self._shared_twice(index, group)
            for role, peer in group.peers.items():
                if peer not in known:
                    yield _MisplacedError(
                        f"peer {role!r} of group {group.id!r} refers to no group of this profile",
                        got=peer,
                        hint=_closest(peer, known),
                        loc=("groups", index, "peers", role),
                    )
        try:
            self._peer_graph().prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            index = next(index for index, group in enumerate(self.groups) if group.id == circle[0])
            text = f"peers form a circle: {' -> '.join(circle)}"
            yield _MisplacedError(text, loc=("groups", index, "peers"))

    def _shared_twice(self, index: int, group: Group) -> Iterator[_MisplacedError]:
        """A layer that reads another layer's data of one kind neither owns such data nor reads it elsewhere."""
        for other in self.groups:
            if other.object != group.object:
                continue
            taken = set(other.layers) if other is group else {*other.layers, *other.consumers}
            for layer in sorted(taken.intersection(group.consumers)):
                yield _MisplacedError(
                    f"layer {layer} is a consumer of group {group.id!r} and belongs to group {other.id!r} too",
                    got=layer,
                    expected=f"one group of {group.object} for it",
                    loc=("groups", index, "consumers"),
                )

    def _peer_graph(self) -> TopologicalSorter[str]:
        return TopologicalSorter({group.id: tuple(group.peers.values()) for group in self.groups})


def _closest(name: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else None
