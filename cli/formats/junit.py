"""JUnit XML: a suite a claim, a case a model."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from hitproof.spec.errors import UsageError
from hitproof.spec.proof import VerifyReport

__all__ = ["junit_xml"]


def junit_xml(report: VerifyReport) -> str:
    """The report as JUnit XML: refuted is a failure, unknown an error, a surviving mutant a failure of its claim.

    Raises:
        UsageError: The package junitparser is missing.
    """
    if find_spec("junitparser") is None:
        raise UsageError(
            "JUnit reports need a package that is not installed",
            expected="junitparser",
            hint="pip install 'hitproof[cli]'",
        )
    import junitparser

    xml: Any = junitparser.JUnitXml("hitproof")
    for claim in dict.fromkeys(result.id for result in report.claims):
        suite = junitparser.TestSuite(claim)
        for result in report.claims:
            if result.id != claim:
                continue
            found = result.counterexample
            told = result.detail if found is None else f"{found.place}: {found.sentence}"
            _case(suite, result.profile, f"{report.rulebook}.{claim}", result.verdict, told, result.seconds)
        for mutant in report.mutants:
            if mutant.claim == claim:
                verdict = "proved" if mutant.killed else "refuted"
                told = "" if mutant.killed else f"{mutant.place}: {mutant.change} passes"
                _case(suite, mutant.id, f"{report.rulebook}.{claim}.mutants", verdict, told, mutant.result.seconds)
        xml.add_testsuite(suite)
    xml.update_statistics()
    text: bytes = xml.tostring()
    return text.decode()


def _case(suite: Any, name: str, place: str, verdict: str, told: str, seconds: float) -> None:
    import junitparser

    case = junitparser.TestCase(name, place, seconds)
    if verdict == "refuted":
        case.result = [junitparser.Failure(_printable(told), "refuted")]
    elif verdict == "unknown":
        case.result = [junitparser.Error(_printable(told), "unknown")]
    suite.add_testcase(case)


def _printable(text: str) -> str:
    """XML has no place for control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
