"""The YAML reader: what it reads, what it refuses and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.spec import yaml_tree
from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    Position,
    YamlError,
)
from hitproof.spec.yaml_tree import (
    Mapping,
    Sequence,
    parse_tree,
    plain,
    read_tree,
)


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with the C parser and with the pure Python one."""
    name = "CSafeLoader" if request.param == "libyaml" else "SafeLoader"
    if not hasattr(yaml, name):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_tree, "_LOADER", getattr(yaml, name))


def entry(text: str, key: str) -> tuple[Position, Any]:
    """The place of a key of the top mapping, and its value node."""
    tree = parse_tree(text, "f.yaml")
    assert isinstance(tree, Mapping)
    return tree.entries[key]


@pytest.mark.usefixtures("loader")
class TestReading:
    """What a document means."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            *[(word, word) for word in ("no", "yes", "on", "off", "y", "N", "No", "tRUE", "nUll", "None")],
            *[(word, True) for word in ("true", "True", "TRUE")],
            *[(word, False) for word in ("false", "False", "FALSE")],
            *[(word, None) for word in ("null", "Null", "NULL", "~", "")],
            *[("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("+7", 7), ("0x1F", 31), ("0o17", 15)],
            *[("1" * 40, int("1" * 40)), ("-0x1F", "-0x1F"), ("0b11", "0b11"), ("0xZZ", "0xZZ")],
            *[("1.5", 1.5), ("-.5", -0.5), ("2.", 2.0), ("1e3", 1000.0), ("1.5E-3", 0.0015), ("0.25", 0.25)],
            *[(text, text) for text in ("12:30", "1_000", "1,000", "2024-01-02", "1.2.3", "-x", "+", ".", "e5")],
            *[
                ('"7"', "7"),
                ("'true'", "true"),
                ('""', ""),
                ("'~'", "~"),
                ('"\\u00e9\\n"', "é\n"),
                ("'it''s'", "it's"),
            ],
            *[
                ("|\n  1\n  2\n", "1\n2\n"),
                (">-\n  a\n  b\n", "a b"),
                ("a\n  b", "a b"),
                ("[]", []),
                ("{}", {}),
            ],
            *[
                ("[1, a, [true]]", [1, "a", [True]]),
                ("{x: {y: 1}}", {"x": {"y": 1}}),
                ('["max(0, x)"]', ["max(0, x)"]),
            ],
        ],
    )
    def test_a_value_follows_the_core_schema_of_yaml_1_2(self, text: str, value: object) -> None:
        """Every scalar style and every resolution gives the stated value and Python type."""
        got = plain(parse_tree(f"k: {text}", "f.yaml"))["k"]
        assert value == got
        assert type(value) is type(got)

    def test_every_key_and_value_knows_its_place(self) -> None:
        """Lines and columns count from one, for keys, values, items and nested flow mappings."""
        text = "a: 1\nlong:\n  - x\n  - {id: y, n: [3]}\n"
        assert (Position("f.yaml", 1, 1), Position("f.yaml", 1, 4)) == (
            entry(text, "a")[0],
            entry(text, "a")[1].where,
        )
        key, listed = entry(text, "long")
        assert Position("f.yaml", 2, 1) == key
        assert Position("f.yaml", 3, 3) == listed.where
        assert Position("f.yaml", 3, 5) == listed.items[0].where
        flow = listed.items[1]
        assert Position("f.yaml", 4, 5) == flow.where
        assert Position("f.yaml", 4, 13) == flow.entries["n"][0]
        assert Position("f.yaml", 4, 17) == flow.entries["n"][1].items[0].where

    @pytest.mark.parametrize(
        ("text", "line", "column"),
        [
            ("k: abc", 1, 4),
            ('k: "abc"', 1, 5),
            ("k: 'abc'", 1, 5),
            ("k: |\n   abc", 2, 4),
            ("k: >-\r\n  abc", 2, 3),
        ],
    )
    def test_content_points_at_the_first_character_of_the_text(self, text: str, line: int, column: int) -> None:
        """Quotes and block headers are stepped over, so that a column inside an expression is right."""
        assert Position("f.yaml", line, column) == entry(text, "k")[1].content

    def test_columns_count_characters_not_bytes(self) -> None:
        """Letters outside ASCII, also outside the basic plane, take one column each."""
        assert Position("f.yaml", 1, 9) == entry("é𝄞: [ü, x]", "é𝄞")[1].items[1].where

    def test_a_byte_order_mark_changes_nothing(self) -> None:
        """The tree is the same with the mark, in bytes and in text."""
        tree = parse_tree("a: 1", "f.yaml")
        assert tree == parse_tree(b"\xef\xbb\xbfa: 1", "f.yaml")
        assert tree == parse_tree("\ufeffa: 1", "f.yaml")

    def test_windows_line_ends_keep_the_places(self) -> None:
        """A carriage return before the line feed is no line of its own."""
        assert Position("f.yaml", 2, 4) == entry("a: 1\r\nb: 2\r\n", "b")[1].where

    def test_document_markers_and_the_version_line_are_allowed(self) -> None:
        """One document may be marked at both ends."""
        assert {"a": 1} == plain(parse_tree("%YAML 1.2\n---\na: 1\n...\n", "f.yaml"))

    def test_quoted_tells_text_from_resolved_values(self) -> None:
        """A quoted 7 keeps its text and says that it was quoted."""
        bare, quoted = entry("k: 7", "k")[1], entry("k: '7'", "k")[1]
        assert (7, "7", False) == (bare.value, bare.text, bare.quoted)
        assert ("7", "7", True) == (quoted.value, quoted.text, quoted.quoted)

    def test_keys_keep_the_order_of_the_file(self) -> None:
        """The order of rules is the author's."""
        assert ["b", "a", "c"] == list(plain(parse_tree("b: 1\na: 1\nc: 1", "f.yaml")))

    def test_yes_and_no_are_good_keys(self) -> None:
        """`on`, `no` and a quoted number are text, so they can be keys."""
        assert {"on": 1, "no": 2, "7": 3} == plain(parse_tree("on: 1\nno: 2\n'7': 3", "f.yaml"))


