"""A rulebook bound to a profile: constants folded, peers found, ranks spread; what engine and verifier both read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.condition import Node
from hitproof.spec.errors import Position
from hitproof.spec.facts import Fact
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Disposition, Effect, Flag, Invariant, ObjectRules, Rulebook, Transition

__all__ = ["BoundCheck", "BoundGroup", "BoundKey", "BoundOption", "BoundRulebook"]


@dataclass(frozen=True, slots=True)
class BoundCheck:
    """A check that takes part in this group."""

    id: str
    layer: str
    require: Node
    rule: str
    because: str
    where: Position


@dataclass(frozen=True, slots=True)
class BoundOption:
    """A recovery option that can apply in this group.

    Args:
        mends: Ids of the group's checks that it mends.
        peers: Roles whose segments it reads; they must be ready.
        own_bytes: It reads the segment's own bytes; identity and integrity checks that it does not mend must hold.
        history: It reads the history of all other groups; they must be clean without it.
        when: Its condition, sources of the request included.
        cost: Microseconds.
    """

    id: str
    level: str
    repair: str
    joint: str | None
    mends: frozenset[str]
    peers: tuple[str, ...]
    own_bytes: bool
    history: bool
    when: Node
    effect: Effect
    cost: Node
    rule: str
    where: Position


@dataclass(frozen=True, slots=True)
class BoundKey:
    """What the keys of this group are made of in one tier.

    Args:
        tokens: Leading tokens that the key names, of a segment that ends at `length`.
        fields: Those identity facts that the group's segments have, with what a request gives for them.
        begins: Field to the fact, of segment and request, from which on it takes part.
    """

    tier: str
    tokens: Node
    fields: Mapping[str, Node]
    begins: Mapping[str, str]
    where: Position


@dataclass(frozen=True, slots=True)
class BoundGroup:
    """One group of a model with everything that concerns it; `id` carries `@rank` where ranks are spread.

    `needs_first` and `needs_to` are the tokens that are read at a length, within the share of one piece;
    `raw_first` and `raw_to` the same for the whole group. `recompute` is the full-recompute option, if any.
    """

    id: str
    rules: ObjectRules
    layers: tuple[int, ...]
    constants: Mapping[str, int | bool]
    peers: Mapping[str, str]
    needed: Node
    raw_first: Node
    raw_to: Node
    resumable: str
    every: int | None
    checks: tuple[BoundCheck, ...]
    options: tuple[BoundOption, ...]
    recompute: BoundOption | None
    transitions: tuple[Transition, ...]
    dispositions: tuple[Disposition, ...]
    healthy: Mapping[str, Node | tuple[Node, ...] | str]
    keys: tuple[BoundKey, ...]

    @property
    def object(self) -> str:
        """Name of the object kind that the group holds."""
        return self.rules.name

    @property
    def home(self) -> str:
        """The object's home form."""
        return self.rules.home

    @property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of a segment of this group."""
        return self.rules.facts


@dataclass(frozen=True, slots=True)
class BoundRulebook:
    """All groups, each after the peers that it reads."""

    rulebook: Rulebook
    profile: Profile
    groups: tuple[BoundGroup, ...]
    flags: tuple[Flag, ...]
    invariants: tuple[Invariant, ...]

    def group(self, name: str) -> BoundGroup:
        """The group of that id.

        Raises:
            KeyError: There is none.
        """
        for group in self.groups:
            if group.id == name:
                return group
        raise KeyError(name)
