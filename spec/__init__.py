"""The vocabulary: units, facts, conditions, and the models of rules, repairs, proofs and scenarios."""

from hitproof.spec.decision import Decision, PlanStep, Reason
from hitproof.spec.errors import HitproofError, InternalError, Position
from hitproof.spec.profile import Group, Profile
from hitproof.spec.proof import CLAIMS, ClaimResult, VerifyReport
from hitproof.spec.repair import RepairOutcome, RepairRequest, RepairRunner, RunRepair
from hitproof.spec.scenario import Expectation, Replayer, Scenario, ScenarioResult

__all__ = [
    "CLAIMS",
    "ClaimResult",
    "Decision",
    "Expectation",
    "Group",
    "HitproofError",
    "InternalError",
    "PlanStep",
    "Position",
    "Profile",
    "Reason",
    "RepairOutcome",
    "RepairRequest",
    "RepairRunner",
    "Replayer",
    "RunRepair",
    "Scenario",
    "ScenarioResult",
    "VerifyReport",
]