REFUSED = [
    ("duplicate key", "a: 1\nb: 2\na: 3", DuplicateError, 3, 1, "first at line 1, column 1"),
    ("duplicate nested key", "x:\n  a: 1\n  a: 1", DuplicateError, 3, 3, "first at line 2, column 3"),
    ("duplicate flow key", "x: {a: 1, 'a': 2}", DuplicateError, 1, 11, "first at line 1, column 5"),
    ("anchor", "a: &x 1", YamlError, 1, 4, "anchors"),
    ("anchor on a list", "a:\n  - &x [1]", YamlError, 2, 5, "anchors"),
    ("alias", "a: 1\nb: *x", YamlError, 2, 4, "aliases"),
    ("alias as key", "*x : 1", YamlError, 1, 1, "aliases"),
    ("tag", "a: !!int 3", YamlError, 1, 4, "tags"),
    ("local tag", "a: !thing {b: 1}", YamlError, 1, 4, "tags"),
    ("python tag", "a: !!python/object:os.system x", YamlError, 1, 4, "tags"),
    ("tag directive", "%TAG !e! tag:e.com,2000:\n---\na: 1", YamlError, 1, 1, "tags"),
    ("older version", "%YAML 1.1\n---\na: 1", YamlError, 1, 1, "version"),
    ("merge key", "a: 1\n<<: {b: 1}", YamlError, 2, 1, "merge"),
    ("number as key", "a: 1\n2: x", YamlError, 2, 1, "key must be text"),
    ("Boolean as key", "true: x", YamlError, 1, 1, "key must be text"),
    ("nothing as key", "~: x", YamlError, 1, 1, "key must be text"),
    ("empty key", "? ~\n: x", YamlError, 1, 3, "key must be text"),
    ("list as key", "? [a]\n: b", YamlError, 1, 3, "key must be text"),
    ("mapping as key", "{{a: 1}: b}", YamlError, 1, 2, "key must be text"),
    ("two documents", "a: 1\n---\nb: 2", YamlError, 2, 1, "one document"),
    ("tab as indentation", "a:\n\tb: 1", YamlError, 2, 1, "not with tabs"),
    ("unclosed list", "a: [1,\n  2", YamlError, None, None, "line 1, column 4"),
    ("unclosed quote", 'a: 1\nb: "x', YamlError, None, None, "line 2, column 4"),
    ("colon in plain text", "a: 1\nb: x: y", YamlError, 2, 5, "quote the text"),
    ("reserved character", "a: @x", YamlError, 1, 4, "quote the text"),
    ("wrong indentation", "a: 1\n b: 2", YamlError, 2, 3, "indentation"),
    ("octal of old", "a: 1\nb: 010", YamlError, 2, 4, "leading zero"),
    ("signed leading zero", "a: -007", YamlError, 1, 4, "leading zero"),
    ("leading zero before a point", "a: 01.5", YamlError, 1, 4, "leading zero"),
    ("infinity", "a: .inf", YamlError, 1, 4, "finite"),
    ("negative infinity", "a: -.INF", YamlError, 1, 4, "finite"),
    ("not a number", "a: [.nan]", YamlError, 1, 5, "finite"),
    ("overflow", "a: 1e999", YamlError, 1, 4, "finite"),
    ("long number", "a: " + "9" * 41, InputTooLargeError, 1, 4, "too long"),
    ("very long number", "a: " + "9" * 100_000, InputTooLargeError, 1, 4, "too long"),
    ("NUL", "a: 1\nb: \x00", YamlError, 2, 4, "U+0000"),
    ("escaped NUL", 'a: "\\0"', YamlError, 1, 4, "cannot be used"),
    ("control character", "a: \x1b[31m", YamlError, 1, 4, "U+001B"),
    ("foreign line break", "a: b\u2028c", YamlError, 1, 5, "U+2028"),
    ("lone surrogate", "a: \ud800", YamlError, 1, 4, "U+D800"),
    ("nothing at all", "", YamlError, 1, 1, "empty"),
    ("only a comment", "# c\n", YamlError, 1, 1, "empty"),
    ("split expression", "- {require: implies(a, b)}", YamlError, 1, 13, "quote the expression"),
    ("split in a list", "[max(0, x)]", YamlError, 1, 2, "quote the expression"),
    ("split set", "{id: x, a in b, c: d}", YamlError, 1, 9, "quote the expression"),
    ("split with later keys", "{when: f(a, b), because: c}", YamlError, 1, 8, "quote the expression"),
    ("flow key without a value", "{a: 1, b: }", YamlError, 1, 8, "quote the expression"),
    ("no space after the colon", "{a:1}", YamlError, 1, 2, "space after the colon"),
]


