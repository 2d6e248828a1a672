"""Conditions as Z3 terms: rails exclude each other, domains bind, models read back."""

from __future__ import annotations

import pytest
import z3
from hypothesis import HealthCheck, given, settings

from hitproof.spec.condition import Node, bind, interpret, parse_condition
from hitproof.spec.errors import BindError
from hitproof.spec.facts import TOKENS
from hitproof.verification.encode import EnumSorts, Z3Fact, Z3Facts, encode, encode_number
from tests.strategies import CONSTANTS, FACTS, SCOPE, conditions


def bound(expression: str, expect: str = "bool") -> Node:
    """Parse and bind in the shared scope."""
    return bind(parse_condition(expression, SCOPE, expect=expect, allow_known="any"), CONSTANTS)


def solver(names: Z3Facts, *terms: z3.BoolRef) -> z3.Solver:
    """A solver in the facts' own context."""
    made = z3.Solver(ctx=names.ctx)
    made.add(*names.assumptions, *terms)
    return made


@pytest.fixture
def names() -> Z3Facts:
    """Fresh facts in a fresh context; those of the peer are always known."""
    return Z3Facts(EnumSorts(z3.Context()), FACTS, always_known=lambda path: path.startswith("kv."))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(conditions())
def test_models_of_each_rail_are_confirmed_by_the_interpreter(expression: str) -> None:
    """A model of T makes the condition true, one of F makes it false, one of neither makes it unknown."""
    node, facts = bound(expression), Z3Facts(EnumSorts(z3.Context()), FACTS)
    dual = encode(node, facts)
    rails = {True: dual.T, False: dual.F, None: z3.Not(z3.Or(dual.T, dual.F))}
    assert z3.unsat == solver(facts, dual.T, dual.F).check()
    if "self.marks" in facts.paths:
        return
    for expected, rail in rails.items():
        query = solver(facts, rail)
        query.set("rlimit", 2_000_000)
        if query.check() == z3.sat:
            model = query.model()
            assert expected is interpret(node, {path: facts.decode(model, path) for path in facts.paths})


def test_chains_keep_every_link(names: Z3Facts) -> None:
    """`a <= b <= c` is two comparisons, not the last one."""
    dual = encode(bound("self.start <= length <= self.end"), names)
    broken = names("self.start").value > names("length").value
    assert z3.unsat == solver(names, dual.T, broken).check()


def test_domains_hold_where_a_fact_is_known(names: Z3Facts) -> None:
    """A known value is inside; an always known one is so by assumption."""
    start, generation = names("self.start"), names("kv.generation")
    assert z3.unsat == solver(names, start.known, start.value > 1_000_000).check()
    assert z3.sat == solver(names, z3.Not(start.known), start.value > 1_000_000).check()
    assert z3.unsat == solver(names, generation.value < 0).check()
    assert z3.unsat == solver(names, z3.Not(generation.known)).check()


def test_facts_are_made_once_and_prefixes_keep_states_apart() -> None:
    """The same path is the same term; another prefix is another."""
    sorts = EnumSorts(z3.Context())
    before, after = Z3Facts(sorts, FACTS, "pre."), Z3Facts(sorts, FACTS.__getitem__, "post.")
    assert before("self.form") is before("self.form")
    assert before("self.form").value.sort() == after("self.form").value.sort()
    differ = before("self.form").value != after("self.form").value
    assert z3.sat == solver(before, differ).check()
    assert ("self.form",) == before.paths


def test_contexts_do_not_share_enum_names() -> None:
    """A name may be declared again in a fresh context."""
    for _ in range(3):
        facts = Z3Facts(EnumSorts(z3.Context()), FACTS)
        assert z3.sat == solver(facts, encode(bound("self.form == home"), facts).T).check()


def test_any_function_can_give_the_facts() -> None:
    """Names may come from a caller's own terms, the context with them."""
    ctx = z3.Context()
    truth = z3.BoolVal(True, ctx=ctx)
    dual = encode(bound("length % 4 == 1"), lambda path: Z3Fact(z3.IntVal(5, ctx=ctx), truth))
    assert z3.is_true(z3.simplify(dual.T))
    assert z3.is_false(z3.simplify(encode(bound("False"), lambda path: Z3Fact(truth, truth), ctx=ctx).T))


@pytest.mark.parametrize(
    ("expression", "dividend", "expected"),
    [
        ("self.shift // 4", -7, -2),
        ("self.shift % 4", -7, 1),
        ("-self.shift // 4", 7, -2),
        ("abs(self.shift)", -7, 7),
    ],
)
def test_division_rounds_down_as_in_python(names: Z3Facts, expression: str, dividend: int, expected: int) -> None:
    """Z3 and Python agree for positive divisors."""
    value, known = encode_number(bound(expression, "number"), names)
    shift = names("self.shift")
    query = solver(names, known, shift.value == dividend, value != expected)
    assert z3.unsat == query.check()


def test_literals_alone_are_encoded_too(names: Z3Facts) -> None:
    """An effect may set a fact to a constant."""
    form = FACTS["self.form"].type
    node = parse_condition("home", SCOPE, expect=form)
    value, known = encode_number(node, names)
    assert z3.is_true(known) and value.eq(names.enums.member(form, "windowed"))
    assert value.eq(encode_number(node, names.__call__, ctx=names.ctx, enums=names.enums)[0])
    with pytest.raises(TypeError, match="sorts"):
        encode_number(node, names.__call__, ctx=names.ctx)
    assert "7" == str(encode_number(parse_condition("7", SCOPE, expect=TOKENS), names)[0])


def test_models_read_back_as_python_values(names: Z3Facts) -> None:
    """Every kind but sets, which may be infinite."""
    wanted = (
        "self.start == 5",
        "self.form == full",
        "self.pinned",
        "runtime.wait == 0.25",
        "self.weights == request.weights",
        "self.generation == 3",
    )
    query = solver(names, *(encode(bound(one), names).T for one in wanted))
    query.add(z3.Not(names("self.end").known), names("request.weights").value == 9)
    assert z3.sat == query.check()
    model = query.model()
    expected = {
        "self.start": 5,
        "self.form": "full",
        "self.pinned": True,
        "runtime.wait": 0.25,
        "self.weights": 9,
        "self.generation": 3,
        "self.end": None,
    }
    assert expected == {path: names.decode(model, path) for path in expected}
    query.add(names("self.marks").known)
    assert z3.sat == query.check()
    with pytest.raises(TypeError, match="set"):
        names.decode(query.model(), "self.marks")


def test_what_is_not_bound_is_refused(names: Z3Facts) -> None:
    """A divisor that is still a name could be zero."""
    with pytest.raises(BindError, match="divisor"):
        encode(parse_condition("length % group.ratio == 0", SCOPE), names)
