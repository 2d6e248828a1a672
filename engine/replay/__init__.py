"""Replays of real traces: what a hash-only cache would claim, what the rules let be reused, and what recovery costs."""

from hitproof.engine.replay.report import ReplayReport
from hitproof.engine.replay.retention import MODES, Mode, Retention
from hitproof.engine.replay.run import replay

__all__ = ["MODES", "Mode", "ReplayReport", "Retention", "replay"]
