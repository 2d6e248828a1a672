"""Gates of one model share one engine here: an engine holds nothing that changes, and takes long to compile."""

from __future__ import annotations

from functools import cache

import pytest

from hitproof.engine import Engine, load
from hitproof.integrations.gate import gate as gate_module
from hitproof.spec.profile import Profile


@cache
def _loaded(text: str, rulebook: str) -> Engine:
    return load(Profile.model_validate_json(text), rulebook)


def _load_once(profile: Profile, rulebook: str, *, strict: bool, proof: str | None) -> Engine:
    if strict:
        return load(profile, rulebook, strict=strict, proof=proof)
    return _loaded(profile.model_dump_json(), rulebook)


@pytest.fixture(autouse=True)
def _one_engine_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "load", _load_once)
