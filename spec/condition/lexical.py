"""From text to a syntax tree: caps, alphabet and names are checked before Python's parser sees anything."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hitproof.spec.errors import ConditionError, Position

__all__ = ["Source", "read_source"]

MAX_TEXT = 2_000
MAX_NODES = 400
MAX_DEPTH = 40

_TOKEN = re.compile(
    r"(?P<space>[ \t\n]+)"
    r"|(?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(?P<sign>==|!=|<=|>=|//|\*\*|<<|>>|[-+*%<>(),])"
    r"|(?P<other>.)",
    re.ASCII | re.DOTALL,
)
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|\d+(?:_\d+)*|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", re.ASCII
)
_WORDS = frozenset({"and", "or", "not", "in", "True", "False"})
_HINTS = {
    "/": "write // ; only whole quotients exist",
    "=": "write == to compare",
    "'": "members of an enum are written bare, without quotes",
    '"': "members of an enum are written bare, without quotes",
    "[": "write a tuple in round brackets",
    "{": "write a tuple in round brackets",
    "&": "write and",
    "|": "write or",
    "!": "write not",
    "#": "keep comments in the YAML, outside of the expression",
    ".": "names are joined by a dot without spaces, as in self.start",
    "**": "there are no powers",
    "is": "write == to compare",
    "None": "write known(x), or not known(x), to ask whether a fact is known",
    "if": "write implies(condition, consequence)",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed expression and the way back from its parts to their place in the file."""

    tree: ast.expr
    text: str
    where: Position
    rule: str | None

    def at(self, part: ast.expr) -> Position:
        """The position of a part: the column inside the expression is added to that of its beginning.

        From the second line of a text on, the column counts inside that line of the text.
        """
        return _place(self.where, part.lineno, part.col_offset - (1 if part.lineno == 1 else 0))

    def excerpt(self, part: ast.expr) -> str:
        """The text of a part."""
        return ast.get_source_segment(f"({self.text}\n)", part) or self.text


def read_source(text: object, where: Position, rule: str | None) -> Source:
    """Check the caps and the alphabet of an expression and parse it.

    Raises:
        ConditionError: Too long, too deep, not in the language, or not an expression.
    """
    if not isinstance(text, str):
        raise ConditionError(
            "a condition must be a text",
            where=where,
            rule=rule,
            got=type(text).__name__,
            expected="an expression",
        )
    if len(text) > MAX_TEXT:
        raise ConditionError(
            "the expression is too long",
            where=where,
            rule=rule,
            got=f"{len(text)} characters",
            expected=f"at most {MAX_TEXT}",
        )
    clean = text.replace("\r\n", "\n")
    _check_tokens(clean, where, rule)
    try:
        tree = ast.parse(f"({clean}\n)", mode="eval").body
    except SyntaxError as error:
        lines = clean.split("\n")
        line = min(error.lineno or 1, len(lines))
        wrapped = 1 if line == 1 else 0
        column = (error.offset or 1) - 1 - wrapped if line == error.lineno else len(lines[-1])
        place = _place(where, line, max(0, min(column, len(lines[line - 1]))))
        raise ConditionError(
            "this is not a complete expression",
            where=place,
            rule=rule,
            got=clean,
            expected="one expression",
            hint=None if "(" in clean else "brackets and operators need a value on each side",
        ) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise ConditionError("the expression is nested too deep", where=where, rule=rule) from error
    source = Source(tree, clean, where, rule)
    _check_size(source)
    return source


def _place(where: Position, line: int, column: int) -> Position:
    if line <= 1:
        return where.shifted(column)
    return Position(where.file, where.line + line - 1, column + 1)


def _check_tokens(text: str, where: Position, rule: str | None) -> None:
    brackets = run = tokens = 0
    for match in _TOKEN.finditer(text):
        word = match.group()
        if match.lastgroup == "space":
            continue
        tokens += 1
        problem = _problem(match)
        brackets += (word == "(") - (word == ")")
        run = run + 1 if word in ("-", "+", "not") else 0
        if brackets < 0:
            problem = "a bracket closes that was never opened"
        elif brackets > MAX_DEPTH or run > MAX_DEPTH:
            problem = "the expression is nested too deep"
        if problem:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - (text.rfind("\n", 0, match.start()) + 1)
            raise ConditionError(problem, where=_place(where, line, column), rule=rule, got=word, hint=_HINTS.get(word))
    if not tokens:
        raise ConditionError("the expression is empty", where=where, rule=rule, expected="an expression")
    if brackets:
        raise ConditionError("a bracket is not closed", where=where, rule=rule, got=text)


def _problem(match: re.Match[str]) -> str | None:
    word = match.group()
    match match.lastgroup:
        case "number":
            return None if _NUMBER.fullmatch(word) else "this is not a number of the language"
        case "name":
            return _name_problem(word)
        case "other":
            return "this character is not part of the language"
        case _:
            return "this operator is not part of the language" if word in ("**", "<<", ">>") else None


def _name_problem(word: str) -> str | None:
    parts = word.split(".")
    if word in _WORDS:
        return None
    bad = next((part for part in parts if keyword.iskeyword(part)), None)
    if bad is None:
        return None
    if len(parts) == 1:
        return f"'{word}' is not part of the language"
    return f"'{bad}' is a Python keyword and cannot be part of a name"


def _levels(tree: ast.expr) -> Iterator[list[ast.expr]]:
    level = [tree]
    while level:
        yield level
        level = [
            child
            for part in level
            if not isinstance(part, ast.Attribute)
            for child in ast.iter_child_nodes(part)
            if isinstance(child, ast.expr)
        ]


def _check_size(source: Source) -> None:
    count = 0
    for depth, level in enumerate(_levels(source.tree), start=1):
        count += len(level)
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise ConditionError(
                "the expression has too many parts" if count > MAX_NODES else "the expression is nested too deep",
                where=source.at(level[0]),
                rule=source.rule,
                expected=f"at most {MAX_NODES} parts and {MAX_DEPTH} levels",
                hint="name a part of it under needs",
            )
