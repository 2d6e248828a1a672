"""The running path: decides, leases and recovers cache hits by the rules of a loaded rulebook."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hitproof.engine.decide import Engine
from hitproof.engine.facts import FactTypes
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.keys import request_key, segment_key, token_digests
from hitproof.engine.lease import Lease
from hitproof.engine.load import load
from hitproof.engine.metrics import HitCounters
from hitproof.engine.policy import PolicyEngine
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.state import Resolved
from hitproof.engine.table import TransitionTable

if TYPE_CHECKING:
    from hitproof.engine.machine import FormMachine
    from hitproof.engine.scenario import EngineReplayer, run_scenario

__all__ = [
    "Engine",
    "EngineReplayer",
    "FactTypes",
    "FormMachine",
    "HitCounters",
    "Lease",
    "PolicyEngine",
    "Recovered",
    "Recovery",
    "Resolved",
    "TransitionTable",
    "healthy_segment",
    "load",
    "request_key",
    "run_scenario",
    "segment_key",
    "token_digests",
]

_LATE = {
    "EngineReplayer": "hitproof.engine.scenario",
    "FormMachine": "hitproof.engine.machine",
    "run_scenario": "hitproof.engine.scenario",
}
"""Names whose rooms import the state machine library, which deciding does not need."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
