"""Rulebooks and profiles as the commands take them: read, resolved, bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.rates import RateSheet, load_rates, with_rates
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.yaml_fields import suggest

__all__ = ["Book", "open_book", "select_profiles", "selected"]

ALL = "all"


@dataclass(frozen=True, slots=True)
class Book:
    """A rulebook's files and what they mean."""

    source: RuleSource
    rules: Rulebook

    def bound(self, profile: Profile, sheet: RateSheet | None = None) -> BoundRulebook:
        """The rulebook bound to a model, with the rates of a file where there is one.

        Raises:
            HitproofError: They do not fit, or the rates are for another model.
        """
        bound = bind_rulebook(self.rules, profile)
        return bound if sheet is None else with_rates(bound, sheet)

    def sheet(self, path: Path | None) -> RateSheet | None:
        """The rates of a file, checked against the vocabulary; None without a file.

        Raises:
            HitproofError: With file, line and column.
        """
        return None if path is None else load_rates(path, self.rules)


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


def selected(names: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """Of a rulebook's rules of one kind those that are asked for, each once, in the rulebook's order; `all` is all.

    Raises:
        UsageError: The rulebook has no such rule.
    """
    for name in names:
        if name not in (*known, ALL):
            raise UsageError(
                f"the rulebook has no such {what}",
                got=name,
                expected=", ".join((*known, ALL)) if known else f"a rulebook that declares a {what}",
                hint=suggest(name, known),
            )
    return list(known) if ALL in names else [name for name in known if name in names]
