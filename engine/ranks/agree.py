"""The one length that several ranks resume at, from what each of them offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitproof.engine.canonical import digest_of
from hitproof.engine.choosing import Order
from hitproof.engine.offers import Offer

__all__ = ["Agreement", "Offered", "agree"]


@dataclass(frozen=True, slots=True)
class Offered:
    """What one rank offers for one prompt.

    Args:
        subject: Digest of what is asked for: tokens and the facts of the request.
        rulebook: Digest of the rulebook that judged.
        lengths: Offers by length, in tokens.
    """

    subject: str
    rulebook: str
    lengths: Mapping[int, Offer]


@dataclass(frozen=True, slots=True)
class Agreement:
    """What all ranks that hold the same offers come to.

    Args:
        length: Tokens that every rank reuses; 0 for none.
        price: What it takes the slowest rank, in ticks.
        offers: The offer of each rank at that length, by rank.
        digest: Equal for equal agreements about the same prompt by the same rules.
    """

    length: int
    price: int
    offers: tuple[Offer, ...]
    digest: str


def agree(offered: Sequence[Offered], order: Order) -> Agreement | str:
    """The best of the lengths that every rank offers.

    Sets of lengths are intersected: a length that is missing on one rank is no length, however many longer and shorter
    ones that rank has. Ranks work at the same time, so of each number the greatest of any rank counts, and the
    rulebook's order of choosing decides between the lengths; the longer one where it leaves two equal.

    Args:
        offered: By rank.
        order: The rulebook's order of choosing.

    Returns:
        The agreement; a text where there is none: ranks that judge by other rules or about another prompt, or a prompt
        that some rank can neither resume anywhere nor compute from its first token on.
    """
    if len({(one.subject, one.rulebook) for one in offered}) != 1:
        return "the ranks were not asked for the same prompt, or do not judge by the same rules"
    common = set.intersection(*(set(one.lengths) for one in offered))
    if not common:
        return "there is no length that every rank offers"
    found = {length: tuple(one.lengths[length] for one in offered) for length in common}
    length = min(common, key=lambda length: _key(length, found[length], order))
    offers = found[length]
    price = max(one.price for one in offers)
    plans = [[one.plan, one.epochs] for one in offers]
    return Agreement(length, price, offers, digest_of([offered[0].subject, offered[0].rulebook, length, price, plans]))


def _key(length: int, offers: Sequence[Offer], order: Order) -> tuple[object, ...]:
    price, level, steps = (max(values) for values in zip(*((o.price, o.level, o.steps) for o in offers), strict=True))
    return (*order.sort_key(price, length, level, steps, ()), -length)
