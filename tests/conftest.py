"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# No test may fail because the machine was busy: correctness alone decides.
settings.register_profile("hitproof", deadline=None)
# A build that gates others draws the same examples each time; at a desk new ones are drawn.
settings.register_profile("hitproof-ci", deadline=None, derandomize=True)
settings.load_profile("hitproof-ci" if os.environ.get("CI") else "hitproof")
