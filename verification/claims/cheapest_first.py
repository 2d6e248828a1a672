"""Claim `cheapest_first`: the chosen plan costs no more than any other sound one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Arith, Extreme, Literal, Node, Ref, reads
from hitproof.spec.rulebook import ORDER
from hitproof.verification.decode import small
from hitproof.verification.encode import encode_number
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.rivals import at_stated_rates, earning_stories, order_stories
from hitproof.verification.run import Claim, Run
from hitproof.verification.solve import Answer

__all__ = ["CLAIM"]

Names = Any
PIECES = 3
"""Pieces of the model of the search; what is dropped after one of them concerns the next in the same way."""


def parts(bound: BoundRulebook) -> list[Part]:
    """The order and the search, which are the same for every model; then the prices of each group's options."""
    priced = [group for group in bound.groups if group.rules.mandatory and group.options]
    return [
        Part("the order of choosing", (), reads=frozenset({"rulebook"})),
        *each_group(priced, "checks", "options", "costs"),
    ]


def prove(run: Run) -> None:
    """Asks what the part is about."""
    if run.part.groups:
        _prices(run, run.group)
    else:
        _order(run)
        if not run.done:
            _search(run)
            _prefill(run)


def _order(run: Run) -> None:
    """Of two plans, the one that the declared order puts first does not cost more."""
    choosing = run.bound.rulebook.choosing
    ctx = z3.Context()
    one, other = ({name: z3.Int(f"{plan}.{name}", ctx=ctx) for name in ORDER} for plan in ("one", "other"))
    first = z3.BoolVal(True, ctx=ctx)
    for name in reversed(choosing.order):
        first = z3.Or(one[name] < other[name], z3.And(one[name] == other[name], first))
    dearer = one["price"] > other["price"]
    if run.must_not(ctx, [first, dearer], "what comes first does not cost more") is None:
        return
    for story in order_stories(run):
        run.fail(f"plans are told apart by {choosing.order[0]} before their price", "choosing", choosing.where, story)
        if run.done:
            return
    if run.counterexample is None:
        run.fail("plans are not told apart by their price first", "choosing", choosing.where, None)


def _search(run: Run) -> None:
    """Piece by piece, what is too dear already or no better than another choice is dropped: the cheapest plan stays.

    Each piece has two ways, each with a price of its own and a share in a joint repair. A choice is dropped where it
    costs more than the limit, which some whole plan keeps, or where another one has neither a higher own price nor a
    higher joint one. Then no assignment of ways to pieces that keeps the limit costs less than all that are left.
    """
    ctx = z3.Context()
    own = [[z3.Real(f"own.{piece}.{way}", ctx=ctx) for way in range(2)] for piece in range(PIECES)]
    joint = [[z3.Real(f"joint.{piece}.{way}", ctx=ctx) for way in range(2)] for piece in range(PIECES)]
    limit = z3.Real("limit", ctx=ctx)
    zero = z3.RealVal(0, ctx=ctx)
    left: dict[tuple[int, ...], Any] = {(): z3.BoolVal(True, ctx=ctx)}
    sums: dict[tuple[int, ...], tuple[Any, Any]] = {(): (zero, zero)}
    for piece in range(PIECES):
        longer = [(*ways, way) for ways in left for way in range(2)]
        for ways in longer:
            before, way = sums[ways[:-1]], ways[-1]
            most = z3.If(joint[piece][way] > before[1], joint[piece][way], before[1])
            sums[ways] = before[0] + own[piece][way], most
        there = {ways: z3.And(left[ways[:-1]], sums[ways][0] + sums[ways][1] <= limit) for ways in longer}
        left = {
            ways: z3.And(there[ways], *(z3.Not(z3.And(there[better], _drops(sums, better, ways))) for better in longer))
            for ways in longer
        }
    prices = [price for row in (*own, *joint) for price in row]
    totals = {ways: own_price + joint_price for ways, (own_price, joint_price) in sums.items()}
    lost = [
        z3.And(totals[best] <= limit, *(z3.Implies(left[ways], totals[best] < totals[ways]) for ways in left))
        for best in left
    ]
    premise = [price >= 0 for price in prices]
    if run.must_not(ctx, [*premise, z3.Or(lost)], "the cheapest plan is not dropped") is not None:
        run.fail("the search drops the cheapest plan", "choosing", run.bound.rulebook.choosing.where, None)
    elif run.must(ctx, [*premise, *(total <= limit for total in totals.values())], "a plan can be chosen") is not None:
        run.witness = f"{2**PIECES} plans of {PIECES} pieces that share a repair"


def _drops(sums: dict[tuple[int, ...], tuple[Any, Any]], better: tuple[int, ...], ways: tuple[int, ...]) -> Any:
    """The better choice is no dearer, alone and jointly; of two that drop each other the earlier one stays."""
    if better == ways:
        return z3.BoolVal(False, ctx=sums[()][0].ctx)
    no_dearer = [sums[better][place] <= sums[ways][place] for place in (0, 1)]
    if better < ways:
        return z3.And(no_dearer)
    return z3.And(*no_dearer, z3.Or([sums[better][place] < sums[ways][place] for place in (0, 1)]))


