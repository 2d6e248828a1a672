"""Bounded recovery: a decision's plan is run on private copies, step by step as the rulebook's process says."""

from hitproof.engine.recovery.result import Recovered, StepTaken
from hitproof.engine.recovery.run import Recovery

__all__ = ["Recovered", "Recovery", "StepTaken"]