@pytest.mark.usefixtures("loader")
class TestRefusing:
    """What a document may not hold."""

    @pytest.mark.parametrize(
        ("text", "kind", "line", "column", "words"),
        [case[1:] for case in REFUSED],
        ids=[c[0] for c in REFUSED],
    )
    def test_each_trap_is_refused_with_its_place(
        self, text: str, kind: type[HitproofError], line: int | None, column: int | None, words: str
    ) -> None:
        """The class, the file, the line, the column and the telling words are all there."""
        with pytest.raises(HitproofError) as caught:
            parse_tree(text, "f.yaml")
        assert kind is type(caught.value)
        assert words in str(caught.value)
        assert "f.yaml" == caught.value.where.file
        if line is not None:
            assert (line, column) == (caught.value.where.line, caught.value.where.column)
            assert str(caught.value).startswith(f"f.yaml:{line}:{column}: ")

    @pytest.mark.parametrize(
        ("data", "line", "column"),
        [
            (b"\xff\xfea\x00", 1, 1),
            (b"a: 1\nb: \xc3(", 2, 4),
            (b"\x89PNG\r\n", 1, 1),
            (b"\xef\xbb\xbfa: \xed\xa0\x80", 1, 4),
        ],
    )
    def test_bytes_that_are_not_utf_8_are_refused_with_their_place(self, data: bytes, line: int, column: int) -> None:
        """UTF-16, a picture and a coded surrogate are no UTF-8."""
        with pytest.raises(YamlError, match="not UTF-8") as caught:
            parse_tree(data, "f.yaml")
        assert Position("f.yaml", line, column) == caught.value.where

    @pytest.mark.parametrize(
        ("text", "column"),
        [("[" * 500, 41), ("{a: " * 100_000, 161), ("- " * 100_000, 81), ("[" * 41 + "]" * 41, 41)],
        ids=["lists", "mappings", "block lists", "one too many"],
    )
    def test_a_depth_bomb_is_refused_where_it_passes_the_cap(self, text: str, column: int) -> None:
        """No recursion is reached: the reader stops at the first level too many."""
        with pytest.raises(InputTooLargeError, match="nested too deeply") as caught:
            parse_tree(text, "f.yaml")
        assert Position("f.yaml", 1, column) == caught.value.where

    @pytest.mark.parametrize("text", ["[" * 1_000_000, "[\n" * 1_000_000, "{a: [" * 500_000, "- " * 1_000_000])
    def test_a_million_open_brackets_are_refused_as_too_deep(self, text: str) -> None:
        """The class is the same where the parser's own cap, on what it looks ahead, is met first."""
        with pytest.raises(InputTooLargeError, match="nested too deeply") as caught:
            parse_tree(text, "f.yaml")
        assert caught.value.where.line

    @pytest.mark.parametrize("text", ["{" * 1_000_000, "? " * 1_000_000])
    def test_a_million_nested_keys_are_refused(self, text: str) -> None:
        """A mapping as a key is refused before it can nest."""
        with pytest.raises((YamlError, InputTooLargeError)) as caught:
            parse_tree(text, "f.yaml")
        assert caught.value.where.line

    def test_the_deepest_allowed_nesting_is_read(self) -> None:
        """Forty levels are good."""
        tree = plain(parse_tree("[" * 40 + "]" * 40, "f.yaml"))
        for _ in range(39):
            tree = tree[0]
        assert [] == tree

    def test_an_alias_bomb_is_refused_at_its_first_anchor(self) -> None:
        """Nothing is ever multiplied."""
        bomb = "a: &a [x, x]\n" + "".join(
            f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
        )
        with pytest.raises(YamlError, match="anchors") as caught:
            parse_tree(bomb, "f.yaml")
        assert Position("f.yaml", 1, 4) == caught.value.where


