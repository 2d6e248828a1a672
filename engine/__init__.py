"""The running path: decides, leases and recovers cache hits by the rules of a loaded rulebook."""

from hitproof.engine.decide import Engine
from hitproof.engine.facts import FactTypes
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.lease import Lease
from hitproof.engine.load import load
from hitproof.engine.machine import FormMachine
from hitproof.engine.metrics import HitCounters
from hitproof.engine.scenario import EngineReplayer, run_scenario
from hitproof.engine.state import Resolved
from hitproof.engine.table import TransitionTable

__all__ = [
    "Engine",
    "EngineReplayer",
    "FactTypes",
    "FormMachine",
    "HitCounters",
    "Lease",
    "Resolved",
    "TransitionTable",
    "healthy_segment",
    "load",
    "run_scenario",
]
