"""One call from names to an engine."""

from __future__ import annotations

from pathlib import Path

from hitproof.engine.decide import Engine
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.profile import Profile

__all__ = ["load"]


def load(profile: str | Path | Profile, rulebook: str | Path = "mixed_attention") -> Engine:
    """Load a rulebook, bind it to a model and compile the engine.

    Args:
        profile: A shipped profile's name, a file, or a profile.
        rulebook: An embedded rulebook's name, a folder, or a `rulebook.yaml`.

    Raises:
        HitproofError: With file, line, column and rule id.
    """
    model = profile if isinstance(profile, Profile) else load_profile(profile)
    return Engine(bind_rulebook(load_rulebook(rulebook), model))
