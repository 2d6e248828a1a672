"""What a plan takes of each pool in truth, and how the facts of one plan hang together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitproof.spec.plan import PLAN_FACTS
from hitproof.verification.z3_facts import FactNames

__all__ = ["CONSISTENT", "TAKES", "consistent", "takes"]

TAKES: dict[str, Callable[[Callable[[str], Any]], Any]] = {
    # A request runs to its end and pins every block of its prompt and of its answer: one that only rests in the cache
    # is used by nobody, and no longer free once it is read. A block that others pin too is counted for each of them.
    "device_blocks": lambda fact: fact("plan.blocks") + fact("request.answer_blocks"),
    # Bytes of every slower tier pass through the staging buffer (article 4.3; vllm-project/vllm#45388 for the blocks).
    "staging": lambda fact: fact("plan.host_bytes") + fact("plan.disk_bytes"),
}
"""Pool to what a plan takes of it in all; written from how serving works, never from the rulebook."""

CONSISTENT = "the facts of one plan hang together"
"""Id of the assumption, as it is told."""


def takes(pool: str, names: FactNames) -> Any | None:
    """Amount that a plan takes of a pool until its request has ended; None where no axiom says so."""
    amount = TAKES.get(pool)
    return None if amount is None else amount(lambda path: names(path).value)


def consistent(names: FactNames) -> list[Any]:
    """Blocks held and made are blocks of the prompt; what the engine gives is known."""

    def value(path: str) -> Any:
        return names(path).value

    return [
        *(names(f"plan.{name}").known for name in PLAN_FACTS),
        names("request.answer_blocks").known,
        value("plan.held_blocks") + value("plan.loaded_blocks") <= value("plan.blocks"),
        value("plan.blocks") <= value("request.length"),
        value("plan.length") < value("request.length"),
        value("plan.level") <= 3,
    ]
