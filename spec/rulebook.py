"""The resolved rulebook: every expression parsed and typed, every name found; not yet bound to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hitproof.spec.condition import Node
from hitproof.spec.errors import Position
from hitproof.spec.facts import Fact, Value
from hitproof.spec.leasing import Leasing
from hitproof.spec.policy import PolicyRules
from hitproof.spec.process import RecoveryProcess
from hitproof.spec.thresholds import Threshold

__all__ = [
    "Assumption",
    "Check",
    "Choosing",
    "Disposition",
    "Effect",
    "Flag",
    "Invariant",
    "Key",
    "LAYERS",
    "LEVELS",
    "OF_REQUEST",
    "ORDER",
    "ObjectRules",
    "Option",
    "PSEUDO_SOURCES",
    "Prefill",
    "Repair",
    "Resumable",
    "Rulebook",
    "Transition",
]

LAYERS = ("identity", "block_integrity", "kernel_interface", "group_intersection", "hardware_alignment")
LEVELS = ("in_place", "intra_layer", "full_recompute")
ORDER = ("price", "longer_length", "lower_level", "fewer_steps", "option_id")
"""By what sound plans are told apart, in the usual order: what comes first weighs most."""

PSEUDO_SOURCES = ("self", "tokens", "media", "history")
"""What a repair may consume that is no peer: its own bytes, the request's tokens and media, all other groups."""

OF_REQUEST = ("tokens", "media")
"""Those of them that the request brings, where its `has_tokens` and `has_media` say so."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named condition of one layer, on one object."""

    id: str
    object: str
    layer: str
    require: Node
    applies: Node | None
    because: str
    source: str
    where: Position

    @property
    def rule(self) -> str:
        """The absolute id, `object/check`."""
        return f"{self.object}/{self.id}"


@dataclass(frozen=True, slots=True)
class Effect:
    """Simultaneous changes of a segment's facts; what is neither changed nor kept becomes unknown.

    Args:
        sets: Fact to expression over the state before.
        adds: Set fact to an element that is added; unknown stays unknown.
        resets: Set fact to the one element that it then has.
        chooses: Fact to the promise that an allocator's choice meets, over the state after.
        renews: A new fingerprint is recorded of newly made bytes.
        keeps: Facts that stay as they are.
    """

    sets: Mapping[str, Node]
    adds: Mapping[str, Node]
    resets: Mapping[str, Node]
    chooses: Mapping[str, Node]
    renews: bool
    keeps: frozenset[str]


@dataclass(frozen=True, slots=True)
class Option:
    """A recovery option of one object."""

    id: str
    object: str
    level: str
    repair: str
    joint: str | None
    mends: tuple[str, ...]
    consumes: tuple[str, ...]
    applies: Node | None
    when: Node | None
    effect: Effect
    cost: Node | None
    because: str
    source: str
    where: Position

    @property
    def rule(self) -> str:
        """The absolute id, `object/option`."""
        return f"{self.object}/{self.id}"


@dataclass(frozen=True, slots=True)
class Resumable:
    """Where an object can resume: `any` length, `every` multiple, or `stored` boundaries; `condition` says so."""

    kind: str
    every: Node | None = None
    condition: Node | None = None
    where: Position = field(default_factory=Position)


@dataclass(frozen=True, slots=True)
class Transition:
    """One event of one object's form machine."""

    id: str
    object: str
    sources: tuple[str, ...]
    target: str
    pins: str
    owner: str
    actor: str
    donor: bool
    when: Node | None
    takes: tuple[str, ...]
    sets: Mapping[str, Node]
    forgets: tuple[str, ...]
    keeps_prefix: bool
    allocates: bool
    writes: bool
    moves: bool
    frees: bool
    key: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class ObjectRules:
    """All rules of one kind of cache object."""

    name: str
    title: str
    home: str
    pieces: str
    mandatory: bool
    constants: Mapping[str, int | bool]
    facts: Mapping[str, Fact]
    healthy: Mapping[str, Node | tuple[Node, ...] | str]
    domain: tuple[Node, ...]
    needs: Mapping[str, Node]
    needed: Node | None
    peers: Mapping[str, tuple[str, ...]]
    resumable: Resumable
    checks: tuple[Check, ...]
    options: tuple[Option, ...]
    transitions: tuple[Transition, ...]
    where: Position


@dataclass(frozen=True, slots=True)
class Repair:
    """The declaration of a repair; `kernels/` binds its name to an implementation.

    Args:
        alignment: Bytes; base and stride of what it writes are multiples of it.
        reads_at: Bytes; base and stride of what it reads are multiples of it.
    """

    id: str
    runs: str
    summary: str
    consumes: tuple[tuple[str, ...], ...]
    produces: tuple[str, ...]
    keeps: frozenset[str]
    clobbers: frozenset[str]
    establishes: Mapping[str, str]
    writes: str
    dtypes: tuple[str, ...]
    layouts: tuple[str, ...]
    alignment: int
    reads_at: int
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Disposition:
    """What becomes of a refused entry, per object: `keep`, `purge` or `quarantine`."""

    id: str
    object: str
    when: Node
    then: str
    where: Position


@dataclass(frozen=True, slots=True)
class Key:
    """What keys are made of in one tier.

    Args:
        tokens: Leading tokens that the key names, of a segment that ends at `length`.
        fields: Identity fact of the segment to the expression over the request that must equal it.
        begins: Field to the fact, of segment and request, from which on it takes part.
    """

    tier: str
    tokens: Node
    fields: Mapping[str, Node]
    begins: Mapping[str, str]
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Invariant:
    """What the machine must never violate; `require` is parsed once for each object."""

    id: str
    check: str
    over: str
    require: Mapping[str, Node]
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Assumption:
    """A named assumption about the environment."""

    id: str
    because: str
    where: Position


@dataclass(frozen=True, slots=True)
class Prefill:
    """Price of the tokens beyond the reused length."""

    cost: Node
    where: Position


@dataclass(frozen=True, slots=True)
class Choosing:
    """Which of all sound plans is chosen.

    Args:
        order: A permutation of `ORDER`; the first part in which two plans differ decides. `price`: the lower sum of
            repairs and prefill. `longer_length`: more is reused. `lower_level`: the severest level is less severe.
            `fewer_steps`: fewer repairs. `option_id`: the lesser ids, piece by piece in the order of the groups.
    """

    order: tuple[str, ...]
    where: Position


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag raised unless its condition is surely true; per object where it reads the segment."""

    id: str
    over: str
    unless: Mapping[str, Node]
    where: Position


@dataclass(frozen=True, slots=True)
class Rulebook:
    """Everything that was declared, with the digest of the files it came from."""

    name: str
    title: str
    digest: str
    enums: Mapping[str, tuple[str, ...]]
    request: Mapping[str, Fact]
    runtime: Mapping[str, Fact]
    kernel: Mapping[str, Fact]
    group: Mapping[str, Fact]
    group_defaults: Mapping[str, int | bool]
    environment: Mapping[str, Value]
    door: tuple[str, ...]
    engine_owned: frozenset[str]
    objects: Mapping[str, ObjectRules]
    repairs: Mapping[str, Repair]
    dispositions: Mapping[str, tuple[Disposition, ...]]
    keys: Mapping[str, Key]
    invariants: tuple[Invariant, ...]
    assumptions: Mapping[str, Assumption]
    prefill: Prefill
    choosing: Choosing
    joint: Mapping[str, str]
    flags: tuple[Flag, ...]
    policy: PolicyRules
    recovering: RecoveryProcess | None
    leasing: Leasing | None
    thresholds: Mapping[str, Threshold]
    where: Position
