"""The order of choosing, and the choice for several pieces together, against trying everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.choosing import Order
from hitproof.engine.joint import Open, Place, Sums, choose_together
from hitproof.engine.ways import Way
from hitproof.spec.price import NO_LIMIT
from hitproof.spec.rulebook import ORDER

ORDERS = tuple(permutations(ORDER))
JOINTS = 2


def a_way(random: Random, ids: tuple[str, ...]) -> Way:
    """A way with small prices, so that equal ones are frequent; it shows one of two things to its readers."""
    joint = tuple(random.choice([0, 0, 1, 2, 5]) for _ in range(JOINTS))
    own, level = random.choice([0, 1, 2, 3, 7]), random.choice([0, 1])
    return Way(own, joint, level, len(ids), ids, (), None, 1, 0, random.choice(["same", "other"]))


def ways_of(random: Random) -> list[Way]:
    """Up to three ways, perhaps none."""
    names = [("a",), ("b",), ("a", "b"), ("b", "a")]
    return [a_way(random, random.choice(names)) for _ in range(random.choice([0, 1, 2, 3]))]


def some_pieces(random: Random) -> list[Open]:
    """Up to five pieces, each of which may read earlier ones; what it can do depends on what they show."""
    places = [(group, at) for group in range(3) for at in range(2)][: random.choice([1, 2, 3, 5])]
    found: list[Open] = []
    for number, place in enumerate(places):
        reads = tuple(sorted(random.sample(places[:number], min(number, random.choice([0, 1, 1, 2])))))
        table: dict[tuple[object, ...], list[Way]] = {}

        def ways(
            chosen: Mapping[Place, Way],
            reads: tuple[Place, ...] = reads,
            table: dict[tuple[object, ...], list[Way]] = table,
            seed: int = random.randrange(2**32),
        ) -> Sequence[Way]:
            seen = tuple(chosen[one].shown for one in reads)
            if seen not in table:
                table[seen] = ways_of(Random(f"{seed} {seen}"))
            return table[seen]

        found.append(Open(place, reads, ways))
    return found


def everything(pieces: list[Open]) -> list[dict[Place, Way]]:
    """Every choice of one way for each piece."""
    found: list[dict[Place, Way]] = [{}]
    for piece in pieces:
        found = [{**chosen, piece.place: way} for chosen in found for way in piece.ways(chosen)]
    return found


def place_of(order: Order, settled: Sums, chosen: Mapping[Place, Way]) -> tuple[object, ...]:
    """What sorts a whole choice, worked out from its ways alone."""
    ways = [chosen[place] for place in sorted(chosen)]
    joint = [max([settled.joint[slot], *(way.joint[slot] for way in ways)]) for slot in range(JOINTS)]
    price = settled.own + sum(way.own for way in ways) + sum(joint)
    level = max([settled.level, *(way.level for way in ways)])
    return order.sort_key(price, 0, level, settled.count + sum(way.count for way in ways), tuple(w.ids for w in ways))


@given(st.sampled_from(ORDERS), st.randoms(use_true_random=False))
def test_what_is_chosen_together_is_the_best_of_everything(names: tuple[str, ...], random: Random) -> None:
    """For any order, prices, levels and readers: the choice is as good as the best one; none is found where none is."""
    order, pieces = Order(names), some_pieces(random)
    settled = Sums.none(JOINTS)
    settled.add(a_way(random, ("z",)))
    all_choices = everything(pieces)
    chosen = choose_together(order, pieces, settled, NO_LIMIT)
    if not all_choices:
        assert chosen is None
        return
    assert chosen is not None
    best = min(place_of(order, settled, one) for one in all_choices)
    assert best == place_of(order, settled, chosen)


@given(st.randoms(use_true_random=False))
def test_a_limit_drops_only_what_passes_it(random: Random) -> None:
    """With the price of the best choice as the limit the best one is still found, and with less nothing is."""
    order, pieces, settled = Order(ORDER), some_pieces(random), Sums.none(JOINTS)
    best = choose_together(order, pieces, settled, NO_LIMIT)
    if best is None:
        return
    price = place_of(order, settled, best)[0]
    assert isinstance(price, int)
    again = choose_together(order, pieces, settled, price)
    assert again is not None
    assert place_of(order, settled, best) == place_of(order, settled, again)
    assert choose_together(order, pieces, settled, price - 1) is None


@given(st.sampled_from(ORDERS), st.randoms(use_true_random=False))
def test_what_is_no_worse_stays_so_beside_anything(names: tuple[str, ...], random: Random) -> None:
    """A way that takes the place of one that it makes needless never puts a plan further back."""
    order = Order(names)
    one, other, beside = (a_way(random, random.choice([("a",), ("b",), ("a", "b")])) for _ in range(3))
    if order.no_worse(one, other):
        settled = Sums.none(JOINTS)
        with_one = place_of(order, settled, {(0, 0): one, (1, 0): beside})
        assert with_one <= place_of(order, settled, {(0, 0): other, (1, 0): beside})


@pytest.mark.parametrize("names", ORDERS[:: len(ORDERS) // 12])
def test_the_first_part_that_differs_decides(names: tuple[str, ...]) -> None:
    """A key is worse by a part exactly where that part is greater, or the length is less."""
    order = Order(names)
    base = {"price": 5, "longer_length": 5, "lower_level": 5, "fewer_steps": 5, "option_id": ("m",)}
    worse = {"price": 6, "longer_length": 4, "lower_level": 6, "fewer_steps": 6, "option_id": ("n",)}

    def key(parts: Mapping[str, object]) -> tuple[object, ...]:
        return order.sort_key(*(parts[name] for name in ORDER))  # type: ignore[arg-type]

    for place, name in enumerate(names):
        later = dict.fromkeys(names[place + 1 :])
        assert key(base) < key({**base, name: worse[name]})
        assert key({**base, **{one: worse[one] for one in later}}) < key({**base, name: worse[name]})
