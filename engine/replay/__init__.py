"""Replays of traces: what a hash-only cache would claim, what the rules let be reused, what recovery costs."""

from hitproof.engine.replay.report import ReplayReport
from hitproof.engine.replay.retention import MODES, Mode, Retention
from hitproof.engine.replay.run import replay
from hitproof.engine.replay.table import Tiers, markdown_table, replay_table

__all__ = ["MODES", "Mode", "ReplayReport", "Retention", "Tiers", "markdown_table", "replay", "replay_table"]