class TestCaps:
    """Limits that the caller may set."""

    def test_too_many_values_are_refused(self) -> None:
        """Keys and values both count; the first one too many is pointed at."""
        with pytest.raises(InputTooLargeError, match="too many values") as caught:
            parse_tree("a: 1\nb: 2", "f.yaml", max_nodes=4)
        assert Position("f.yaml", 2, 4) == caught.value.where
        assert {"a": 1, "b": 2} == plain(parse_tree("a: 1\nb: 2", "f.yaml", max_nodes=5))

    def test_the_default_cap_on_values_holds(self) -> None:
        """A flat list of more than 200,000 items is refused."""
        with pytest.raises(InputTooLargeError, match="at most 200000 values and keys"):
            parse_tree("[" + "1," * 200_001 + "]", "f.yaml")

    @pytest.mark.parametrize("text", ["x" * 11, "é" * 6, b"x" * 11])
    def test_size_is_counted_in_bytes(self, text: str | bytes) -> None:
        """Six two-byte letters pass a cap of ten bytes."""
        with pytest.raises(InputTooLargeError, match="at most 10 bytes"):
            parse_tree(text, "f.yaml", limit_bytes=10)


class TestFiles:
    """What may be read from a disk."""

    def test_a_file_is_read_and_named_in_places(self, tmp_path: Path) -> None:
        """The place carries the path as it was given."""
        path = tmp_path / "a.yaml"
        path.write_text("k: v\n", encoding="utf-8")
        tree = read_tree(path)
        assert {"k": "v"} == plain(tree)
        assert Position(str(path), 1, 1) == tree.where

    def test_a_link_to_a_file_is_followed(self, tmp_path: Path) -> None:
        """Linked rule files are ordinary."""
        (tmp_path / "a.yaml").write_text("k: v\n", encoding="utf-8")
        (tmp_path / "b.yaml").symlink_to("a.yaml")
        assert {"k": "v"} == plain(read_tree(tmp_path / "b.yaml"))

    def test_a_huge_file_is_refused_unread(self, tmp_path: Path) -> None:
        """A sparse file of 100 MB is refused by its size alone."""
        path = tmp_path / "huge.yaml"
        with path.open("wb") as file:
            file.truncate(100_000_000)
        with pytest.raises(InputTooLargeError, match="got: 100000000 bytes; expected: at most 4194304 bytes") as caught:
            read_tree(path)
        assert str(path) == caught.value.where.file

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        """The path stands in the place."""
        with pytest.raises(MissingFileError, match="no such file") as caught:
            read_tree(tmp_path / "none.yaml")
        assert str(tmp_path / "none.yaml") == caught.value.where.file

    def test_folders_devices_and_pipes_are_refused(self, tmp_path: Path) -> None:
        """None of them is waited for or read without end."""
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path, Path("/dev/zero"), tmp_path / "pipe"):
            with pytest.raises(MissingFileError, match="not a regular file"):
                read_tree(path)

    @pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "a.yaml/b.yaml", "\ud800"])
    def test_a_name_that_cannot_be_a_file_is_refused(self, name: str, tmp_path: Path) -> None:
        """Odd names end in the same class of error as missing files."""
        (tmp_path / "a.yaml").write_text("k: v\n", encoding="utf-8")
        with pytest.raises(MissingFileError):
            read_tree(tmp_path / name)

    def test_a_file_without_permission_or_in_a_loop_is_refused(self, tmp_path: Path) -> None:
        """A link to itself cannot be opened."""
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(MissingFileError, match="cannot be read"):
            read_tree(tmp_path / "loop")

    def test_limits_reach_the_parser(self, tmp_path: Path) -> None:
        """Depth and count can be set for files too."""
        path = tmp_path / "a.yaml"
        path.write_text("[[1]]", encoding="utf-8")
        with pytest.raises(InputTooLargeError, match="nested"):
            read_tree(path, max_depth=1)
        with pytest.raises(InputTooLargeError, match="too many"):
            read_tree(path, max_nodes=2)


