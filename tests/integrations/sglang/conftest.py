"""Tests of the SGLang adapter: those that need SGLang run in an environment of their own, see its README."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from hitproof.integrations.sglang import identity

NEEDS = "SGLang is not installed here; `make integration-sglang` builds an environment for it"


@pytest.fixture(autouse=True)
def weights_as_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees that another one replaced the weights."""
    monkeypatch.setattr(identity, "_updates", [])


@pytest.fixture(scope="session")
def with_sglang() -> None:
    """Skips where SGLang is absent, and lets it be imported on a machine without an accelerator."""
    if find_spec("sglang") is None or find_spec("plain_cpu") is None:
        pytest.skip(NEEDS)
    os.environ.setdefault("SGLANG_PLATFORM", "plain_cpu")
    from tests.integrations.sglang.plain_cpu.plain_cpu.memory import unpin

    unpin()
