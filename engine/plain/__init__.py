"""The decision, read plainly: trees walked, nothing generated, nothing skipped; the engine must answer the same."""

from hitproof.engine.plain.attempt import Attempt, Looked, prefill, step, surroundings
from hitproof.engine.plain.decision import plain_decide, plain_lengths
from hitproof.engine.plain.pieces import pieces_at
from hitproof.engine.plain.repairs import Env, failing, may_run, of_self, options_of, run
from hitproof.engine.plain.rival import declared_price, why_not_cheaper
from hitproof.engine.plain.ways import attempt

__all__ = [
    "Attempt",
    "Env",
    "Looked",
    "attempt",
    "declared_price",
    "failing",
    "may_run",
    "of_self",
    "options_of",
    "pieces_at",
    "plain_decide",
    "plain_lengths",
    "prefill",
    "run",
    "step",
    "surroundings",
    "why_not_cheaper",
]
