"""Rulebooks and profiles as the commands take them: read, resolved, bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook

__all__ = ["Book", "open_book", "select_profiles"]


@dataclass(frozen=True, slots=True)
class Book:
    """A rulebook's files and what they mean."""

    source: RuleSource
    rules: Rulebook

    def bound(self, profile: Profile) -> BoundRulebook:
        """The rulebook bound to a model.

        Raises:
            HitproofError: They do not fit.
        """
        return bind_rulebook(self.rules, profile)


def open_book(name_or_path: str) -> Book:
    """Read and resolve a rulebook.

    Raises:
        HitproofError: With file, line, column and rule id.
    """
    source = read_source(name_or_path)
    return Book(source, resolve(source))


def select_profiles(names: Sequence[str] | None) -> list[Profile]:
    """The profiles of these names or files, or every shipped one; each once.

    Raises:
        HitproofError: One does not exist or contradicts itself.
        UsageError: Two have the same name.
    """
    found: dict[str, Profile] = {}
    for name in dict.fromkeys(names or shipped_profiles()):
        profile = load_profile(name)
        if profile.name in found:
            raise UsageError("two profiles have the same name", got=profile.name, expected="one name each")
        found[profile.name] = profile
    return list(found.values())