YAMLISH = st.text(st.sampled_from("ab01:-[]{},?&*!|>%@'\"#\n \t.()~<=\\xu\r\ufeffé"), max_size=60)


@pytest.mark.usefixtures("loader")
class TestFuzz:
    """Nothing that is read can raise anything but an error of ours."""

    @settings(max_examples=400, deadline=None, suppress_health_check=[])
    @given(st.binary(max_size=200))
    def test_random_bytes_raise_only_our_errors(self, data: bytes) -> None:
        """Bytes are either read or refused."""
        self.read(data)

    @settings(max_examples=1500, deadline=None)
    @given(YAMLISH)
    def test_random_punctuation_raises_only_our_errors(self, text: str) -> None:
        """Text rich in YAML's own signs is either read or refused."""
        self.read(text)

    @settings(max_examples=300, deadline=None)
    @given(st.text(max_size=60))
    def test_any_text_raises_only_our_errors(self, text: str) -> None:
        """Any letters are either read or refused."""
        self.read(text)

    @settings(max_examples=200, deadline=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(st.characters(codec="ascii")),
            lambda inner: (
                st.lists(inner, max_size=4) | st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), inner)
            ),
            max_leaves=12,
        )
    )
    def test_dumped_data_is_read_back(self, data: object) -> None:
        """What PyYAML writes in quotes is read back equal."""
        text = yaml.safe_dump(data, default_style='"', default_flow_style=False)
        if "!!" not in text and "\\0" not in text:
            assert data == plain(parse_tree(text, "f.yaml"))

    @staticmethod
    def read(source: str | bytes) -> None:
        """Read, and check each place against the text."""
        try:
            tree = parse_tree(source, "f.yaml")
        except HitproofError as error:
            assert str(error).startswith("f.yaml")
            return
        text = source.decode() if isinstance(source, bytes) else source
        check_places(tree, len(text.split("\n")) + text.count("\r"))


def check_places(node: yaml_tree.Node, lines: int) -> None:
    """Every place lies inside the text."""
    assert 1 <= node.where.line <= lines + 1
    assert 1 <= node.where.column
    if isinstance(node, Mapping):
        for where, value in node.entries.values():
            assert 1 <= where.line <= lines + 1
            check_places(value, lines)
    elif isinstance(node, Sequence):
        for item in node.items:
            check_places(item, lines)
