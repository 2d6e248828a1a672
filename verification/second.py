"""A second solver: every question that Z3 answered with no is asked again in cvc5, as SMT-LIB text."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from hitproof.spec.errors import UsageError

__all__ = ["Status", "ask_cvc5", "require_cvc5"]

Status = Literal["sat", "unsat", "unknown"]

_ANSWERS: tuple[Status, ...] = ("sat", "unsat", "unknown")
_EFFORT = "200000000"
"""Bound on cvc5's own count of steps for one question: the same on every machine, unlike time."""


def ask_cvc5(text: str) -> Status:
    """What cvc5 says of a question.

    Args:
        text: SMT-LIB 2.6 text with one `(check-sat)`.

    Returns:
        `unknown` also where cvc5 does not understand the text.
    """
    import cvc5

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("rlimit-per", _EFFORT)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    said: Status = "unknown"
    try:
        while not (command := parser.nextCommand()).isNull():
            answer = command.invoke(solver, symbols).strip()
            if answer.startswith("(error"):
                return "unknown"
            said = next((one for one in _ANSWERS if one == answer), said)
    except RuntimeError:
        return "unknown"
    return said


def require_cvc5() -> None:
    """The second solver is an extra.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("cvc5") is None:
        raise UsageError(
            "the cross-check needs the solver cvc5, which is not installed",
            expected="the package cvc5",
            hint="pip install 'hitproof[crosscheck]'",
        )
