"""What ranks tell each other: small canonical JSON, versioned and capped, and refused where anything is odd."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hitproof.engine.canonical import canonical
from hitproof.engine.offers import MOST, Offer
from hitproof.engine.ranks.agree import Offered
from hitproof.spec.price import UNKNOWN_PRICE

__all__ = ["MAX_BYTES", "Message", "PHASES", "Phase", "Vote", "decode", "encode"]

Phase = Literal["offer", "vote", "go", "done"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""The exchanges of one turn, in their order."""

VERSION = 1
"""Grows when a message of this version would be read as something else."""

MAX_BYTES = 2**20
"""Most bytes of a message."""

_MAX_TEXT = 200
_MAX_LENGTH = 2**40


@dataclass(frozen=True, slots=True)
class Vote:
    """What a rank says after the offers.

    Args:
        yes: Whether it has done its part, and holds what the use reads.
        about: Digest of all that it has heard up to now.
        plan, epochs: Digests of the repairs that ran and of the epochs that are held; empty but after preparing.
        why: A plain sentence where it says no.
    """

    yes: bool
    about: str
    plan: str = ""
    epochs: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One rank's part of one exchange.

    Args:
        turn: Number of the turn, the same on every rank.
        rank: Who says it.
        body: Offers in the phase `offer`, a vote else and where a rank has none.
    """

    turn: int
    phase: Phase
    rank: int
    body: Offered | Vote


def encode(message: Message) -> bytes:
    """The message as bytes, at most `MAX_BYTES`: of many offers, the longest lengths and length 0 are told."""
    body = message.body
    told: Any
    if isinstance(body, Vote):
        told = [body.yes, body.about, body.plan, body.epochs, body.why[:_MAX_TEXT]]
    else:
        longest = sorted((length for length in body.lengths if length), reverse=True)[:MOST]
        lengths = [*longest, 0] if 0 in body.lengths else longest
        told = [body.subject, body.rulebook, [_told(length, body.lengths[length]) for length in lengths]]
    return canonical({"v": VERSION, "turn": message.turn, "phase": message.phase, "rank": message.rank, "body": told})


def decode(content: bytes) -> Message | str:
    """The message of these bytes, or why it is refused; no content makes it raise."""
    if len(content) > MAX_BYTES:
        return f"a message has {len(content)} bytes, more than {MAX_BYTES}"
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return "a message is no JSON"
    if not isinstance(read, dict) or set(read) != {"v", "turn", "phase", "rank", "body"}:
        return "a message has other fields"
    if read["v"] != VERSION:
        return f"a message has version {str(read['v'])[:20]}, not {VERSION}"
    phase, body = read["phase"], read["body"]
    if phase not in PHASES or not (_count(read["turn"]) and _count(read["rank"]) and isinstance(body, list)):
        return "a message has values of another kind"
    made = _offered(body) if phase == "offer" and len(body) == 3 else _vote(body)
    if made is None:
        return "the body of a message has another shape"
    message = Message(read["turn"], phase, read["rank"], made)
    # Only one spelling of each message is taken: doubled keys, spaces and other numbers are none of ours.
    return message if encode(message) == content else "a message is not written canonically"


def _told(length: int, offer: Offer) -> list[Any]:
    price = None if offer.price >= UNKNOWN_PRICE else offer.price
    return [length, price, offer.level, offer.steps, offer.plan, offer.epochs]


def _offered(body: list[Any]) -> Offered | None:
    if not (_text(body[0]) and _text(body[1]) and isinstance(body[2], list)):
        return None
    lengths: dict[int, Offer] = {}
    for entry in body[2]:
        if not isinstance(entry, list) or len(entry) != 6:
            return None
        length, price, level, steps, plan, epochs = entry
        known = price is None or (type(price) is int and 0 <= price < UNKNOWN_PRICE)
        if not (_count(length) and known and type(level) is int and -1 <= level < 100 and _count(steps)):
            return None
        if not (_text(plan) and _text(epochs)):
            return None
        lengths[length] = Offer(UNKNOWN_PRICE if price is None else price, level, steps, plan, epochs)
    return Offered(body[0], body[1], lengths)


def _vote(body: list[Any]) -> Vote | None:
    if len(body) != 5 or type(body[0]) is not bool or not all(map(_text, body[1:])):
        return None
    return Vote(*body)


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_LENGTH


def _text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT
