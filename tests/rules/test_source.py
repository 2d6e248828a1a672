"""Rule files are read with everything that they include, and their digest tells values and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.source import MAX_FILES, embedded_rulebooks, read_source, rulebook_folder
from hitproof.spec.errors import MissingFileError, Position, SchemaError, UsageError
from hitproof.spec.rulefile import RepairFile, RuleFile
from tests.rules.broken_book import copy_book, edit

ROOT = "rulebook: small\nlanguage: 1\ntitle: A small one\ninclude: [{}]\n"


def small_book(folder: Path, *included: str, **files: str) -> Path:
    """A rulebook folder with the given includes and files, and no repairs."""
    (folder / "repairs").mkdir(parents=True)
    (folder / "rulebook.yaml").write_text(ROOT.format(", ".join(included)), "utf-8")
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return folder


def names(folder: Path) -> list[str]:
    """The files of a rulebook in the order in which they are read, from its folder."""
    return [Path(name).relative_to(folder).as_posix() for name in read_source(folder).files]


class TestNaming:
    """How a rulebook is asked for."""

    def test_the_embedded_rulebooks_are_listed(self) -> None:
        """A folder of the room with a root file is a rulebook, profiles and repairs are none."""
        assert ["mixed_attention"] == embedded_rulebooks()

    def test_a_name_a_folder_and_a_file_lead_to_the_same_rules(self) -> None:
        """All three ways give one digest and one name."""
        folder = rulebook_folder("mixed_attention")
        ways = [read_source(way) for way in ("mixed_attention", folder, folder / "rulebook.yaml")]
        assert {("mixed_attention", ways[0].digest)} == {(way.name, way.digest) for way in ways}

    def test_the_current_folder_has_a_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`.` is called by its own name and has the digest that it has from outside."""
        book = copy_book(tmp_path)
        outside = read_source(book)
        monkeypatch.chdir(book)
        assert ("book", outside.digest) == (read_source(".").name, read_source(".").digest)

    @pytest.mark.parametrize("name", ["no_such_book", "", "repairs", "mixed_attention/"])
    def test_another_name_is_told_what_there_is(self, name: str, tmp_path: Path) -> None:
        """The embedded names are listed."""
        with pytest.raises(MissingFileError, match="no such rulebook") as caught:
            read_source(tmp_path / name if name.endswith("/") else name)
        assert "mixed_attention" in str(caught.value.expected)

    def test_a_folder_s_own_repairs_take_the_place_of_the_embedded_ones(self, book: Path) -> None:
        """Where there is a folder `repairs`, nothing else is read."""
        for path in (book / "repairs").glob("*.yaml"):
            if path.name != "promote.yaml":
                path.unlink()
        assert ["promote.yaml"] == list(read_source(book).repairs)

    def test_without_repairs_of_its_own_a_folder_has_the_embedded_ones(self, tmp_path: Path) -> None:
        """A rulebook need not repeat what the kernels offer."""
        book = small_book(tmp_path / "small")
        (book / "repairs").rmdir()
        assert read_source("mixed_attention").repairs.keys() == read_source(book).repairs.keys()


class TestIncludes:
    """Which files belong to a rulebook."""

    def test_files_come_in_include_order_with_the_root_first(self, tmp_path: Path) -> None:
        """An included file is followed by what it includes itself."""
        book = small_book(tmp_path / "b", "b.yaml", "a.yaml", b="include: [c.yaml]\n", a="door: []\n", c="door: []\n")
        assert ["rulebook.yaml", "b.yaml", "c.yaml", "a.yaml"] == names(book)

    def test_a_file_that_is_included_twice_is_read_once(self, tmp_path: Path) -> None:
        """Also when it is named in two ways."""
        book = small_book(tmp_path / "b", "a.yaml", "a.yaml", "./a.yaml", "repairs/../a.yaml", a="door: []\n")
        assert ["rulebook.yaml", "a.yaml"] == names(book)

    @pytest.mark.parametrize("way", ["rulebook.yaml", "repairs/../rulebook.yaml"])
    def test_a_circle_is_told_where_it_closes(self, tmp_path: Path, way: str) -> None:
        """The files on the circle are named in order."""
        book = small_book(tmp_path / "b", "a.yaml", a="include: [b.yaml]\n", b=f"include:\n  - {way}\n")
        with pytest.raises(UsageError, match="in a circle") as caught:
            read_source(book)
        assert "rulebook.yaml -> a.yaml -> b.yaml -> rulebook.yaml" == caught.value.got
        assert Position(str(book / "b.yaml"), 2, 5) == caught.value.where

    @pytest.mark.parametrize("way", ["../other.yaml", "/etc/hostname", "link.yaml", "down/../../other.yaml"])
    def test_an_include_cannot_leave_the_folder(self, tmp_path: Path, way: str) -> None:
        """Neither by dots, nor from the root, nor through a link."""
        (tmp_path / "other.yaml").write_text("door: []\n", "utf-8")
        book = small_book(tmp_path / "b", way)
        (book / "link.yaml").symlink_to(tmp_path / "other.yaml")
        with pytest.raises(UsageError, match="leaves the rulebook's folder") as caught:
            read_source(book)
        assert (way, 4, 11) == (caught.value.got, caught.value.where.line, caught.value.where.column)

    def test_a_missing_file_is_told_at_the_include(self, tmp_path: Path) -> None:
        """The place is the line that asks for it, the file is named."""
        book = small_book(tmp_path / "b", "a.yaml")
        with pytest.raises(MissingFileError, match="included file cannot be used") as caught:
            read_source(book)
        assert Position(str(book / "rulebook.yaml"), 4, 11) == caught.value.where
        assert str(book / "a.yaml") == caught.value.got

    def test_a_folder_cannot_be_included(self, tmp_path: Path) -> None:
        """It is no regular file."""
        book = small_book(tmp_path / "b", "repairs")
        with pytest.raises(MissingFileError, match="not a regular file"):
            read_source(book)

    def test_a_file_that_is_no_mapping_is_refused(self, tmp_path: Path) -> None:
        """A rule file has sections."""
        book = small_book(tmp_path / "b", "a.yaml", a="- door\n")
        with pytest.raises(SchemaError, match="a rule file is a mapping") as caught:
            read_source(book)
        assert Position(str(book / "a.yaml"), 1, 1) == caught.value.where

    def test_the_number_of_files_is_bounded(self, tmp_path: Path) -> None:
        """A chain of includes ends in an error."""
        chain = {f"f{i}": f"include: [f{i + 1}.yaml]\n" for i in range(MAX_FILES + 1)}
        book = small_book(tmp_path / "b", "f0.yaml", **chain)
        with pytest.raises(UsageError, match="too many included files") as caught:
            read_source(book)
        assert f"at most {MAX_FILES}" == caught.value.expected


