"""Segments of another rulebook are served only where somebody has said so and every name and type agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hitproof.engine.store import Found, Meaning, Migration, Receipt, Refused
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import IDENTITY, TOKENS, Fact, FactType, admit, enum_type
from tests.engine.state_cases import bound_to
from tests.engine.store.cases import GROUP, facts, got, opened, put

OLD = "0" * 64
"""Digest of an older rulebook."""


def with_facts(change: Callable[[dict[str, Fact]], Any], digest: str = OLD, **of_group: Any) -> BoundRulebook:
    """The shipped rulebook, bound, with other facts of every group's object and another digest."""
    bound = bound_to("homogeneous")
    groups = []
    for group in bound.groups:
        changed = dict(group.facts)
        change(changed)
        groups.append(replace(group, rules=replace(group.rules, facts=changed), **of_group))
    return replace(bound, rulebook=replace(bound.rulebook, digest=digest), groups=tuple(groups))


def nothing(_: dict[str, Fact]) -> None:
    """The same facts."""


def served(tmp_path: Path, stored: BoundRulebook, *migrations: Migration, today: BoundRulebook | None = None) -> Any:
    """What a store of today answers for a segment of another rulebook; facts alone are served where the bytes are."""
    known = stored.group(GROUP).facts
    with opened(tmp_path, meaning=Meaning(stored)) as store:
        put_facts = {name: admit(known[name], value) for name, value in facts().items() if name in known}
        assert isinstance(store.put("k", GROUP, put_facts, b"payload"), Receipt)
    with opened(tmp_path, meaning=Meaning(today or bound_to("homogeneous"), migrations)) as store:
        answer = store.get("k")
        assert store.facts("k") == (answer.facts if isinstance(answer, Found) else None)
        return answer.facts if isinstance(answer, Found) else answer


SAME = Migration(OLD, "only prices were changed")


def test_another_rulebook_is_refused_unless_a_way_is_declared(tmp_path: Path) -> None:
    """The same facts under another digest: refused, and served with all facts once a migration names the digest."""
    answer = served(tmp_path / "a", with_facts(nothing))
    assert isinstance(answer, Refused)
    assert answer.reason == "other_rulebook"
    assert served(tmp_path / "b", with_facts(nothing), SAME) == facts()
    other = Migration("1" * 64, "of another rulebook")
    assert served(tmp_path / "c", with_facts(nothing), other).reason == "other_rulebook"


def test_a_refused_segment_stays(tmp_path: Path) -> None:
    """Whose meaning is another today may be served again tomorrow."""
    assert served(tmp_path, with_facts(nothing)).reason == "other_rulebook"
    with opened(tmp_path, meaning=Meaning(with_facts(nothing))) as store:
        assert got(store, "k") == b"payload"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda known: known.update(colour=Fact("colour", IDENTITY)), "colour"),
        (lambda known: known.pop("adapter"), "adapter"),
        (lambda known: known.pop("layout"), "layout"),
        (lambda known: known.pop("media_from"), "media_from"),
        (lambda known: known.update(adapter=Fact("adapter", TOKENS, 0, 9)), "adapter"),
        (lambda known: known.update(end=replace(known["end"], type=FactType("int"))), "end"),
        (lambda known: known.update(tier=Fact("tier", enum_type("tier", ("device", "disk")))), "tier"),
        (lambda known: known.update(tier=Fact("tier", enum_type("level", known["tier"].type.members))), "tier"),
    ],
    ids=["unknown", "identity", "other-identity", "of-a-key", "type", "unit", "members", "enumeration"],
)
def test_a_declared_way_does_not_guess(tmp_path: Path, change: Callable[[dict[str, Fact]], Any], word: str) -> None:
    """Names that are not known today, identities that were not stored, and other types are refused, each by name."""
    answer = served(tmp_path, with_facts(change), SAME)
    assert isinstance(answer, Refused)
    assert answer.reason == "other_meaning"
    assert word in answer.detail


def test_a_fact_that_is_new_today_is_unknown(tmp_path: Path) -> None:
    """One that is no identity and was not stored is unknown, which no check takes for a yes."""
    assert served(tmp_path, with_facts(lambda known: known.pop("idle_us")), SAME) == facts(idle_us=None)


def test_a_declared_new_name_is_followed(tmp_path: Path) -> None:
    """The old name gives the new one its value; without the renaming it is refused."""

    def old(known: dict[str, Fact]) -> None:
        known["lora"] = known.pop("adapter")

    answer = served(tmp_path / "a", with_facts(old), SAME)
    assert isinstance(answer, Refused)
    renamed = Migration(OLD, "adapters had another name", {"lora": "adapter"})
    assert served(tmp_path / "b", with_facts(old), renamed) == facts(adapter=None)


def test_two_facts_do_not_become_one(tmp_path: Path) -> None:
    """A new name that the old rulebook used for something else is refused."""
    clash = Migration(OLD, "a mistake", {"weights": "adapter"})
    assert served(tmp_path, with_facts(nothing), clash).reason == "other_meaning"


def test_a_value_beyond_what_is_possible_today_is_refused(tmp_path: Path) -> None:
    """A narrower domain does not turn a known value into an unknown one."""

    def narrow(known: dict[str, Fact]) -> None:
        known["end"] = replace(known["end"], hi=10)

    answer = served(tmp_path, with_facts(nothing), SAME, today=with_facts(narrow, digest="1" * 64))
    assert isinstance(answer, Refused)
    assert (answer.reason, "end" in answer.detail) == ("other_meaning", True)


def test_another_object_or_no_group_is_another_meaning(tmp_path: Path) -> None:
    """A group's name alone says nothing of what its rows are."""
    rules = replace(bound_to("homogeneous").group(GROUP).rules, name="layer_inputs")
    bound = bound_to("homogeneous")
    group = replace(bound.group(GROUP), rules=rules)
    today = replace(bound, groups=(group,))
    assert served(tmp_path / "a", bound, today=today).reason == "other_meaning"
    today = replace(bound, groups=(replace(bound.group(GROUP), id="renamed"),))
    assert served(tmp_path / "b", bound, today=today).reason == "other_meaning"


def test_another_meaning_of_the_language_is_always_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is declared: facts of equal names may be read otherwise."""
    monkeypatch.setattr("hitproof.engine.store.meaning.SEMANTICS_VERSION", 0)
    stored = Meaning(bound_to("homogeneous"))
    monkeypatch.undo()
    with opened(tmp_path, meaning=stored) as store:
        put(store, "k")
    with opened(tmp_path) as store:
        assert got(store, "k") == "other_rulebook"


RENAMES: Mapping[str, Mapping[str, str]] = {"nowhere": {"a": "colour"}, "two-to-one": {"a": "adapter", "b": "adapter"}}


@pytest.mark.parametrize(
    "migrations",
    [
        [SAME, SAME],
        [Migration(bound_to("homogeneous").rulebook.digest, "to itself")],
        [Migration(OLD, " ")],
        *([Migration(OLD, "because", renames)] for renames in RENAMES.values()),
    ],
    ids=["twice", "itself", "no-reason", *RENAMES],
)
def test_declarations_that_make_no_sense_are_errors(migrations: list[Migration]) -> None:
    """Two from one rulebook, one to itself, one without a reason, renames to nothing or of two to one."""
    with pytest.raises(UsageError):
        Meaning(bound_to("homogeneous"), migrations)
