"""The life of a lease is read as it is declared, or refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import DuplicateError, SchemaError
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "leasing.yaml"


def without(source: RuleSource) -> RuleSource:
    """The shipped rulebook without the section."""
    files = {name: tree for name, tree in source.files.items() if not name.endswith(FILE)}
    return RuleSource(source.name, files, source.repairs)


def test_steps_stand_in_file_order_with_their_reasons(rulebook: Rulebook) -> None:
    """Each phase has its steps in order; each says why, and where it comes from."""
    found = rulebook.leasing
    assert found is not None
    assert ["pin", "note"] == [step.id for step in found.take]
    assert ["same_epochs", "same_forms", "same_mapping"] == [step.id for step in found.confirm]
    assert ["fence", "unpin"] == [step.id for step in found.release]
    steps = (*found.take, *found.confirm, *found.release)
    assert all(step.because and step.source and step.where.line for step in steps)


def test_a_rulebook_may_have_none(source: RuleSource) -> None:
    """Then it decides, and nothing is held by it."""
    assert resolve(without(source)).leasing is None


def test_the_digest_tells_other_leases_apart(source: RuleSource, rulebook: Rulebook) -> None:
    """A rulebook that holds otherwise, or not at all, is another rulebook."""
    changed, _ = source.edited(("leasing", "take", "pin"), None)
    assert 3 == len({rulebook.digest, resolve(changed).digest, resolve(without(source)).digest})


def test_a_phase_may_be_empty(source: RuleSource) -> None:
    """Every step can be left out, for a test to see what it is good for."""
    for phase in ("confirm", "take", "release"):
        source, _ = source.edited(("leasing", phase), [])
    found = resolve(source).leasing
    assert found is not None
    assert ((), (), ()) == (found.take, found.confirm, found.release)


@slips(
    Slip(
        "action that does not exist",
        FILE,
        "does: compare_forms",
        "does: ¶compare_shapes",
        SchemaError,
        got="compare_shapes",
    ),
    Slip(
        "action of another phase",
        FILE,
        "does: compare_forms",
        "does: ¶unpin",
        SchemaError,
        rule="leasing/same_forms",
        got="unpin",
        expected="compare_epochs, compare_forms, compare_mapping",
        message="phase 'confirm'",
    ),
    Slip(
        "action twice",
        FILE,
        "does: compare_mapping",
        "does: ¶compare_forms",
        DuplicateError,
        rule="leasing/same_mapping",
        got="compare_forms",
        message="'compare_forms' is done twice",
    ),
    Slip(
        "step twice, over phases",
        FILE,
        "- id: unpin",
        "- id: ¶pin",
        DuplicateError,
        rule="leasing/pin",
        message="step pin stands twice",
    ),
    Slip(
        "step of an unknown phase",
        FILE,
        "  release:\n",
        "  ¶finally:\n",
        SchemaError,
        got="finally",
        hint="release",
        message="unknown key",
    ),
)
def test_a_slip_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each slip has its class, place, rule, and what was got and expected."""
    assert_told(tmp_path, slip)


def test_comparing_without_noting_is_told_at_the_comparison(source: RuleSource) -> None:
    """The first comparison is named, and what would make it possible."""
    changed, _ = source.edited(("leasing", "take", "note"), None)
    with pytest.raises(SchemaError, match="nothing is noted") as caught:
        resolve(changed)
    assert ("leasing/same_epochs", "compare_epochs") == (caught.value.rule, caught.value.got)
    assert caught.value.where.line


def test_the_section_stands_once(source: RuleSource) -> None:
    """Two files cannot both say how things are held."""
    name, tree = next((name, tree) for name, tree in source.files.items() if name.endswith(FILE))
    twice = RuleSource(source.name, {**source.files, f"{name}.again": tree}, source.repairs)
    with pytest.raises(DuplicateError, match="section leasing stands twice"):
        resolve(twice)
