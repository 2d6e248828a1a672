"""Commands in pipelines: each format tells success, failure and bad input, and the exit code stays the command's."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import hitproof.verification.second
from hitproof.rules.source import rulebook_folder
from tests.cli.running import Done, edit, place_of, run
from tests.docs.console import ROOT

FORMATS = ("sarif", "junit", "github", "markdown")
SCENARIO = "001-index-keys-lost-on-host-roundtrip.yaml"


def places(done: Done, format: str) -> str:
    """What a format tells, as text in which a finding's place can be found."""
    if format == "sarif":
        (run_of,) = done.data["runs"]
        found = [one["locations"][0]["physicalLocation"] for one in run_of["results"]]
        return "\n".join(
            f"{one['artifactLocation']['uri']}:{one['region']['startLine']}:{one['region']['startColumn']}"
            for one in found
        )
    if format == "junit":
        return "\n".join(str(part.text) for part in ElementTree.fromstring(done.out).iter() if part.text)
    if format == "github":
        return done.out.replace(",line=", ":").replace(",col=", ":")
    return done.out


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipelines run in the checkout; JUnit needs its package."""
    pytest.importorskip("junitparser", reason="the package junitparser comes with the command line")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("format", FORMATS)
class TestEveryFormat:
    """What each of them does alike."""

    @pytest.mark.parametrize("command", ["verify", "test"])
    def test_tells_bad_input_at_its_place(self, book: Path, format: str, command: str) -> None:
        """A rule of mixed units is exit code 3 and a finding on its line; people read the same on stderr."""
        path = edit(book, "objects/uncompressed_tail.yaml", "needs.to <= self.end", "needs.to <= self.bytes")
        line, _ = place_of(path, "needs.to <= self.bytes")
        done = run(command, "book", "--format", format)
        assert 3 == done.code
        assert f"book/objects/uncompressed_tail.yaml:{line}:" in places(done, format)
        assert "two quantities of different units meet" in done.out
        assert "two quantities of different units meet" in done.err

    def test_tells_bad_usage(self, format: str) -> None:
        """What stands in no file is told too, with exit code 3 and no finding in any file."""
        done = run("verify", "--claim", "nonsense", "--format", format)
        assert 3 == done.code
        assert "there is no such claim" in done.out
        assert "yaml" not in done.out

    def test_tells_a_failed_scenario_where_it_expects(self, book: Path, format: str) -> None:
        """The finding stands at the scenario's expectation; exit code 1."""
        path = edit(book, f"scenarios/{SCENARIO}", "verdict: recompute", "verdict: reuse")
        line, column = place_of(path, "expect:")
        done = run("test", "book", path, "--format", format)
        assert 1 == done.code
        if format != "junit":
            assert f"book/scenarios/{SCENARIO}:{line}:{column}" in places(done, format)
        assert "expected reuse, got recompute" in done.out

    def test_of_scenarios_that_pass_has_no_finding(self, format: str) -> None:
        """Exit code 0, and no word of an error."""
        done = run(
            "test", "mixed_attention", rulebook_folder("mixed_attention") / "scenarios" / SCENARIO, "--format", format
        )
        assert 0 == done.code
        assert "" == places(done, format) if format in ("sarif", "junit") else "error" not in done.out

    def test_without_its_package_is_bad_usage(self, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only JUnit needs one, and says so before anything is proved; the error itself goes to stderr alone."""
        real = importlib.util.find_spec
        monkeypatch.setattr(
            "hitproof.cli.formats.junit.find_spec", lambda name: None if name == "junitparser" else real(name)
        )
        done = run("verify", "--claim", "nonsense", "--format", format)
        assert 3 == done.code
        if format == "junit":
            assert "junitparser" in done.err
            assert "" == done.out


class TestCrossCheck:
    """`verify --cross-check` with a second solver that a test puts in place."""

    ARGUMENTS = ("verify", "--profile", "gemma-3-27b", "--claim", "complete", "--jobs", "1", "--cross-check")

    @pytest.fixture
    def second(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Makes the second solver say the same of everything."""

        def says(answer: str) -> None:
            monkeypatch.setattr(hitproof.verification.second, "require_cvc5", lambda: None)
            monkeypatch.setattr(hitproof.verification.second, "Cvc5", lambda: lambda text: answer)

        return says

    @pytest.mark.parametrize("format", ["text", "json", "sarif", "junit", "github", "markdown"])
    def test_a_disagreement_is_an_internal_error(
        self, format: str, second: Callable[[str], None], tmp_path: Path
    ) -> None:
        """Exit code 4, no verdict, and the question lies in a file that the message names."""
        second("sat")
        done = run(*self.ARGUMENTS, "--format", format)
        (kept,) = tmp_path.glob("disagreement-*.smt2")
        assert 4 == done.code
        assert kept.name in done.out + done.err
        assert "proved" not in done.out
        if format == "sarif":
            (run_of,) = done.data["runs"]
            assert ([], False) == (run_of["results"], run_of["invocations"][0]["executionSuccessful"])

    def test_no_answer_is_unknown(self, second: Callable[[str], None]) -> None:
        """Exit code 2, and a finding that is a warning."""
        second("unknown")
        done = run(*self.ARGUMENTS, "--format", "sarif")
        assert 2 == done.code
        (run_of,) = done.data["runs"]
        assert {"warning"} == {one["level"] for one in run_of["results"]}

    def test_agreement_is_told(self, second: Callable[[str], None]) -> None:
        """Exit code 0, and how many questions were asked twice."""
        second("unsat")
        done = run(*self.ARGUMENTS)
        assert 0 == done.code
        assert "cvc5 agrees with Z3 on" in done.out

    def test_needs_its_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without cvc5 the command ends with exit code 3 and says what to install."""
        real = importlib.util.find_spec
        monkeypatch.setattr(
            hitproof.verification.second, "find_spec", lambda name: None if name == "cvc5" else real(name)
        )
        done = run(*self.ARGUMENTS, "--format", "json")
        assert 3 == done.code
        assert "crosscheck" in done.error["hint"]


def test_questions_are_written_with_an_index(tmp_path: Path) -> None:
    """`--emit-smt` makes the folder and fills it; with a file that remembers proofs it is refused."""
    arguments = ("verify", "--profile", "gemma-3-27b", "--claim", "complete", "--jobs", "1", "--emit-smt", "new/smt")
    assert 0 == run(*arguments).code
    index: dict[str, Any] = json.loads((tmp_path / "new" / "smt" / "index.json").read_text("utf-8"))
    assert {question["file"] for question in index["questions"]} == {
        path.name for path in (tmp_path / "new" / "smt").glob("*.smt2")
    }
    assert 3 == run(*arguments, "--proof", "proof.json").code


def test_a_strangers_folder_runs_nothing(tmp_path: Path) -> None:
    """Modules that lie in the current folder are not taken for those of the processes that a proof starts."""
    for name in ("multiprocessing", "z3", "cvc5"):
        (tmp_path / f"{name}.py").write_text("open('taken', 'w').close()\n", "utf-8")
    crossed = ["--cross-check"] if importlib.util.find_spec("cvc5") else []
    script = tmp_path / "bin" / "entry.py"
    script.parent.mkdir()
    script.write_text(
        "from hitproof.cli.main import main\n\nif __name__ == '__main__':\n    raise SystemExit(main())\n", "utf-8"
    )
    claims = ["--claim", "graph_covers_machine", "--claim", "terminates"]
    done = subprocess.run(
        [sys.executable, script, "verify", "--profile", "gemma-3-27b", *claims, "--jobs", "2", *crossed],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg"), "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not (tmp_path / "taken").exists()
    assert "graph_covers_machine" in done.stdout


class TestReports:
    """`--report FORMAT=FILE`: several formats of one run."""

    def test_are_what_the_formats_would_be(self, tmp_path: Path) -> None:
        """Each file holds what stdout would have had, beside the text for people; a failure has its exit code."""
        scenarios = rulebook_folder("mixed_attention") / "scenarios" / SCENARIO
        wanted = [f"--report={format}={tmp_path / format}" for format in FORMATS]
        done = run("test", "mixed_attention", scenarios, *wanted)
        assert 0 == done.code
        assert "1 passed, 0 failed" in done.out
        for format in FORMATS:
            alone = run("test", "mixed_attention", scenarios, "--format", format).out
            assert alone.strip() == (tmp_path / format).read_text("utf-8").strip()

    def test_tell_bad_input_too(self, book: Path, tmp_path: Path) -> None:
        """A rulebook that cannot be read leaves reports that say so, for the steps that upload them."""
        edit(book, "objects/uncompressed_tail.yaml", "needs.to <= self.end", "needs.to <= self.bytes")
        done = run("verify", "book", "--report", "sarif=log.sarif", "--report=junit=tests.xml")
        assert (3, "") == (done.code, done.out)
        (run_of,) = json.loads((tmp_path / "log.sarif").read_text("utf-8"))["runs"]
        assert ["input_unit"] == [one["ruleId"] for one in run_of["results"]]
        assert 1 == len(list(ElementTree.parse(tmp_path / "tests.xml").iter("error")))

    @pytest.mark.parametrize("wish", ["sarif", "sarif=", "text=x", "=x", "sarif=no/such/folder.sarif"])
    def test_that_cannot_be_written_are_refused(self, wish: str, tmp_path: Path) -> None:
        """Before anything is proved, with exit code 3 and without a trace of a file."""
        done = run("verify", "--claim", "sound", "--report", wish)
        assert 3 == done.code
        assert "report" in done.err or "cannot be written" in done.err
        assert [] == list(tmp_path.iterdir())
