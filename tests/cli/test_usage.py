"""Bad usage is exit code 3, an internal fault is 4, and neither shows a traceback unasked."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hitproof.cli.check
from tests.architecture.source_tree import LINKS
from tests.cli.running import run


def child(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    start = ["-m", "hitproof.cli", *arguments] if code is None else ["-c", code]
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *start], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("bogus",),
        ("profile",),
        ("trace",),
        ("check", "--bogus"),
        ("check", "one", "two"),
        ("check", "no-such-rulebook"),
        ("check", "--profile", "no-such-profile"),
        ("check", "--profile", "gemma-3-27b", "--profile", "no-such.yaml"),
        ("explain",),
        ("explain", "mixed_attention", "no-such-scenario"),
        ("explain", "mixed_attention", "0"),
        ("graph", "--object", "no_such_object"),
        ("graph", "--as", "png"),
        ("profile", "show", "no-such-profile"),
        ("profile", "from-config", "no-such.json"),
        ("replay", "no-such.jsonl", "--model", "gemma-3-27b"),
        ("replay", "no-such.jsonl", "--model", "gemma-3-27b", "--capacity", "many"),
        ("replay", "no-such.jsonl", "--model", "gemma-3-27b", "--capacity", "0"),
        ("replay", "no-such.jsonl", "--model", "gemma-3-27b", "--capacity", "1", "--retention", "some"),
        (
            "replay",
            "no-such.jsonl",
            "--model",
            "gemma-3-27b",
            "--capacity",
            "1",
            "--inject-version-changes",
            "2",
        ),
        ("schema", "--of", "everything"),
        ("schema", "--out", "no/such/folder/file.json"),
        ("test", "mixed_attention", "no-such.yaml"),
        ("trace", "synth"),
        ("trace", "synth", "--out", "no/such/folder/file.jsonl"),
        ("trace", "synth", "--out", "x.jsonl", "--requests", "0"),
        ("trace", "synth", "--out", "x.jsonl", "--seed", "-1"),
        ("verify", "--claim", "no_such_claim"),
        ("verify", "--timeout-ms", "0"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_bad_usage_is_exit_code_3(
    arguments: tuple[str, ...], as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be done is told in a sentence, on stderr or as JSON on stdout, and writes no file."""
    monkeypatch.chdir(tmp_path)
    done = run(*arguments, *(("--format=json",) if as_json else ()))
    assert 3 == done.code
    assert [] == list(tmp_path.iterdir())
    if as_json:
        assert done.error["message"]
        assert "" == done.err
    else:
        assert "" == done.out
        assert done.err and "Traceback" not in done.err


def test_an_unknown_format_is_exit_code_3() -> None:
    """A format that does not exist is told as text."""
    done = run("check", "--format", "xml")
    assert (3, "") == (done.code, done.out)
    assert "xml" in done.err


def test_an_empty_selection_is_exit_code_3(tmp_path: Path) -> None:
    """A folder without scenarios selects nothing, which is bad usage and no success."""
    done = run("test", "mixed_attention", tmp_path, "--format", "json")
    assert (3, "usage") == (done.code, done.error["code"])


@pytest.mark.parametrize("asked", [False, True], ids=["plain", "debug"])
def test_an_internal_fault_is_one_line(asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is exit code 4 and one line; the traceback comes only with --debug."""

    def broken(rulebook: str, names: object) -> dict[str, object]:
        raise RuntimeError("a promise is broken\nwith details")

    monkeypatch.setattr(hitproof.cli.check, "_report", broken)
    done = run("check", *(("--debug",) if asked else ()))
    assert (4, "") == (done.code, done.out)
    assert asked == ("Traceback" in done.err)
    assert "hitproof: internal error: RuntimeError: a promise is broken" in done.err
    assert asked or 1 == len(done.err.splitlines())
    assert "internal" == run("check", "--format", "json").error["code"]


def test_an_interruption_is_no_internal_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends in the shell's usual code 130."""

    def interrupted(rulebook: str, names: object) -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(hitproof.cli.check, "_report", interrupted)
    assert 130 == run("check").code


def test_verify_without_the_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where z3 is not installed the answer is a hint, not an import error."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "z3" else find(name))
    done = run("verify", "--format", "json")
    assert (3, "usage", "pip install 'hitproof[verify]'") == (
        done.code,
        done.error["code"],
        done.error["hint"],
    )


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_missing_library_is_told_without_it(missing: str) -> None:
    """Without typer or rich the command says what to install."""
    done = child(
        code=f"import sys; sys.modules[{missing!r}] = None\n"
        "from hitproof.cli.main import main\nsys.exit(main(['check']))"
    )
    assert 3 == done.returncode
    assert f"hitproof: the command line needs {missing}: pip install 'hitproof[cli]'\n" == done.stderr


def test_check_never_loads_the_solver() -> None:
    """`hitproof check` imports neither z3 nor torch, and `--version` not even typer."""
    code = (
        "import sys\nfrom hitproof.cli.main import main\n"
        "main(['--version'])\nlight = 'typer' not in sys.modules and 'rich' not in sys.modules\n"
        "code = main(['check'])\nprint(code, light, 'z3' in sys.modules, 'torch' in sys.modules)"
    )
    assert "0 True False False" == child(code=code).stdout.splitlines()[-1]


def test_a_closed_pipe_keeps_the_exit_code() -> None:
    """A reader that goes away does not change the answer, and no traceback is shown."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hitproof.cli", "schema"],
            env=environment,
            stdout=write_end,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    finally:
        os.close(write_end)
    assert (0, b"") == (done.returncode, done.stderr)


def test_nothing_is_coloured_off_a_terminal() -> None:
    """A pipe gets text without escape sequences."""
    done = child("check")
    assert 0 == done.returncode
    assert "\x1b" not in done.stdout + done.stderr


def test_an_ascii_terminal_gets_escapes() -> None:
    """Where the terminal cannot show a character it is escaped, and the command does not fail."""
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "hitproof.cli", "check", "\u00e9"],
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert 3 == done.returncode
    assert b"internal" not in done.stderr


def test_the_help_names_the_exit_codes() -> None:
    """`--help` succeeds and lists what the codes mean."""
    done = run("--help")
    assert 0 == done.code
    assert "3 bad input" in done.out


def test_version_is_told_by_option_and_by_command() -> None:
    """`--version` and `version` agree."""
    assert run("--version").out == run("version").out
    assert "hitproof" == run("version", "--format", "json").data["name"]
