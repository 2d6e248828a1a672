"""What a fault is: its name, where it was seen, how it is done, and whether logits can show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hitproof.integrations.transformers.oracle.stage import Stage

__all__ = ["Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which stored state is not what its tokens promise.

    Args:
        id: Its name.
        title: What went wrong, in one sentence.
        source: Where it was seen, or why it is here.
        spoil: Stores a prompt on a stage, and does the fault. It raises `NotHere` where the model cannot have it.
        natural: Whether a cache does this by its own design; else it is damage that is done on purpose.
        shared: Tokens that the stored prompt and the asked one share, in the first seed.
        longer: Tokens that each later seed adds: a multiple of the small ratios, so what is unfinished stays.
        inputs: Also run with the layers' inputs kept, since a repair could begin from them.
        unobservable: Why no logit can show it; empty where logits must.
    """

    id: str
    title: str
    source: str
    spoil: Callable[[Stage], None]
    natural: bool = True
    shared: int = 130
    longer: int = 8
    inputs: bool = False
    unobservable: str = ""
