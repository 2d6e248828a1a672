"""Formats for pipelines: what a command found is in each of them, at its place, whatever stands in a user's files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.cli.formats import Case, Check, Document, found_at, mutated, verified
from hitproof.cli.formats.compared import compared
from hitproof.cli.formats.document import MAX_FINDINGS, few, one_line
from hitproof.cli.formats.github import github_annotations
from hitproof.cli.formats.junit import junit_xml
from hitproof.cli.formats.markdown import markdown_summary
from hitproof.cli.formats.sarif import sarif_log
from hitproof.spec.mutation import EditFate, MutationReport
from hitproof.spec.proof import ClaimResult, Counterexample, MutantResult, VerifyReport
from hitproof.verification.diff.report import Difference, DiffReport, Relation

PROFILES = ("gemma-3-27b", "gpt-oss-20b")


def result(claim: str, profile: str, verdict: str, place: str = "", sentence: str = "it starts late") -> ClaimResult:
    """The verdict on a claim, with a counterexample where a place is given."""
    found = Counterexample(sentence=sentence, rule="tail/covers", place=place, scenario=None, replayed=True)
    return ClaimResult(
        id=claim,
        verdict=verdict,  # type: ignore[arg-type]
        seconds=0.5,
        method="questions",
        profile=profile,
        sentence=f"{claim} holds",
        assumptions=["writers_tell"],
        obligations=3,
        detail="" if place else "no time",
        counterexample=found if place else None,
    )


def mutant(verdict: str) -> MutantResult:
    """A mutant of the claim `complete` with this verdict."""
    asked = result("complete", PROFILES[0], verdict)
    return MutantResult(
        id="no_media",
        claim="complete",
        place="book/m.yaml:7:3",
        change="drops a condition",
        killed=verdict == "refuted",
        profile=PROFILES[0],
        result=asked,
    )


def report(*results: ClaimResult, mutants: tuple[MutantResult, ...] = ()) -> VerifyReport:
    """A report with these results."""
    return VerifyReport(
        rulebook="book", digest="d" * 64, verdict="refuted", claims=list(results), mutants=list(mutants)
    )


REPORT = report(
    result("sound", PROFILES[0], "refuted", "book/tail.yaml:40:18"),
    result("sound", PROFILES[1], "refuted", "book/tail.yaml:40:18"),
    result("complete", PROFILES[0], "unknown"),
    result("complete", PROFILES[1], "proved"),
    mutants=(mutant("refuted"), mutant("proved").model_copy(update={"id": "survivor"})),
)
DOCUMENT = verified(REPORT, "book/rulebook.yaml")


def run_of(document: Document) -> Any:
    """The only run of the SARIF log, which is valid JSON."""
    (run,) = json.loads(json.dumps(sarif_log(document, "1.0"), allow_nan=False))["runs"]
    return run


def cases_of(document: Document) -> list[Any]:
    """The test cases of the JUnit report."""
    pytest.importorskip("junitparser", reason="the package junitparser comes with the command line")
    return list(ElementTree.fromstring(junit_xml(document)).iter("testcase"))


class TestSarif:
    """Logs for code scanning."""

    def test_has_a_result_a_finding_with_its_rule_and_place(self) -> None:
        """What two models share is one result; every index points to the rule that is named."""
        run = run_of(DOCUMENT)
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        told = [
            (
                rules[one["ruleIndex"]],
                one["level"],
                one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                one["locations"][0]["physicalLocation"]["region"]["startLine"],
            )
            for one in run["results"]
        ]
        assert [
            ("sound", "error", "book/tail.yaml", 40),
            ("complete", "warning", "book/rulebook.yaml", 1),
            ("complete", "error", "book/m.yaml", 7),
        ] == told
        assert [one["ruleId"] for one in run["results"]] == [one[0] for one in told]
        assert "gemma-3-27b, gpt-oss-20b" in run["results"][0]["message"]["text"]

    def test_has_what_code_scanning_asks_of_every_rule_and_result(self) -> None:
        """Names are unique, texts are not empty, lines and columns start at 1, fingerprints differ."""
        run = run_of(DOCUMENT)
        rules = run["tool"]["driver"]["rules"]
        assert len({rule["id"] for rule in rules}) == len({rule["name"] for rule in rules}) == len(rules)
        for rule in rules:
            assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        for one in run["results"]:
            assert one["message"]["text"]
            assert 1 <= min(one["locations"][0]["physicalLocation"]["region"].values())
        prints = [one["partialFingerprints"]["hitproofFinding/v1"] for one in run["results"]]
        assert len(set(prints)) == len(prints)
        assert run["invocations"] == [{"executionSuccessful": True}]

    def test_of_what_is_proved_has_no_result(self) -> None:
        """Earlier alerts end with it."""
        assert [] == run_of(verified(report(result("sound", PROFILES[0], "proved")), "book/rulebook.yaml"))["results"]

    def test_keeps_fingerprints_where_lines_and_values_change(self) -> None:
        """A finding that moved, or whose counterexample tells other numbers, stays; another rule is another."""

        def prints(place: str, sentence: str, rule: str = "tail/covers") -> str:
            finding = found_at(place, "sound", sentence, error=True, rule=rule)
            document = Document("verify", "book", "refuted", [Check("sound", "s", "h")], [finding])
            text: str = run_of(document)["results"][0]["partialFingerprints"]["hitproofFinding/v1"]
            return text

        first = prints("book/tail.yaml:40:18", "at length 64")
        assert first == prints("book/tail.yaml:55:2", "at length 65")
        assert first != prints("book/index.yaml:40:18", "at length 64")
        assert first != prints("book/tail.yaml:40:18", "at length 64", "tail/other")

    def test_names_files_as_the_checkout_does(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file below the current folder is relative to it; one elsewhere has its whole address."""
        inside, outside = tmp_path / "in", tmp_path / "out"
        inside.mkdir()
        monkeypatch.chdir(inside)
        places = (inside / "ä b.yaml", inside / "..odd" / "x.yaml", outside / "ö.yaml")
        findings = [found_at(f"{place}:3:1", "sound", "x", error=True) for place in places]
        document = replace(DOCUMENT, findings=findings)
        located = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in run_of(document)["results"]]
        assert ["ä b.yaml", "..odd/x.yaml"] == [unquote(one["uri"]) for one in located[:2]]
        assert all(one["uri"].isascii() for one in located)
        assert ["%SRCROOT%", "%SRCROOT%", None] == [one.get("uriBaseId") for one in located]
        assert ("file", str(outside / "ö.yaml")) == (
            urlsplit(located[2]["uri"]).scheme,
            unquote(urlsplit(located[2]["uri"]).path),
        )

    def test_is_bounded(self) -> None:
        """More findings than code scanning takes are left out."""
        many = [found_at(f"a.yaml:{line}:1", "sound", "x", error=True) for line in range(1, MAX_FINDINGS + 10)]
        assert MAX_FINDINGS == len(run_of(replace(DOCUMENT, findings=many))["results"])

    def test_has_no_link_of_a_users_text(self) -> None:
        """What looks like a link is shown as it stands."""
        finding = found_at("a.yaml:1:1", "sound", "see [this](https://evil.example) and [that]", error=True)
        text = run_of(replace(DOCUMENT, findings=[finding]))["results"][0]["message"]["text"]
        assert r"see \[this](https://evil.example) and [that]" == text


