"""The agreement: sets are intersected, the slowest rank counts, and whoever holds the same offers agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.choosing import Order
from hitproof.engine.offers import Offer
from hitproof.engine.ranks import Agreement, Offered, agree
from hitproof.spec.price import UNKNOWN_PRICE

ORDER = Order(["price", "longer_length", "lower_level", "fewer_steps", "option_id"])
PRICES = st.one_of(st.integers(0, 4), st.just(UNKNOWN_PRICE))
OFFERS = st.builds(Offer, PRICES, st.integers(-1, 1), st.integers(0, 2), st.sampled_from("pq"), st.sampled_from("ef"))
RANKS = st.lists(st.dictionaries(st.integers(0, 6), OFFERS, max_size=7), min_size=1, max_size=4)


def offered(*lengths: dict[int, Offer], subject: str = "prompt") -> list[Offered]:
    """What ranks offer for one prompt."""
    return [Offered(subject, "rules", one) for one in lengths]


def priced(**prices: int) -> dict[int, Offer]:
    """Offers without repairs, `L64=3` for a price of 3 at 64 tokens."""
    return {int(name[1:]): Offer(price, -1, 0, "plan", "epochs") for name, price in prices.items()}


def agreed(*lengths: dict[int, Offer]) -> Agreement:
    """The agreement of ranks that have one."""
    made = agree(offered(*lengths), ORDER)
    assert isinstance(made, Agreement)
    return made


def test_sets_are_intersected_and_no_minimum_is_taken() -> None:
    """The shorter of the two longest lengths is no common one here, and the next shorter one is."""
    made = agreed(priced(L0=9, L64=3, L192=1), priced(L0=9, L64=3, L128=2))
    assert (64, 3) == (made.length, made.price)


def test_the_slowest_rank_counts() -> None:
    """A length that is cheap for all but one costs what it costs that one."""
    assert 64 == agreed(priced(L0=9, L64=5, L128=1), priced(L0=9, L64=5, L128=8)).length
    assert 0 == agreed(priced(L0=4, L64=5), priced(L0=4, L64=1)).length


def test_the_longer_of_two_that_cost_the_same_is_taken() -> None:
    """Ties go to more reuse; length 0 yields to every other."""
    assert 128 == agreed(priced(L0=5, L64=5, L128=5), priced(L0=5, L64=5, L128=5)).length


@pytest.mark.parametrize(
    "ranks",
    [
        [Offered("prompt", "rules", priced(L0=1)), Offered("other", "rules", priced(L0=1))],
        [Offered("prompt", "rules", priced(L0=1)), Offered("prompt", "others", priced(L0=1))],
        offered(priced(L64=1), priced(L128=1)),
        offered(priced(L64=1), {}),
    ],
)
def test_there_may_be_no_agreement(ranks: list[Offered]) -> None:
    """Ranks that speak of other prompts or by other rules, or that can neither resume nor compute, agree on nothing."""
    assert isinstance(agree(ranks, ORDER), str)


@given(RANKS)
def test_the_agreement_is_the_best_of_all_common_lengths(ranks: list[dict[int, Offer]]) -> None:
    """By trying every length: every rank offers it, and no common one costs less, or as much and is longer."""
    common = [length for length in range(7) if all(length in one for one in ranks)]
    made = agree(offered(*ranks), ORDER)
    if not common:
        assert isinstance(made, str)
        return
    assert isinstance(made, Agreement)
    costs = {length: max(one[length].price for one in ranks) for length in common}
    assert made.length in common
    assert (min(costs.values()), costs[made.length]) == (costs[made.length], made.price)
    assert made.length == max(length for length in common if costs[length] == made.price)
    assert made.offers == tuple(one[made.length] for one in ranks)


@given(RANKS, st.data())
def test_the_digest_tells_agreements_apart(ranks: list[dict[int, Offer]], data: st.DataObject) -> None:
    """Equal offers have equal digests; another prompt, plan or epoch of any rank has another one."""
    made = agree(offered(*ranks), ORDER)
    assert made == agree(offered(*[dict(reversed(one.items())) for one in ranks]), ORDER)
    if isinstance(made, str):
        return
    other = agree(offered(*ranks, subject="other"), ORDER)
    assert isinstance(other, Agreement) and made.digest != other.digest
    rank = data.draw(st.integers(0, len(ranks) - 1))
    old = ranks[rank][made.length]
    for change in (
        Offer(old.price, old.level, old.steps, old.plan + "'", old.epochs),
        Offer(old.price, old.level, old.steps, old.plan, old.epochs + "'"),
    ):
        again = agree(offered(*ranks[:rank], {**ranks[rank], made.length: change}, *ranks[rank + 1 :]), ORDER)
        assert isinstance(again, Agreement) and (made.length, True) == (again.length, again.digest != made.digest)
