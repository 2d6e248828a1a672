"""The error that valid reuse of a model stays below, taken from valid runs of the library alone."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hitproof.integrations.transformers.oracle.arms import error_of
from hitproof.integrations.transformers.oracle.stage import WANTED, forward
from hitproof.integrations.transformers.state import StateMap
from hitproof.integrations.transformers.tiny import TinyModel

__all__ = ["Tolerance", "calibrate"]

_TIMES = 10.0
"""How far beyond the worst valid run the line is drawn."""
_LEAST = 1e-5
"""What rounding of float32 alone explains."""
_LENGTHS = (60, 97, 130, 131, 132, 150, 171, 200)
"""On both sides of every ratio and window."""
_SHORTEST, _LONGEST = 50, 200


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How a model's tolerance was found.

    Args:
        limit: Error, as a share of the logits' spread, that is still valid.
        worst: Largest error of the valid runs.
        runs: How many there were.
    """

    limit: float
    worst: float
    runs: int


def calibrate(models: list[TinyModel], drawn: int = 16) -> Tolerance:
    """Compare valid continuations with cold runs, in one shot each.

    A valid run computes a prefix in one pass or in two, with the library's own cache handed from one to the next, and
    then what follows in one more. No prefix cache and no rule takes part.

    Args:
        models: The same model with weights of several seeds.
        drawn: Further lengths that are drawn. Errors of recurrent layers are far from evenly spread, so the more valid
            requests are to be judged, the more of them it takes.
    """
    errors = []
    for seed, tiny in enumerate(models):
        draw = Random(f"calibrated/{tiny.name}/{seed}")
        state = StateMap(tiny.model, tiny.profile)
        for length in (*_LENGTHS, *(draw.randrange(_SHORTEST, _LONGEST) for _ in range(drawn))):
            tokens = [draw.randrange(3, tiny.vocabulary) for _ in range(length + WANTED)]
            cold = forward(tiny.model, tokens, state.fresh())[-WANTED:]
            for cuts in ((), (draw.randrange(1, length),)):
                past, done = state.fresh(), 0
                for cut in (*cuts, length):
                    forward(tiny.model, tokens[done:cut], past)
                    done = cut
                errors.append(error_of(forward(tiny.model, tokens[length:], past), cold))
    worst = max(errors)
    return Tolerance(max(_TIMES * worst, _LEAST), worst, len(errors))