class TestJunit:
    """Reports of tests."""

    def test_has_a_case_a_claim_and_model_and_one_a_mutant(self) -> None:
        """Refuted is a failure, unknown an error, a surviving mutant a failure, a refuted one no news."""
        told = [(case.get("classname"), case.get("name"), [part.tag for part in case]) for case in cases_of(DOCUMENT)]
        assert [
            ("book.sound", PROFILES[0], ["failure"]),
            ("book.sound", PROFILES[1], ["failure"]),
            ("book.complete", PROFILES[0], ["error"]),
            ("book.complete", PROFILES[1], []),
            ("book.complete.mutants", "no_media", []),
            ("book.complete.mutants", "survivor", ["failure"]),
        ] == told

    def test_counts_and_tells(self) -> None:
        """Sums stand at the top; a failure has its place and sentence, and its file for links."""
        pytest.importorskip("junitparser", reason="the package junitparser comes with the command line")
        top = ElementTree.fromstring(junit_xml(DOCUMENT))
        assert ("6", "3", "1") == (top.get("tests"), top.get("failures"), top.get("errors"))
        case = next(top.iter("testcase"))
        assert "book/tail.yaml" == case.get("file")
        assert case[0].get("message") == case[0].text == "book/tail.yaml:40:18: it starts late"

    def test_undecided_mutants_are_errors(self) -> None:
        """Nobody knows whether the claim would notice."""
        (case,) = cases_of(verified(report(mutants=(mutant("unknown"),)), "book"))
        assert ["error"] == [part.tag for part in case]


