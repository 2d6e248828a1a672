"""Questions as SMT-LIB text: written down for any solver, and asked again in a second one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hitproof.spec.errors import InternalError
from hitproof.verification.second import Status

__all__ = ["Checking", "Questions", "question_text"]


@dataclass(frozen=True)
class Checking:
    """What becomes of each question beside its answer.

    Args:
        second: Asks another solver what was answered with no.
        folder: Where such questions are written, one file each; None for nowhere.
    """

    second: Callable[[str], Status] | None = None
    folder: str | None = None

    @property
    def active(self) -> bool:
        """Whether questions are needed as text."""
        return self.second is not None or self.folder is not None


@dataclass
class Questions:
    """The questions of one process that Z3 answered with no, in the part that is being proved.

    Attributes:
        about: The claim and the part, for the heads of files.
        agreed: Questions that the second solver answered with no, too.
        undecided: How many it gave up.
    """

    checking: Checking
    about: str = ""
    agreed: int = 0
    undecided: int = 0
    _known: dict[str, Status] = field(default_factory=dict)

    def begin(self, about: str) -> None:
        """Another part follows."""
        self.about, self.agreed, self.undecided = about, 0, 0

    def refuted(self, text: str) -> None:
        """Z3 says that a question has no model.

        Raises:
            InternalError: The second solver has one; the question is in a file then.
        """
        digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        if self.checking.folder is not None:
            self._write(Path(self.checking.folder), digest, text)
        if self.checking.second is None:
            return
        if digest not in self._known:
            self._known[digest] = self.checking.second(text)
        said = self._known[digest]
        if said == "sat":
            path = self._write(Path(self.checking.folder or "."), f"disagreement-{digest}", text)
            raise InternalError(f"{self.about}: Z3 finds no model and cvc5 does, of {path}")
        self.agreed += said == "unsat"
        self.undecided += said == "unknown"

    def _write(self, folder: Path, name: str, text: str) -> Path:
        """Write a question whole or not at all; one that is there already is the same."""
        path = folder / f"{name}.smt2"
        if not path.exists():
            head = "".join(f"; {line}\n" for line in (self.about, "expected: unsat"))
            unfinished = path.with_suffix(f".{os.getpid()}.part")
            unfinished.write_text(head + text, encoding="utf-8")
            unfinished.replace(path)
        return path


def question_text(solver: Any) -> str:
    """A question as SMT-LIB text; taken before it is asked, for afterwards a solver tells its model too."""
    return f"(set-logic ALL)\n{solver.sexpr()}\n(check-sat)\n"
