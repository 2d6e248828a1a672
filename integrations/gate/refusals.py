"""Which blocks of a look-up are bad in themselves, whatever length is asked for."""

from __future__ import annotations

from collections.abc import Callable

from hitproof.engine import Engine, Resolved
from hitproof.engine.state import FAR
from hitproof.integrations.gate.segments import Held
from hitproof.spec.bound import BoundGroup

__all__ = ["OWN_LAYERS", "good_until"]

OWN_LAYERS = frozenset({"identity", "block_integrity", "kernel_interface", "hardware_alignment"})
"""Layers of checks that a segment passes or fails alone; the others ask how segments fit together."""


def good_until(engine: Engine, group: BoundGroup, state: Resolved) -> Callable[[Held], int]:
    """A function that tells how many leading blocks of a segment fail no check of their own for this request.

    Each block is judged at its own end. Its blocks are alike in all but where they end, and a block fails by that
    alone where one before it does, as behind the first token of a picture; so the first bad one is found by halving.

    Args:
        engine: Rules and model.
        group: The segments' group.
        state: The look-up.
    """
    compiled = next(one for one in engine.judge.groups if one.id == group.id)
    own = sum(1 << bit for bit, check in enumerate(group.checks) if check.layer in OWN_LAYERS)
    peers = (engine.judge.nobody, False) * len(compiled.roles)
    context = (state.request, state.runtime, state.kernels[group.id])
    ahead = int(group.constants.get("lookahead", 0))

    def good(held: Held) -> int:
        facts, count = held.facts, held.to - held.first
        tokens = (facts.end - facts.start) // count if count > 1 else 0

        def passes(blocks: int) -> bool:
            # A group that looks ahead resumes so much before its end.
            length = max(1, facts.end - (count - blocks) * tokens - ahead)
            return not compiled.judge(facts, *context, length, 0, FAR, *peers) & own

        if passes(count):
            return count
        least, most = 0, count
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if passes(middle) else (least, middle)
        return least

    return good
