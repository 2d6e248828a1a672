"""Shared pieces of the verifier's tests: the embedded rulebook, its profiles, and the real engine as replayer."""

from __future__ import annotations

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.profile import Profile


@pytest.fixture(scope="session")
def source() -> RuleSource:
    """The embedded rulebook's files."""
    return read_source("mixed_attention")


@pytest.fixture(scope="session")
def profiles() -> dict[str, Profile]:
    """Every shipped profile by name."""
    return {name: load_profile(name) for name in shipped_profiles()}


@pytest.fixture(scope="session")
def replayer() -> EngineReplayer:
    """The real engine."""
    return EngineReplayer()
