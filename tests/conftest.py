"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# No test may fail because the machine was busy: correctness alone decides.
settings.register_profile("hitproof", deadline=None)
settings.load_profile("hitproof")