class TestParts:
    """The shapes of the files."""

    def test_every_file_has_its_shape(self, book: Path) -> None:
        """The root comes first, and repairs have a shape of their own."""
        source = read_source(book)
        shapes = [shape for _, shape in source.parts()]
        assert source.root() == shapes[0]
        assert all(isinstance(shape, RuleFile) for shape in shapes)
        assert all(isinstance(shape, RepairFile) for _, shape in source.repair_parts())

    def test_only_the_root_names_the_rulebook(self, book: Path) -> None:
        """An included file has neither a name nor a language."""
        path = edit(book, "decision.yaml", "prefill:", "language: 1\nprefill:")
        with pytest.raises(SchemaError, match="unknown key `language`") as caught:
            list(read_source(book).parts())
        assert (str(path), 2, 1) == (caught.value.where.file, caught.value.where.line, caught.value.where.column)


class TestDigest:
    """The digest names what the rules say."""

    def test_layout_and_comments_do_not_count(self, book: Path) -> None:
        """Empty lines, comments, quotes and line breaks inside a text leave the digest as it was."""
        before = read_source(book).digest
        edit(book, "decision.yaml", "prefill:\n", "# a comment\n\nprefill:\n\n")
        edit(book, "decision.yaml", "source: article 4.3\n", "source: >-\n    article\n    4.3\n")
        edit(book, "repairs/promote.yaml", "runs: kernel\n", 'runs: "kernel"   # why not\n')
        assert before == read_source(book).digest

    def test_the_order_of_keys_does_not_count(self, book: Path) -> None:
        """A mapping has no order."""
        before = read_source(book).digest
        edit(book, "repairs/promote.yaml", "repair: promote\nruns: kernel\n", "runs: kernel\nrepair: promote\n")
        assert before == read_source(book).digest

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("rulebook.yaml", "title: Mixed", "title: mixed"),
            ("vocabulary.yaml", "domain: [1, 1073741824]", "domain: [1, 1073741823]"),
            ("vocabulary.yaml", "healthy: 0.0000005", "healthy: 0.0000006"),
            ("every_object.yaml", "id: verify", "id: verifies"),
            ("objects/full_kv.yaml", "resumable: any", "resumable: {stored: self.marks}"),
            ("objects/demoted_prefix.yaml", "mandatory: false", "mandatory: true"),
            ("decision.yaml", "because: everything beyond", "because: all beyond"),
            ("repairs/checksum.yaml", "alignment: 16", "alignment: 32"),
            ("repairs/checksum.yaml", "dtypes: [bf16, fp16,", "dtypes: [fp16, bf16,"),
        ],
    )
    def test_every_value_counts(self, book: Path, file: str, old: str, new: str) -> None:
        """Numbers, texts, ids, flags, reasons and the order of a list, in rule files and repairs alike."""
        before = read_source(book).digest
        edit(book, file, old, new)
        assert before != read_source(book).digest

    def test_a_repair_with_the_name_of_a_rule_file_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither hides the other, even where both are called alike from the current folder."""
        book = copy_book(tmp_path)
        (book / "consistency.yaml").rename(book / "promote.yaml")
        edit(book, "rulebook.yaml", "consistency.yaml", "promote.yaml")
        monkeypatch.chdir(book)
        before = read_source(".").digest
        edit(book, "promote.yaml", "because: the allocator never", "because: an allocator never")
        assert before != read_source(".").digest

    def test_scenarios_do_not_count(self, book: Path) -> None:
        """A story about the rules does not change them."""
        before = read_source(book).digest
        for path in (book / "scenarios").glob("*.yaml"):
            path.unlink()
        assert before == read_source(book).digest
