"""What is at hand while the rules of objects are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.rules.inherited import Inherited
from hitproof.rules.places import Places
from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.condition import AllowKnown, Node, Scope, parse_condition
from hitproof.spec.errors import Position
from hitproof.spec.rulebook import Repair
from hitproof.spec.rulefile import ObjectDecl

__all__ = ["Reading", "Subject"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The names that all objects share.

    Args:
        checks: Ids of the checks of all objects, the implicit ones included.
        roles: Roles of the peers of all objects.
        lenient: As in `resolve`.
    """

    vocabulary: Vocabulary
    scopes: Scopes
    repairs: Mapping[str, Repair]
    inherited: Inherited
    checks: frozenset[str]
    roles: frozenset[str]
    lenient: bool

    def condition(self, text: object, scope: Scope, where: Position, rule: str, known: AllowKnown = "positive") -> Node:
        """A Boolean expression; leniently, `known` may stand anywhere in it."""
        allow: AllowKnown = "any" if self.lenient else known
        return parse_condition(str(text), scope, where=where, rule=rule, allow_known=allow)

    def has_fact(self, fact: str) -> bool:
        """Whether some object has the fact."""
        return any(fact in facts for facts in self.scopes.objects.values())


@dataclass(frozen=True, slots=True)
class Subject:
    """The object whose rules are being read, where it stands, and what its rules may read."""

    name: str
    decl: ObjectDecl
    at: Places
    scope: Scope
