"""Random soaks of many threads, each with a log that is judged afterwards by the verifier's relation."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hitproof.engine.cache.log import StepLog
from hitproof.engine.soak.run import soak
from hitproof.engine.soak.stage import Settings, Stage
from hitproof.spec.steplog import EventTaken, LeaseTaken, StepTaken
from hitproof.verification.acceptance import Acceptor
from tests.agreement.interleavings.broken import Broken

__all__ = ["Soaked", "soaked"]

THREADS = 16
SWITCH_S = 1e-4
"""How long a thread may run before another one gets its turn; far less than Python's own, so that races show."""


@dataclass(frozen=True)
class Soaked:
    """What a soak came to.

    Args:
        accepted: Steps of the log that the relation accepted.
        kinds: How many there were of each.
        refusal: Why the first one that it did not accept is none; empty where it accepted all.
        failure: What ended the soak early; empty where nothing did.
    """

    accepted: int
    kinds: Counter[str]
    refusal: str
    failure: str


def soaked(profile: str, seconds: float, broken: Broken | None = None) -> Soaked:
    """Let sixteen threads use one manager for a while, without faults, and judge the log.

    Args:
        profile: A shipped model; it is made small.
        seconds: How long.
        broken: What is broken on purpose.
    """
    taken: list[StepTaken] = []
    logs: list[StepLog] = []

    class Logged(Stage):
        """A machine whose manager is listened to."""

        def restart(self, folder: Path | None = None) -> None:
            super().restart(folder)
            logs.append(StepLog(self.manager._core, taken.append))
            if broken is not None:
                broken.manager(self.manager)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        ended = soak(Settings(profile=profile, faults=frozenset()), seconds, THREADS, stage=Logged)
        failure, bound = ended.failure, ended.stage.engine.bound
    finally:
        sys.setswitchinterval(switch)
    judge, kinds, refusal = Acceptor(bound), Counter[str](), ""
    for step in taken:
        refusal = judge.refusal(step)
        if refusal:
            break
        kinds[_kind(step)] += 1
    return Soaked(judge.accepted, kinds, refusal or judge.unseen(logs[-1].now()), failure)


def _kind(step: StepTaken) -> str:
    if isinstance(step, EventTaken):
        return step.event if step.happened else f"{step.event} refused"
    return step.does if isinstance(step, LeaseTaken) else type(step).__name__
