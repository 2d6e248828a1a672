"""Ranks: several caches agree on one length, prepare it, and use it together or not at all."""

from hitproof.engine.ranks.agree import Agreement, Offered, agree
from hitproof.engine.ranks.local import LocalTransport, Room
from hitproof.engine.ranks.protocol import Ranks, Transport
from hitproof.engine.ranks.recovering import RecoveringMember
from hitproof.engine.ranks.turn import Held, Joint, Member

__all__ = [
    "Agreement",
    "Held",
    "Joint",
    "LocalTransport",
    "Member",
    "Offered",
    "Ranks",
    "RecoveringMember",
    "Room",
    "Transport",
    "agree",
]
