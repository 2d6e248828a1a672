"""One file a claim; the claim's id is the file's name."""

from hitproof.spec.proof import CLAIMS
from hitproof.verification.claims import (
    admission_bounded,
    alignment,
    cheapest_first,
    complete,
    deterministic,
    fail_closed,
    graph_covers_machine,
    identity_monotone,
    intersection_satisfiable,
    repair_sound,
    separation,
    sound,
    static_graph,
    terminates,
)
from hitproof.verification.run import Claim

__all__ = ["ALL_CLAIMS"]

_MODULES = (
    admission_bounded,
    alignment,
    cheapest_first,
    complete,
    deterministic,
    fail_closed,
    graph_covers_machine,
    identity_monotone,
    intersection_satisfiable,
    repair_sound,
    separation,
    sound,
    static_graph,
    terminates,
)

ALL_CLAIMS: dict[str, Claim] = {
    name: next(module.CLAIM for module in _MODULES if module.CLAIM.id == name) for name in CLAIMS
}
"""Every claim by its id, in the order in which they are told."""