class TestGithub:
    """Workflow commands."""

    def test_has_a_line_a_finding_and_the_verdict(self) -> None:
        """Place, level and message stand where GitHub looks for them."""
        lines = github_annotations(DOCUMENT).splitlines()
        assert lines[0].startswith("::error file=book/tail.yaml,line=40,col=18,title=hitproof sound::sound is refuted")
        assert lines[1].startswith("::warning file=book/rulebook.yaml,line=1,col=1,")
        assert lines[-1] == "::notice title=hitproof verify::book: refuted"
        assert 4 == len(lines)

    def test_properties_are_escaped(self) -> None:
        """A file's name can end neither its property nor the line."""
        finding = found_at("a,title=x::b\n::error::c%.yaml:3:4", "sound", "100%", error=True)
        (line, _) = github_annotations(replace(DOCUMENT, findings=[finding])).splitlines()
        assert "::error file=a%2Ctitle=x%3A%3Ab%0A%3A%3Aerror%3A%3Ac%25.yaml,line=3,col=4," in line
        assert line.endswith("::100%25")


class TestMarkdown:
    """Summaries."""

    def test_has_a_row_a_claim_and_a_line_a_finding(self) -> None:
        """How many models a claim is proved for, which it is not proved for, and where it fails."""
        lines = markdown_summary(DOCUMENT).splitlines()
        assert "## hitproof verify: book: refuted" == lines[0]
        assert "| sound | 0 of 2 | refuted for gemma-3-27b, gpt-oss-20b | 6 |" in lines
        assert "| complete | 1 of 2 | unknown for gemma-3-27b | 6 |" in lines
        assert any(line.startswith("- **error** `book/tail.yaml:40:18` sound is refuted") for line in lines)
        assert any("1 of 2 refuted" in line for line in lines)

    def test_is_bounded(self) -> None:
        """A hundred findings are shown, and how many more there are."""
        many = [found_at(f"a.yaml:{line}:1", "sound", "x", error=True) for line in range(1, 151)]
        text = markdown_summary(replace(DOCUMENT, findings=many))
        assert 100 == text.count("**error**")
        assert "- and 50 more" in text


class TestMutation:
    """Edits of a rulebook."""

    def test_survivors_stand_where_they_were_made(self) -> None:
        """One that nobody noticed is an error, one that was left undecided a warning; the others are good tests."""
        edits = [
            EditFate(
                id=f"tail/covers {number}",
                section="checks",
                rule="tail/covers",
                what="drop",
                change="drops a part",
                place=f"book/tail.yaml:{number}:5",
                fate=fate,  # type: ignore[arg-type]
                detail=detail,
            )
            for number, fate, detail in (
                (1, "killed", "it starts late"),
                (2, "redundant", ""),
                (3, "survived", ""),
                (4, "survived", "no time"),
            )
        ]
        document = mutated(MutationReport(rulebook="book", digest="d" * 64, edits=edits))
        assert [("error", 3), ("warning", 4)] == [(one.level, one.line) for one in document.findings]
        assert [[], [], ["failure"], ["error"]] == [[part.tag for part in case] for case in cases_of(document)]
        assert "| checks | 0 | 1 | 1 | 0 | 2 |" in markdown_summary(document).splitlines()
        assert 2 == len(run_of(document)["results"])


