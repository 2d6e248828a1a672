"""Every class of bad input ends in exit code 3 and an error with place, what was got and what is right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import edit, place_of, run

TAIL = "objects/uncompressed_tail.yaml"
RULE = "uncompressed_tail/window_wide_enough"
REQUIRE = "require: group.window <= self.window_size"
TOO_DEEP = f"require: {'(' * 300}group.window <= self.window_size{')' * 300}"


@dataclass(frozen=True)
class Slip:
    """One wrong edit of the rulebook, and the error that it must give at the place of the text `at`."""

    file: str
    old: str
    new: str
    at: str
    code: str
    got: str | None
    expected: str | None = None
    rule: str | None = None
    hint: str | None = None


SLIPS = {
    "duplicate key": Slip(
        TAIL, "    title: Unc", "    pieces: point\n    title: Unc", "pieces: point", "duplicate", "pieces"
    ),
    "anchor": Slip(TAIL, "form: windowed", "form: &it windowed", "&it", "yaml", "&it", hint="remove it"),
    "alias": Slip(TAIL, "title: Uncompressed tail", "title: *it", "*it", "yaml", "*it", hint="write the value out"),
    "tag": Slip(
        TAIL,
        "title: Uncompressed tail",
        "title: !!python/name:os.system x",
        "!!python",
        "yaml",
        "tag:yaml.org,2002:python/name:os.system",
        hint="remove it, or quote the text",
    ),
    "word of YAML 1.1": Slip(
        TAIL,
        "    pieces: span",
        "    pieces: span\n    mandatory: yes",
        "yes",
        "schema",
        "yes",
        "Input should be a valid boolean",
    ),
    "octal of YAML 1.1": Slip(
        "vocabulary.yaml",
        "domain: [1, 1073741824]",
        "domain: [010, 1073741824]",
        "010",
        "yaml",
        "010",
        hint="quote it if it is text, or drop the zeros; an octal number begins with 0o",
    ),
    "comma in a flow mapping": Slip(
        TAIL,
        'needs: {first: "max(length // group.chunk * group.chunk, length - group.window + 1)", to: length}',
        "needs: {first: max(length // group.chunk * group.chunk, length - group.window + 1), to: length}",
        "max(length",
        "yaml",
        "max(length // group.chunk * group.chunk",
        hint="quote the expression",
    ),
    "unknown key": Slip(
        TAIL,
        "    pieces: span",
        "    piecs: span",
        "piecs",
        "schema",
        "piecs",
        hint="did you mean `pieces`?",
    ),
    "unknown fact": Slip(
        TAIL,
        REQUIRE,
        "require: group.window <= self.windo_size",
        "self.windo_size",
        "condition",
        "self.windo_size",
        "a fact, a need or a constant of this rule",
        RULE,
        "did you mean self.window_size?",
    ),
    "unknown check": Slip(
        TAIL,
        "mends: [sealed, same_boundary]",
        "mends: [sealed, same_bondary]",
        "same_bondary",
        "reference",
        "same_bondary",
        rule="uncompressed_tail/roll",
        hint="did you mean `same_boundary`?",
    ),
    "unknown repair": Slip(
        TAIL,
        "repair: window_roll",
        "repair: window_rol",
        "window_rol",
        "reference",
        "window_rol",
        rule="uncompressed_tail/roll",
        hint="did you mean `window_roll`?",
    ),
    "unit error": Slip(
        TAIL,
        REQUIRE,
        "require: group.window <= self.bytes",
        "group.window <= self.bytes",
        "unit",
        "tokens and bytes",
        "the same on both sides",
        RULE,
    ),
    "code": Slip(
        TAIL,
        REQUIRE,
        "require: __import__('os')",
        "'os')",
        "condition",
        "'",
        rule=RULE,
        hint="members of an enum are written bare, without quotes",
    ),
    "include circle": Slip(
        "vocabulary.yaml",
        "enums:",
        "include: [rulebook.yaml]\nenums:",
        "rulebook.yaml",
        "usage",
        "rulebook.yaml -> vocabulary.yaml -> rulebook.yaml",
    ),
    "include outside": Slip(
        "rulebook.yaml",
        "- decision.yaml",
        "- ../decision.yaml",
        "../decision.yaml",
        "usage",
        "../decision.yaml",
    ),
    "newer language": Slip("rulebook.yaml", "language: 1", "language: 2", "2", "schema", "2", "Input should be 1"),
}


@pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS.keys())
@pytest.mark.parametrize("command", ["check", "test"])
def test_a_slip_is_told_with_its_place(book: Path, slip: Slip, command: str) -> None:
    """The JSON error has the file, line, column, rule, got, expected and hint of the slip."""
    path = edit(book, slip.file, slip.old, slip.new)
    done = run(command, book, "--format", "json")
    line, column = place_of(path, slip.at)
    assert 3 == done.code
    assert "" == done.err
    error = done.error
    assert error["message"] and "\n" not in error["message"]
    assert {
        "code": slip.code,
        "file": str(path),
        "line": line,
        "column": column,
        "rule": slip.rule,
        "got": slip.got,
        "expected": slip.expected,
        "hint": slip.hint,
    } == {key: value for key, value in error.items() if key != "message"}


def test_a_deep_condition_is_refused_before_it_is_parsed(book: Path) -> None:
    """Three hundred brackets end in an error at the bracket that is one too many, not in a crash."""
    path = edit(book, TAIL, REQUIRE, TOO_DEEP)
    error = run("check", book, "--format", "json").error
    line, column = place_of(path, "((((")
    assert ("condition", str(path), line, RULE, "(") == (
        error["code"],
        error["file"],
        error["line"],
        error["rule"],
        error["got"],
    )
    assert column <= error["column"] < column + 300


def test_a_missing_include_is_told_at_its_line(book: Path) -> None:
    """The place is that of the include, and the file that is missing is named."""
    path = edit(book, "rulebook.yaml", "- decision.yaml", "- decisions.yaml")
    done = run("check", book, "--format", "json")
    line, column = place_of(path, "decisions.yaml")
    assert (3, "file", str(path), line, column) == (
        done.code,
        done.error["code"],
        done.error["file"],
        done.error["line"],
        done.error["column"],
    )
    assert str(book / "decisions.yaml") == done.error["got"]


def test_a_huge_file_is_refused_unread(book: Path) -> None:
    """A sparse file of 100 MB is refused by its size."""
    path = book / "decision.yaml"
    with path.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    done = run("check", book, "--format", "json")
    assert 3 == done.code
    assert ("too_large", str(path), "104857600 bytes", "at most 4194304 bytes") == (
        done.error["code"],
        done.error["file"],
        done.error["got"],
        done.error["expected"],
    )


@pytest.mark.parametrize(
    ("content", "place", "got"),
    [
        (b"a: 1\nb: \xff\n", (2, 4), "byte 0xFF"),
        (b"a: 1\nb: \0\n", (2, 4), "U+0000"),
        (b"", (1, 1), None),
    ],
    ids=["no UTF-8", "NUL", "empty"],
)
def test_a_binary_file_is_refused(book: Path, content: bytes, place: tuple[int, int], got: str | None) -> None:
    """Bytes that are no text are told with line and column."""
    (book / "decision.yaml").write_bytes(content)
    done = run("check", book, "--format", "json")
    assert 3 == done.code
    assert ("yaml", *place, got) == (
        done.error["code"],
        done.error["line"],
        done.error["column"],
        done.error["got"],
    )


def test_text_errors_look_like_a_compiler_s(book: Path) -> None:
    """The first line has file, line and column; got and the hint follow on lines of their own."""
    path = edit(book, TAIL, REQUIRE, "require: group.window <= self.windo_size")
    done = run("check", book)
    line, column = place_of(path, "self.windo_size")
    lines = done.err.splitlines()
    assert (3, "") == (done.code, done.out)
    assert lines[0] == f"{path}:{line}:{column}: this name is not known here"
    assert f"  rule:     {RULE}" in lines
    assert "  got:      self.windo_size" in lines
    assert "  hint:     did you mean self.window_size?" in lines
    assert "Traceback" not in done.err


def test_a_text_error_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Control characters of a name are shown as replacements."""
    done = run("check", tmp_path / "\x1b[31mred")
    assert 3 == done.code
    assert "\x1b" not in done.err


def test_a_bad_scenario_is_told_with_its_file(book: Path) -> None:
    """A scenario that names a group or a fact that does not exist ends in exit code 3 and names its file."""
    path = edit(book, "scenarios/026-read-outlives-lease.yaml", "facts: {generation: 12", "facts: {generatio: 12")
    for command in (("test", book, path), ("explain", book, "026")):
        done = run(*command, "--format", "json")
        assert (3, "reference", str(path)) == (done.code, done.error["code"], done.error["file"])
        assert "generatio" == done.error["got"]


def test_a_bad_profile_is_told_with_its_place(tmp_path: Path) -> None:
    """A profile whose peer does not exist is refused at the line of the peer."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "profile: mine\ntitle: Mine\nlayers: 1\ngroups:\n"
        "  - {id: kv, object: full_kv, layers: [0], peers: {inputs: nowhere}}\n"
    )
    done = run("check", "--profile", path, "--format", "json")
    assert (3, "profile", str(path), 5, "nowhere") == (
        done.code,
        done.error["code"],
        done.error["file"],
        done.error["line"],
        done.error["got"],
    )
