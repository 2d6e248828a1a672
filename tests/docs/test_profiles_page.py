"""The page on profiles lists the models that ship as they are, and only objects that exist."""

from __future__ import annotations

import re

import pytest

from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.spec.profile import OBJECTS
from tests.docs.console import ROOT
from tests.docs.pages import rows

PAGE = ROOT / "docs" / "profiles.md"
MODELS = {
    name: cells for name, *cells in rows(PAGE, "profile", "layers", "groups", "kinds of layers", "warm-up, tokens")
}
BESIDE = ("window_boundary", "prefix_manifest", "layer_inputs")


def test_every_shipped_model_has_its_line() -> None:
    """In the order of `profile list`."""
    assert shipped_profiles() == list(MODELS)


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_line_tells_layers_groups_and_warm_up(name: str) -> None:
    """As the profile has them."""
    profile = load_profile(name)
    layers, groups, _, warm_up = MODELS[name]
    assert str(profile.layers) == layers
    assert [group.id for group in profile.groups if group.id not in BESIDE] == re.findall(r"`(\w+)`", groups)
    field = f"{profile.constants['receptive_field']:,}" if profile.constants["warmable"] else "none"
    assert field == warm_up


def test_kinds_of_attention_become_objects() -> None:
    """Each object that attention reads is named in the first table, and no other name stands there as a group."""
    table = rows(PAGE, "attention", "groups", "what a hit at L tokens reads")
    named = {name for _, groups, _ in table for name in re.findall(r"`(\w+)`", groups)} - {"window", "chunk"}
    assert set(OBJECTS) - {"demoted_prefix", "layer_inputs"} == named
