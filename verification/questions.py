"""Questions as SMT-LIB text: written down for any solver, and asked again in a second one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hitproof.spec.errors import InternalError, MissingFileError, Position
from hitproof.verification.second import Status

__all__ = ["Checking", "Questions", "question_text", "write_index"]


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
        about: The claim and the part, for messages.
        asked: Their digests, which are the names of their files.
        agreed: How many of them the second solver answered with no, too.
        undecided: Digests of those that it did not answer.
    """

    checking: Checking
    about: str = ""
    asked: list[str] = field(default_factory=list)
    agreed: int = 0
    undecided: list[str] = field(default_factory=list)
    _known: dict[str, Status] = field(default_factory=dict)

    def begin(self, about: str) -> None:
        """Another part follows."""
        self.about, self.asked, self.agreed, self.undecided = about, [], 0, []

    def refuted(self, text: str) -> None:
        """Z3 says that a question has no model.

        Raises:
            InternalError: The second solver has one; the question is in a file then.
            MissingFileError: A file cannot be written.
        """
        digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        self.asked.append(digest)
        if self.checking.folder is not None:
            _write(Path(self.checking.folder), digest, text)
        if self.checking.second is None:
            return
        if digest not in self._known:
            self._known[digest] = self.checking.second(text)
        said = self._known[digest]
        if said == "sat":
            path = _write(Path(self.checking.folder or "."), f"disagreement-{digest}", f"; {self.about}\n{text}")
            raise InternalError(f"{self.about}: Z3 finds no model and cvc5 does, of {path}")
        self.agreed += said == "unsat"
        if said == "unknown":
            self.undecided.append(digest)


def question_text(solver: Any) -> str:
    """A question as SMT-LIB text; taken before it is asked, for afterwards a solver tells its model too."""
    return f"(set-logic ALL)\n{solver.sexpr()}\n(check-sat)\n"


def write_index(folder: str, about: Mapping[str, object], asked: Sequence[tuple[str, str, str, Sequence[str]]]) -> None:
    """Say in `index.json` which question each file of a folder holds.

    Args:
        folder: The folder.
        about: What else is told: the rulebook, the solver.
        asked: Claims, profiles and parts, each with its questions' digests.

    Raises:
        MissingFileError: The file cannot be written.
    """
    parts: dict[str, list[dict[str, str]]] = {}
    for claim, profile, part, digests in asked:
        for digest in dict.fromkeys(digests):
            parts.setdefault(digest, []).append({"claim": claim, "profile": profile, "part": part})
    questions = [{"file": f"{digest}.smt2", "expected": "unsat", "asked_by": parts[digest]} for digest in sorted(parts)]
    _put(Path(folder) / "index.json", json.dumps({**about, "questions": questions}, indent=1) + "\n")


def _write(folder: Path, name: str, text: str) -> Path:
    """Write a question; one that is there already is the same."""
    path = folder / f"{name}.smt2"
    if not path.exists():
        _put(path, f"; expected: unsat\n{text}")
    return path


def _put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise MissingFileError(
            "the file cannot be written",
            where=Position(str(path)),
            got=error.strerror,
            expected="a folder that can be written to",
        ) from error
