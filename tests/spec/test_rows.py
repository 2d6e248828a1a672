"""Pages and rows as the constants of a group state them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import Profile
from hitproof.spec.rows import has_rows, page_rows, pool_shape, rows_of


@cache
def _bound(name: str) -> BoundRulebook:
    return bind_rulebook(load_rulebook("mixed_attention"), load_profile(name))


def _with_rows() -> list[tuple[str, str]]:
    return [
        (name, group.id)
        for name in shipped_profiles()
        for group in load_profile(name).groups
        if group.constants.get("stride")
    ]


@pytest.mark.parametrize(("profile", "group"), _with_rows())
def test_pages_have_the_rows_that_the_profile_tells(profile: str, group: str) -> None:
    """The rows of a page that are derived are those of the arithmetic in the group's note; one where it names none."""
    note = re.search(r"page (\d+) x ([\d,]+)", load_profile(profile).group(group).note)
    shape = pool_shape(_bound(profile).group(group), 1)
    assert (int(note[1]) if note else 1) == shape.rows
    if note:
        assert int(note[2].replace(",", "")) == shape.row_bytes


@pytest.mark.parametrize("profile", shipped_profiles())
def test_groups_with_bytes_are_those_with_pages(profile: str) -> None:
    """Each group of a profile either states a page or holds records without bytes."""
    bound = _bound(profile)
    for group in load_profile(profile).groups:
        assert has_rows(bound.group(group.id)) == ("stride" in group.constants)


@pytest.mark.parametrize(
    ("row", "stride", "alignment", "rows"),
    [
        (132, 8640, 576, 64),
        (584, 37440, 576, 64),
        (584, 1728, 576, 2),
        (13, 640, 1, 49),
        (100, 4800, 16, 48),
        (7, 512, 512, 64),
        (40, 40, 512, 1),
    ],
)
def test_page_is_the_roundest_that_fills_the_stride(row: int, stride: int, alignment: int, rows: int) -> None:
    """Of the counts whose bytes are padded to this stride, the one with the most factors of two is taken."""
    assert rows == page_rows(row, stride, alignment)


def _group(name: str, group: str) -> BoundGroup:
    return _bound(name).group(group)


def test_spans_have_a_row_for_every_row_tokens() -> None:
    """Rows of whole entries are counted, and an entry that is not finished is none."""
    entries = _group("deepseek-v4-flash", "hca_entries")
    assert [0, 1, 2, 1] == [rows_of(entries, *span) for span in ((0, 127), (0, 128), (128, 511), (300, 384))]
    assert 100 == rows_of(_group("gemma-3-4b", "full"), 28, 128)


def test_states_have_the_rows_of_their_bytes() -> None:
    """A state has its rows whatever its tokens, and one where it states no size of a row."""
    state = _group("deepseek-v4-flash", "csa_state")
    assert [7, 7] == [rows_of(state, 0, end) for end in (4, 4096)]
    assert 1 == rows_of(_group("qwen3-next-80b-a3b", "linear"), 0, 4096)


def test_bytes_of_a_row_that_layers_do_not_share_evenly_are_refused() -> None:
    """A row that is no whole number of bytes a layer, or longer than a page, has no place in a pool."""
    whole = load_profile("gemma-3-4b")
    for change in ({"row_bytes": 20481}, {"stride": 512}):
        groups = [
            group.model_copy(update={"constants": {**group.constants, **change}}) if group.id == "full" else group
            for group in whole.groups
        ]
        broken = Profile.model_validate({**dict(whole), "groups": groups})
        with pytest.raises(ProfileError):
            pool_shape(bind_rulebook(load_rulebook("mixed_attention"), broken).group("full"), 1)
