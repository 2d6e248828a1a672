"""Replays of traces: what a hash-only cache would claim, what the rules let be reused, what recovery costs."""

from hitproof.engine.replay.policies import evaluate_policy
from hitproof.engine.replay.policy_report import PolicyReport, policy_table
from hitproof.engine.replay.report import RecoveryCost, ReplayReport
from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.run import replay
from hitproof.engine.replay.series import Timeline
from hitproof.engine.replay.table import Tiers, markdown_table, replay_table

__all__ = [
    "PolicyReport",
    "RecoveryCost",
    "ReplayReport",
    "Retention",
    "Tiers",
    "Timeline",
    "evaluate_policy",
    "markdown_table",
    "policy_table",
    "replay",
    "replay_table",
]
