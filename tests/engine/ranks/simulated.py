"""Ranks in lockstep, without threads or clocks: any rank can be killed anywhere, and any message lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine.choosing import Order
from hitproof.engine.offers import Offer
from hitproof.engine.ranks import Held, Joint, Offered
from hitproof.engine.ranks.messages import PHASES, Phase
from hitproof.engine.ranks.turn import Ask, Heard, Seat, take_turn, tell_end

ORDER = Order(["price", "longer_length", "lower_level", "fewer_steps", "option_id"])
CALLS = ("offers", "prepare", "commit")
SIDES = ("before", "after")

Lost = Callable[[Phase, int, int], bool]
"""Whether what a sender says in an exchange does not reach a receiver."""


class Killed(BaseException):
    """The process of a rank has ended."""


@dataclass
class ToyMember:
    """A rank's cache that remembers what was done with it.

    Args:
        lengths: Offered lengths with their prices.
        killed: Call, and side of it, at which the process ends.
        refuses: Call that goes wrong: `prepare` and `commit` answer no; `raise ...` raises in the call.
    """

    lengths: dict[int, int]
    killed: tuple[str, str] | None = None
    refuses: str = ""
    held: int | None = None
    published: int | None = None
    aborted: int = 0

    def offers(self, prompt: str, at_most: int | None) -> Offered:
        self._meet("offers", "before")
        kept = {
            length: Offer(price, -1, 0, f"plan {length}", f"epochs {length}")
            for length, price in self.lengths.items()
            if at_most is None or length <= at_most
        }
        self._meet("offers", "after")
        return Offered(prompt, "rules", kept)

    def prepare(self, prompt: str, length: int, offer: Offer) -> Held | str:
        self._meet("prepare", "before")
        assert offer.plan == f"plan {length}"
        if self.refuses == "prepare":
            return "a source is gone"
        self.held = length
        self._meet("prepare", "after")
        return Held(offer.plan, offer.epochs)

    def commit(self) -> bool:
        self._meet("commit", "before")
        if self.refuses == "commit":
            return False
        self.published = self.held
        self._meet("commit", "after")
        return True

    def abort(self) -> None:
        self.held = None
        self.aborted += 1

    def _meet(self, call: str, side: str) -> None:
        if self.killed == (call, side):
            raise Killed
        if self.refuses == f"raise {call}" and side == "after":
            raise RuntimeError("a device is lost")


@dataclass
class Run:
    """What became of each rank: its joint answer, whether it launched, and whether it may give results out.

    Args:
        dead: Ranks that were killed.
        raised: Ranks whose own call went wrong.
        exchanges: Exchanges that each rank waited in.
    """

    members: Sequence[ToyMember]
    joints: dict[int, Joint] = field(default_factory=dict)
    finished: dict[int, bool] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    raised: set[int] = field(default_factory=set)
    exchanges: list[int] = field(default_factory=list)

    @property
    def going(self) -> set[int]:
        """Ranks that may launch, dead ones too, which could have."""
        return {rank for rank, joint in self.joints.items() if joint.go}


def run(
    members: Sequence[ToyMember],
    lost: Lost = lambda phase, sender, receiver: False,
    killed: Sequence[tuple[Phase, int]] = (),
) -> Run:
    """One turn and its end.

    Args:
        members: The ranks.
        lost: Which messages are lost.
        killed: Ranks that end while they tell what they say in an exchange; `lost` says to whom it still comes.
    """
    made = Run(members, exchanges=[0] * len(members))
    steps = {rank: _life(rank, members, made) for rank in range(len(members))}
    asks: dict[int, Ask | None] = {rank: _next(steps, made, rank, None) for rank in steps}
    for phase in PHASES:
        said: dict[int, bytes] = {}
        for rank, ask in list(asks.items()):
            if ask is not None and ask.phase == phase:
                said[rank] = ask.message
                if (phase, rank) in killed:
                    made.dead.add(rank)
                    asks[rank] = None
        for rank, ask in list(asks.items()):
            if ask is None or ask.phase != phase:
                continue
            made.exchanges[rank] += ask.wait
            heard: Heard = [
                said.get(sender) if sender == rank or not lost(phase, sender, rank) else None
                for sender in range(len(members))
            ]
            asks[rank] = _next(steps, made, rank, heard if ask.wait else [None] * len(members))
    assert all(ask is None for ask in asks.values())
    return made


def _life(rank: int, members: Sequence[ToyMember], made: Run) -> Generator[Ask, Heard, None]:
    joint = yield from take_turn(members[rank], "prompt", Seat(1, rank, len(members)), ORDER)
    made.joints[rank] = joint
    if joint.go:
        made.finished[rank] = yield from tell_end(joint, used=True)


def _next(steps: dict[int, Any], made: Run, rank: int, heard: Heard | None) -> Ask | None:
    try:
        ask: Ask = steps[rank].send(heard)
    except StopIteration:
        return None
    except Killed:
        made.dead.add(rank)
        return None
    except RuntimeError:
        made.raised.add(rank)
        return None
    return ask