class TestDiff:
    """Rulebooks compared."""

    def test_what_is_looser_is_a_finding(self) -> None:
        """Looser and incomparable fail, undecided is unknown, stricter is good; all are told of the newer file."""
        relations: tuple[Relation, ...] = ("looser", "incomparable", "undecided", "stricter")
        differences = [
            Difference(what="group", profiles=list(PROFILES), subject=name, relation=name, sentence="it differs")
            for name in relations
        ]
        report = DiffReport(
            old="a" * 64,
            new="b" * 64,
            profiles=list(PROFILES),
            relation="incomparable",
            differences=differences,
            prices=["costs"],
        )
        document = compared(report, "book", "new/rulebook.yaml")
        assert ["error", "error", "warning"] == [one.level for one in document.findings]
        assert {"new/rulebook.yaml"} == {one.file for one in document.findings}
        tags = [[part.tag for part in case] for case in cases_of(document)]
        assert [["failure"], ["failure"], ["error"], []] == tags
        assert 3 == len({one["partialFingerprints"]["hitproofFinding/v1"] for one in run_of(document)["results"]})

    def test_equal_rulebooks_have_one_good_case(self) -> None:
        """A report of tests without a test would be taken for one that went missing."""
        report = DiffReport(old="a", new="a", profiles=list(PROFILES), relation="equal", differences=[], prices=[])
        (case,) = cases_of(compared(report, "book", "new/rulebook.yaml"))
        assert [] == list(case)


HOSTILE = st.text(
    st.sampled_from("ab |`<>[]()*_\\\r\n\t\0\x1b\x85\u2028\u202e\ufffe\ud800%:,;#&'\"]]>é漢\U0001f600"), max_size=40
)


@given(text=HOSTILE, file=HOSTILE)
def test_no_text_of_a_user_steers_a_format(text: str, file: str) -> None:
    """With any text for names, places and messages every format still has its shape."""
    finding = found_at(f"{file or 'x'}:2:3", "sound", text, error=True, rule=text)
    case = Case("sound", text, text, "failed", text, file)
    document = Document(
        *("verify", text, text),
        checks=[Check("sound", text, text)],
        findings=[finding],
        cases=[case],
        headings=("a", "b"),
        rows=[(text, "c")],
        notes=[text],
        properties=[("p", text)],
    )
    run = run_of(document)
    assert json.dumps(run).encode()
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].isascii()
    assert ["failure"] == [part.tag for part in cases_of(document)[0]]
    commands = github_annotations(document).split("\n")
    assert ["::error file=", "::notice titl", ""] == [line[:13] for line in commands]
    lines = markdown_summary(document).splitlines()
    assert lines[0].startswith("## hitproof verify:")
    (row,) = [line for line in lines if line.startswith("| ") and line.endswith(" | c |")]
    assert 3 == row.replace("\\\\", "").replace("\\|", "").count("|")


@given(HOSTILE)
def test_one_line_is_one_printable_line(text: str) -> None:
    """Whatever stands in a text, one bounded line comes out, and a clean one stays as it is."""
    line = one_line(text * 40)
    assert line.isprintable()
    assert len(line) <= 1_000
    assert line == one_line(line)


def test_few_names_stand_for_many() -> None:
    """Up to five names stand in full, of more the first four."""
    names = list("abcdef")
    assert "a, b, c, d, e" == few(names[:5])
    assert "a, b, c, d and 2 more" == few(names)
