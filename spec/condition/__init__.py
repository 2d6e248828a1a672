"""The condition language: one typed tree and the ways to read it."""

from hitproof.spec.condition.bind import CONSTANT_SCOPES, bind, bind_constant
from hitproof.spec.condition.check import AllowKnown
from hitproof.spec.condition.columns import Column, Mask, column_of, columns, number_columns
from hitproof.spec.condition.interpret import UNKNOWN, interpret
from hitproof.spec.condition.intervals import check_bounds, interval
from hitproof.spec.condition.nodes import (
    And,
    Arith,
    Compare,
    Extreme,
    Known,
    Literal,
    Member,
    Negate,
    Node,
    Not,
    Or,
    Ref,
    conjunction,
    disjunction,
    type_of,
)
from hitproof.spec.condition.parse import parse_condition
from hitproof.spec.condition.pythongen import (
    Name,
    compile_python,
    python_false,
    python_number,
    python_true,
)
from hitproof.spec.condition.scope import Scope
from hitproof.spec.condition.text import text
from hitproof.spec.condition.traverse import children, conjuncts, reads, refs, substitute, walk

__all__ = [
    "AllowKnown",
    "And",
    "Arith",
    "CONSTANT_SCOPES",
    "Column",
    "Compare",
    "Extreme",
    "Known",
    "Literal",
    "Mask",
    "Member",
    "Name",
    "Negate",
    "Node",
    "Not",
    "Or",
    "Ref",
    "Scope",
    "UNKNOWN",
    "bind",
    "bind_constant",
    "check_bounds",
    "children",
    "column_of",
    "columns",
    "compile_python",
    "conjunction",
    "conjuncts",
    "disjunction",
    "interpret",
    "interval",
    "number_columns",
    "parse_condition",
    "python_false",
    "python_number",
    "python_true",
    "reads",
    "refs",
    "substitute",
    "text",
    "type_of",
    "walk",
]
