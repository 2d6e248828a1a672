"""JUnit XML: a suite a check, a case a model or a scenario."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from hitproof.cli.formats.document import Case, Document, one_line
from hitproof.spec.errors import UsageError

__all__ = ["junit_xml", "require_junit"]

_RESULTS = {"failed": "Failure", "unknown": "Error"}


def require_junit() -> None:
    """JUnit reports need a package.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("junitparser") is None:
        raise UsageError(
            "JUnit reports need a package that is not installed",
            expected="junitparser",
            hint="pip install 'hitproof[cli]'",
        )


def junit_xml(document: Document) -> str:
    """The answer as JUnit XML: what has failed is a failure, what is unknown an error.

    Raises:
        UsageError: The package junitparser is missing.
    """
    require_junit()
    import junitparser

    xml: Any = junitparser.JUnitXml(one_line(f"hitproof {document.command}"))
    for name in dict.fromkeys(case.suite for case in document.cases):
        suite: Any = junitparser.TestSuite(one_line(name))
        for case in document.cases:
            if case.suite == name:
                suite.add_testcase(_case(junitparser, case))
        xml.add_testsuite(suite)
    xml.update_statistics()
    text: bytes = xml.tostring()
    return text.decode()


def _case(junitparser: Any, case: Case) -> Any:
    class Placed(junitparser.TestCase):  # type: ignore[misc]
        """A test with the file in which pipelines link to it."""

        file = junitparser.Attr("file")

    made = Placed(one_line(case.name), one_line(case.place), case.seconds)
    if case.file:
        made.file = one_line(case.file)
    if case.outcome in _RESULTS:
        result = getattr(junitparser, _RESULTS[case.outcome])(one_line(case.told), case.outcome)
        # Some readers show the attribute, others the text.
        result.text = one_line(case.told)
        made.result = [result]
    return made
