"""The process in which cvc5 answers: capped in memory, fed with one question after the other.

It is started by its path, so that it loads nothing but cvc5: of the solver in the parent's process it shares no code.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

__all__ = ["serve"]

_ANSWERS = ("sat", "unsat", "unknown")


def serve(questions: BinaryIO, answers: BinaryIO, memory_mb: int, effort: str) -> None:
    """Answer questions until there are none.

    Args:
        questions: Each a line with the number of bytes, and so many bytes of SMT-LIB text.
        answers: A line for each: `sat`, `unsat`, or `unknown` also for what cvc5 does not understand.
        memory_mb: Bound on the address space of this process, where the system has such bounds.
        effort: Bound on cvc5's own count of steps for one question.
    """
    _cap(memory_mb * 2**20)
    while size := questions.readline():
        said = _ask(questions.read(int(size)).decode(), effort)
        answers.write(f"{said}\n".encode())
        answers.flush()


def _ask(text: str, effort: str) -> str:
    from cvc5 import InputLanguage, InputParser, Solver, TermManager

    solver = Solver(TermManager())
    solver.setOption("rlimit-per", effort)
    parser = InputParser(solver)
    parser.setStringInput(InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    said = "unknown"
    try:
        while not (command := parser.nextCommand()).isNull():
            answer = command.invoke(solver, symbols).strip()
            if answer.startswith("(error"):
                return "unknown"
            said = answer if answer in _ANSWERS else said
    except RuntimeError:
        return "unknown"
    return said


def _cap(size: int) -> None:
    """Bound the address space; a question that needs more ends the process."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = size if hard == resource.RLIM_INFINITY else min(size, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        # A crash leaves no image of memory behind.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError):
        return


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[1]), sys.argv[2])
