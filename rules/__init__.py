"""The shipped rulebooks, repair declarations and profiles, and the loader that reads them."""

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import load_rulebook, resolve
from hitproof.rules.scenarios import load_scenario
from hitproof.rules.source import RuleSource, embedded_rulebooks, read_source

__all__ = [
    "RuleSource",
    "bind_rulebook",
    "embedded_rulebooks",
    "load_profile",
    "load_rulebook",
    "load_scenario",
    "read_source",
    "resolve",
    "shipped_profiles",
]
