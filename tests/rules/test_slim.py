"""A slimmed model is the same model with fewer layers."""

from __future__ import annotations

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import dump_profile, load_profile, shipped_profiles
from hitproof.rules.profiles.slim import slimmed
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import ProfileError
from hitproof.spec.rows import has_rows, pool_shape


@pytest.mark.parametrize("profile", shipped_profiles())
@pytest.mark.parametrize("layers", [1, 3])
def test_pages_peers_and_rules_stay_and_layers_shrink(profile: str, layers: int) -> None:
    """Pages, peers, checks and options of every group are those of the whole model, in so many layers."""
    whole = load_profile(profile)
    slim = slimmed(whole, layers)
    rulebook = load_rulebook("mixed_attention")
    shrunk = bind_rulebook(rulebook, slim)
    for before in bind_rulebook(rulebook, whole).groups:
        after = shrunk.group(before.id)
        assert before.peers == after.peers
        assert [check.id for check in before.checks] == [check.id for check in after.checks]
        assert [option.id for option in before.options] == [option.id for option in after.options]
        if has_rows(before):
            one, other = pool_shape(before, 1), pool_shape(after, 1)
            assert (one.rows, one.row_bytes, one.stride, one.alignment) == (
                other.rows,
                other.row_bytes,
                other.stride,
                other.alignment,
            )
            assert min(layers, one.layers) == other.layers


def test_can_be_written_and_read_again(tmp_path: object) -> None:
    """Its text is that of a profile."""
    slim = slimmed(load_profile("gemma-4-e2b"))
    path = f"{tmp_path}/slim.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(dump_profile(slim))
    assert slim == load_profile(path)


def test_a_group_without_layers_is_refused() -> None:
    """No group can do without a layer."""
    with pytest.raises(ProfileError):
        slimmed(load_profile("gemma-3-4b"), 0)


def test_a_share_that_is_no_whole_number_is_refused() -> None:
    """Bytes that layers do not share evenly have no share of one layer."""
    whole = load_profile("gemma-3-4b")
    group = whole.group("full")
    odd = group.model_copy(update={"constants": {**group.constants, "row_bytes": 20481}})
    groups = tuple(odd if one.id == "full" else one for one in whole.groups)
    with pytest.raises(ProfileError):
        slimmed(whole.model_copy(update={"groups": groups}))
