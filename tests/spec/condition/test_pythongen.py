"""Generated Python is flat, tests each fact once, and never more than it must."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from hitproof.spec.condition import (
    Node,
    bind,
    compile_python,
    interpret,
    parse_condition,
    python_false,
    python_number,
    python_true,
    text,
)
from hitproof.spec.errors import BindError
from tests.strategies import CONSTANTS, SCOPE, VALID, admitted, conditions, states


def bound(expression: str, expect: str = "bool") -> Node:
    """Parse and bind in the shared scope."""
    return bind(parse_condition(expression, SCOPE, expect=expect, allow_known="any"), CONSTANTS)


def local(path: str) -> tuple[str, bool]:
    """A local variable; facts of the peer and the length are never unknown."""
    return path.replace(".", "_"), not path.startswith(("kv.", "length"))


@pytest.mark.parametrize(
    ("expression", "true", "false"),
    [
        ("kv.ready", "kv_ready", "not kv_ready"),
        ("self.pinned", "self_pinned", "self_pinned is False"),
        ("kv.generation == 7", "kv_generation == 7", "kv_generation != 7"),
        (
            "self.generation == kv.generation",
            "self_generation == kv_generation",
            "self_generation is not None and self_generation != kv_generation",
        ),
        (
            "self.start <= length <= self.start",
            "self_start is not None and self_start <= length and length <= self_start",
            "(self_start is not None and self_start > length or self_start is not None and length > self_start)",
        ),
        (
            "self.start <= max(0, length - group.window + 1)",
            "self_start is not None and (self_start <= 0 or self_start <= ((length - 128) + 1))",
            "self_start is not None and (self_start > 0 and self_start > ((length - 128) + 1))",
        ),
        ("known(self.start)", "self_start is not None", "not (self_start is not None)"),
        ("known(kv.ready)", "True", "False"),
        (
            "kv.form in (full, home)",
            "kv_form in ('full', 'windowed', )",
            "kv_form not in ('full', 'windowed', )",
        ),
        ("group.has_v", "True", "False"),
        (
            "self.shift == -1",
            "self_shift == (-1)",
            "self_shift is not None and self_shift != (-1)",
        ),
    ],
)
def test_trusted_text_tests_only_what_may_be_unknown(expression: str, true: str, false: str) -> None:
    """No domain, no helper call, no second test of the same fact; None equals no value that is known."""
    node = bound(expression)
    assert true == python_true(node, local, trusted=True)
    assert false == python_false(node, local, trusted=True)


def test_untrusted_text_tests_type_and_domain() -> None:
    """At the first reading of each fact, and once."""
    written = python_true(bound("self.shift < length and self.shift > 0"), local)
    assert 1 == written.count("-50 <= self_shift <= 50")
    assert 1 == written.count("0 <= length <= 1000000")
    assert 2 == written.count("is int")


def test_numbers_give_a_value_and_its_being_known() -> None:
    """The value may be read only where the second text holds."""
    value, known = python_number(bound("self.end - length", "number"), local, trusted=True)
    assert ("(self_end - length)", "self_end is not None") == (value, known)
    assert ("5", "True") == python_number(bound("5", "number"), local, trusted=True)


@settings(max_examples=300)
@given(conditions(), states())
def test_the_two_rails_are_never_both_on(expression: str, state: dict[str, object]) -> None:
    """Surely true, surely false and unknown follow the interpreter, also for facts that cannot be unknown."""
    node = bound(expression)
    known = VALID | {path: value for path, value in admitted(state).items() if value is not None}
    names = {path: path.replace(".", "_") for path in known}
    values = {names[path]: value for path, value in known.items()}

    def name(path: str) -> tuple[str, bool]:
        return names[path], False

    true = eval(python_true(node, name, trusted=True), dict(values))
    false = eval(python_false(node, name, trusted=True), dict(values))
    assert (interpret(node, known) is True, interpret(node, known) is False) == (bool(true), bool(false))


def test_deep_trees_compile() -> None:
    """The deepest tree that the parser lets through still fits Python's own parser."""
    deep = "length" + " + length" * 37 + " == 0"
    nested = "not (" * 37 + "kv.ready" + ")" * 37
    for expression in (deep, nested, "max(" * 36 + "length" + ", 1)" * 36 + " == 1"):
        assert compile_python(bound(expression))(dict(VALID)) in (True, False)


def test_what_is_not_bound_is_refused() -> None:
    """A divisor that is still a name could be zero."""
    node = parse_condition("length % group.ratio == 0", SCOPE)
    for target in (python_true, python_false):
        with pytest.raises(BindError, match="divisor"):
            target(node, local)
    assert "length % group.ratio == 0" == text(node)
