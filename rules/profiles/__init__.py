"""The shipped model profiles, and the loader that reads these and any other."""

from hitproof.rules.profiles.loader import dump_profile, load_profile, shipped_profiles

__all__ = ["dump_profile", "load_profile", "shipped_profiles"]
