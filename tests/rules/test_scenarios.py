"""Scenario files are found, read and written, or refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.profiles import load_profile
from hitproof.rules.scenarios import dump_scenario, load_scenario, scenario_files, scenario_profile
from hitproof.rules.source import rulebook_folder
from hitproof.spec.errors import HitproofError, MissingFileError, ProfileError, SchemaError, UsageError, YamlError
from hitproof.spec.profile import Profile
from hitproof.spec.scenario import Event, Expectation, Scenario, SegmentDecl

SHIPPED = sorted((rulebook_folder("mixed_attention") / "scenarios").glob("*.yaml"))
SMALL = "scenario: small\ntitle: A small one\nprofile: gemma-3-27b\nrequest: {length: 65}\n"

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=20)
VALUES = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | TEXTS | st.lists(st.integers(0, 2**40), max_size=4)
FACTS = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), VALUES, max_size=4)
SCENARIOS = st.builds(
    Scenario,
    scenario=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True),
    title=TEXTS,
    source=st.lists(TEXTS, max_size=2),
    because=TEXTS,
    profile=st.just("gemma-3-27b"),
    request=FACTS,
    runtime=FACTS,
    kernels=st.dictionaries(st.sampled_from(["full", "window"]), FACTS, max_size=2),
    segments=st.lists(st.builds(SegmentDecl, id=TEXTS, group=TEXTS, blank=st.booleans(), facts=FACTS), max_size=2),
    events=st.lists(st.builds(Event, segment=TEXTS, trigger=TEXTS, arguments=FACTS), max_size=2),
    expect=st.builds(Expectation, length=st.none() | st.integers(0, 9), failed=st.none() | st.lists(TEXTS, max_size=2)),
)


def written(folder: Path, text: str) -> Path:
    """A scenario file with this text."""
    path = folder / "small.yaml"
    path.write_text(text, "utf-8")
    return path


class TestFiles:
    """Which files are chosen."""

    def test_without_paths_the_rulebook_s_own_are_chosen(self) -> None:
        """All of them, sorted."""
        assert SHIPPED == list(scenario_files("mixed_attention"))

    def test_folders_are_searched_and_files_taken(self, tmp_path: Path) -> None:
        """In the order in which they were named; folders to any depth."""
        (tmp_path / "deep" / "er").mkdir(parents=True)
        first, second = tmp_path / "deep" / "er" / "a.yaml", tmp_path / "b.yaml"
        for path in (first, second, tmp_path / "deep" / "note.txt"):
            path.write_text(SMALL, "utf-8")
        assert [second, first] == list(scenario_files("mixed_attention", (second, tmp_path / "deep")))

    def test_a_path_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        """By its name."""
        with pytest.raises(MissingFileError, match="no such file or folder") as caught:
            list(scenario_files("mixed_attention", (tmp_path / "none",)))
        assert str(tmp_path / "none") == caught.value.where.file

    def test_choosing_nothing_is_an_error(self, tmp_path: Path) -> None:
        """A run over no scenario would say that all passed."""
        with pytest.raises(UsageError, match="no scenario is selected") as caught:
            list(scenario_files("mixed_attention", (tmp_path,)))
        assert (str(tmp_path), "*.yaml files") == (caught.value.got, caught.value.expected)

    def test_a_rulebook_without_scenarios_is_told(self, book: Path) -> None:
        """Its folder is named."""
        (book / "scenarios").rename(book / "stories")
        with pytest.raises(MissingFileError):
            list(scenario_files(book))


class TestShipped:
    """The scenarios of the embedded rulebook."""

    @pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
    def test_a_file_is_named_after_its_scenario(self, path: Path) -> None:
        """The name in the file is the file's."""
        assert path.stem == load_scenario(path).scenario

    @pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
    def test_a_scenario_says_where_it_comes_from(self, path: Path) -> None:
        """A public failure, a reason and something that is expected."""
        scenario = load_scenario(path)
        assert scenario.source and all(scenario.source)
        assert scenario.because
        assert Expectation() != scenario.expect

    @pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
    def test_a_scenario_survives_being_written_and_read(self, path: Path, tmp_path: Path) -> None:
        """What is written is read back as the same."""
        scenario = load_scenario(path)
        assert scenario == load_scenario(written(tmp_path, dump_scenario(scenario)))


class TestReading:
    """One file."""

    def test_a_named_profile_is_a_shipped_one(self, tmp_path: Path) -> None:
        """Or one that stands in the scenario itself."""
        scenario = load_scenario(written(tmp_path, SMALL))
        assert load_profile("gemma-3-27b") == scenario_profile(scenario)
        own = load_scenario(SHIPPED[0])
        assert isinstance(own.profile, Profile) and scenario_profile(own) is own.profile

    def test_an_unknown_profile_is_told(self, tmp_path: Path) -> None:
        """When it is asked for."""
        scenario = load_scenario(written(tmp_path, SMALL.replace("gemma-3-27b", "gemma-3-28b")))
        with pytest.raises(HitproofError, match="gemma-3-28b"):
            scenario_profile(scenario)

    @pytest.mark.parametrize(
        ("old", "new", "error", "line", "column"),
        [
            ("title:", "tilte:", SchemaError, 2, 1),
            ("title: A small one\n", "", SchemaError, 1, 1),
            ("length: 65", "length: {a: 1}", SchemaError, 4, 19),
            ("scenario: small", "scenario: Small One", SchemaError, 1, 11),
            ("request:", "request: &a", YamlError, 4, 10),
            ("profile: gemma-3-27b", "profile: {profile: p, layers: 1, groups: []}", SchemaError, 3, 10),
        ],
    )
    def test_a_slip_is_told_with_its_place(
        self, tmp_path: Path, old: str, new: str, error: type[HitproofError], line: int, column: int
    ) -> None:
        """The file's name is the scenario's rule id."""
        path = written(tmp_path, SMALL.replace(old, new, 1))
        with pytest.raises(error) as caught:
            load_scenario(path)
        where = caught.value.where
        assert (str(path), line, column) == (where.file, where.line, where.column), str(caught.value)

    def test_a_contradiction_of_the_profile_is_an_error_of_the_profile(self, tmp_path: Path) -> None:
        """Its class tells it from a wrong shape, and the message says what is wrong."""
        profile = "{profile: p, title: t, layers: 1, sources: [s], groups: [{id: a, object: full_kv, layers: [3]}]}"
        with pytest.raises(ProfileError, match="names a layer that the model does not have") as caught:
            load_scenario(written(tmp_path, SMALL.replace("gemma-3-27b", profile)))
        assert (3, "3") == (caught.value.where.line, caught.value.got)


@given(scenario=SCENARIOS)
def test_any_scenario_survives_being_written_and_read(
    scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Texts that look like numbers, Booleans or nothing stay texts."""
    path = written(tmp_path_factory.mktemp("s"), dump_scenario(scenario))
    assert scenario == load_scenario(path)