def _prefill(run: Run) -> None:
    """At known rates, the price of prefill is known and not below 0."""
    prefill = run.bound.rulebook.prefill
    world = World(run.bound)

    def names(path: str) -> Any:
        return world.shared(path)

    wrong = _wrong(prefill.cost, names, world)
    premise = [*world.usual(), *_known_rates(prefill.cost, names), *world.domains()]
    found = run.must_none(world.ctx, premise, [("prefill has a price", wrong)])
    if found is not None:
        run.fail("the price of prefill is unknown or below 0 somewhere", "prefill", prefill.where, None)


def _prices(run: Run, group: BoundGroup) -> None:
    """At known rates, the price of each option that may run and is wanted is known and not below 0."""
    world = World(run.bound)
    model = world.group(group.id)
    wanted = {option.id: _wanted(model, option) for option in group.options}
    wrong = [(option.id, _wrong_price(model, option, option.cost, wanted[option.id])) for option in group.options]
    premise = [*world.usual(), world.length > 0, model.identity()]
    asked = [*premise, *world.domains()]
    found = run.must_none(world.ctx, asked, wrong, soft=lambda: small(world, *world.models.values()))
    if found is None and run.gaps:
        found = _at_stated_rates(run, model, wanted, asked)
    if found is not None:
        _report(run, group, found)
        return
    possible = run.must_each(world.ctx, asked, list(wanted.items())[:1])
    if possible:
        run.witness = f"{group.id}/{min(possible)} has a price"
    run.count += len(group.options)


def _at_stated_rates(
    run: Run, model: GroupModel, wanted: Mapping[str, Any], asked: Sequence[Any]
) -> tuple[str, Answer] | None:
    """A difference of products of unknowns is out of the solver's reach; at the stated rates it may show a failure."""
    for option in model.group.options:
        cost = at_stated_rates(option.cost, run.whole)
        answer = run.asker.ask(model.world.ctx, [*asked, _wrong_price(model, option, cost, wanted[option.id])])
        if answer.status == "sat":
            return option.id, answer
    return None


def _report(run: Run, group: BoundGroup, found: tuple[str, Answer]) -> None:
    option = next(one for one in group.options if one.id == found[0])
    sentence = f"the price of {group.id}/{option.id} is unknown or below 0 where it may run"
    for story in earning_stories(run, option.id):
        run.fail(sentence, option.rule, option.where, story)
        if run.done:
            return
    if run.counterexample is None:
        run.fail(sentence, option.rule, option.where, None)


def _wanted(model: GroupModel, option: BoundOption) -> Any:
    """The option may run and mends something."""
    failing = [z3.Not(model.holds(check)) for check in sorted(option.mends)]
    return z3.And(model.applies(option), z3.Or(failing) if failing else model.false)


def _wrong_price(model: GroupModel, option: BoundOption, cost: Node, wanted: Any) -> Any:
    """The option is wanted, the rates are known, and the price is unknown or below 0."""
    known = _known_rates(option.cost, model.names)
    return z3.And(wanted, *known, _wrong(cost, model.names, model.world))


def _wrong(cost: Node, names: Names, world: World) -> Any:
    """The price is unknown, or some quantity or rate in it is below 0.

    A sum or product of what is not below 0 is not below 0 either; so no product of two unknowns is asked about.
    """
    values = [encode_number(node, names, ctx=world.ctx, enums=world.enums) for node in _factors(cost)]
    known = encode_number(cost, names, ctx=world.ctx, enums=world.enums)[1]
    return z3.Or(z3.Not(known), *(value < 0 for value, _ in values))


def _factors(cost: Node) -> list[Node]:
    """What must not be below 0, so that a price is not."""
    match cost:
        case Arith(op="+" | "*", left=left, right=right):
            return [*_factors(left), *_factors(right)]
        case Extreme(op="min" | "max", args=args):
            return [factor for one in args for factor in _factors(one)]
        case Literal(value=int() | float() as value) if value >= 0:
            return []
        case Ref(fact=fact) if fact.lo is not None and fact.lo >= 0:
            return []
        case _:
            return [cost]


def _known_rates(cost: Node, names: Names) -> list[Any]:
    """`rates_known`: every rate that the price reads is known."""
    return [names(path).known for path in sorted(reads(cost)) if path.startswith("runtime.")]


CLAIM = Claim(
    id="cheapest_first",
    sentence="The chosen plan costs no more than any other sound one: the order of choosing puts the price first, "
    "every price is known and not below 0 where it is asked for, and what the search drops is never cheaper.",
    method="validity of the declared order; a model of the search over three pieces with free prices; one question an "
    "option's price",
    assumptions=("rates_known", "the claim repair_sound"),
    prove=prove,
    parts=parts,
    covers="{count} options with a price",
)
