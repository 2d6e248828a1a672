"""The names that an expression may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from hitproof.spec.condition.nodes import Node
from hitproof.spec.facts import Fact

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean while an expression is parsed.

    Args:
        facts: Facts by path: `self.start`, `kv.ready`, `group.window`, `length`.
        macros: Parsed expressions by path, such as `needs.first`; they are put in place of their name.
        constants: Paths whose values are fixed when a rulebook is bound to a profile, as all of `group.`.
        aliases: Other names of enum members: `home` for the object's home form.
    """

    facts: Mapping[str, Fact]
    macros: Mapping[str, Node] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)

    def closest(self, path: str) -> str | None:
        """The known name that looks most like `path`."""
        found = get_close_matches(path, [*self.facts, *self.macros], 1)
        return found[0] if found else None
