"""Names that are declared and never used are told with their place, and used ones are not."""

from __future__ import annotations

import pytest

from hitproof.rules.source import RuleSource
from hitproof.rules.unused import unused_names


def told(source: RuleSource) -> set[tuple[str, str]]:
    """Kind and name of everything that is unused."""
    return {(one.kind, one.name) for one in unused_names(source)}


def test_the_embedded_rulebook_uses_all_that_it_declares(source: RuleSource) -> None:
    """Nothing in it is left over."""
    assert not told(source)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("every_object", "effects", "spare"), {"sets": {}}, ("effect", "spare")),
        (("every_object", "check_sets", "spare"), ["resident"], ("check set", "spare")),
        (("fact_sets", "spare"), ["start"], ("fact set", "spare")),
    ],
)
def test_an_unused_name_is_told(
    source: RuleSource, path: tuple[str, ...], value: object, expected: tuple[str, str]
) -> None:
    """With its kind, its name and the file it is declared in."""
    changed, where = source.edited(path, value)
    found = unused_names(changed)
    assert [expected] == [(one.kind, one.name) for one in found]
    assert where.file == found[0].where.file


def test_a_joint_repair_is_unused_once_no_option_names_it(source: RuleSource) -> None:
    """Every option that names it counts."""
    changed = source
    for _, part in source.parts():
        for name, decl in part.objects.items():
            for option in decl.recovery:
                if option.joint is not None:
                    changed, _ = changed.edited(("objects", name, "recovery", option.id, "joint"), None)
    assert {("joint repair", "warm_up")} == told(changed)


def test_a_name_that_one_rule_uses_is_used(source: RuleSource) -> None:
    """Also where the only user is a single option of a single object."""
    changed, _ = source.edited(("every_object", "effects", "spare"), {"sets": {"end": "needs.to"}})
    changed, _ = changed.edited(("objects", "full_kv", "recovery", "fill_young_end", "effects"), ["spare"])
    assert not told(changed)
