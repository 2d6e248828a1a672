"""Every distinct abstract state and edge within a number of steps, each step judged by the verifier's relation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hitproof.engine.cache import CacheManager
from hitproof.spec.errors import InternalError
from hitproof.spec.steplog import EventTaken, LeaseTaken, StepTaken
from hitproof.verification.acceptance import Acceptor
from tests.agreement.interleavings.abstract import Abstract, abstract
from tests.agreement.interleavings.world import World, engine

__all__ = ["Explored", "explore"]

Schedule = tuple[str, ...]


@dataclass
class Explored:
    """What was found.

    Args:
        states: Distinct abstract states, with the least number of steps to each.
        edges: Distinct pairs of a state and who took the next step.
        steps: Steps of the log that the relation accepted.
        runs: Runs of a real manager.
        failure: What went wrong first, with its schedule; empty where nothing did.
        schedule: Who took which step up to there.
    """

    states: dict[Abstract, int] = field(default_factory=dict)
    edges: int = 0
    steps: int = 0
    runs: int = 0
    failure: str = ""
    schedule: Schedule = ()


def explore(
    first: str,
    limit: int,
    actors: tuple[str, ...],
    *,
    acceptor: Acceptor | None = None,
    broken: Callable[[CacheManager], None] = lambda _: None,
    deadline: Callable[[], bool] = lambda: False,
) -> Explored:
    """Visit states in the order of their distance; a run is played again from its beginning for each edge.

    Args:
        first: How it begins; see `world.FIRST`.
        limit: Steps.
        actors: Who takes part.
        acceptor: Judges; one that has judged before is faster.
        broken: Breaks the manager on purpose.
        deadline: Answers whether to stop early; then what was not visited is left out.
    """
    found = Explored()
    judge = acceptor or Acceptor(engine().bound)
    left: deque[tuple[Schedule, tuple[str, ...]]] = deque()

    def arrived(schedule: Schedule, run: _Run) -> None:
        state = abstract(run.world)
        if state not in found.states:
            found.states[state] = len(schedule)
            if len(schedule) < limit:
                left.append((schedule, tuple(run.world.baton.points())))

    def play(schedule: Schedule) -> bool:
        found.runs += 1
        run = _Run(first, actors, judge, broken)
        try:
            for name in schedule:
                run.step(name)
            if not run.failure:
                arrived(schedule, run)
            if run.failure:
                found.failure, found.schedule = run.failure, schedule
        finally:
            found.steps += run.accepted
            run.world.baton.close()
        return not found.failure

    if not play(()):
        return found
    while left and not deadline():
        schedule, enabled = left.popleft()
        for name in enabled:
            found.edges += 1
            if not play((*schedule, name)):
                return found
    return found


class _Run:
    """One run, with everything looked at after each step."""

    def __init__(
        self, first: str, actors: tuple[str, ...], judge: Acceptor, broken: Callable[[CacheManager], None]
    ) -> None:
        judge.restart()
        self.judge, self.failure = judge, ""
        self.accepted = -judge.accepted
        self.taken: list[StepTaken] = []
        self.world = World(first, actors, self.taken.append, broken)
        self._look("begin")
        self.accepted = 0

    def step(self, name: str) -> None:
        """Let one actor take its next step, and look."""
        if self.failure:
            return
        before = self.judge.accepted
        point = self.world.baton.points()[name]
        self.world.step(name)
        self._look(point)
        self.accepted += self.judge.accepted - before

    def _look(self, point: str) -> None:
        """The log is the relation's, nothing else has changed, everything adds up, readers read what was checked."""
        taken, self.taken[:] = list(self.taken), []
        for step in taken:
            self.failure = self.failure or self.judge.refusal(step)
        self.failure = self.failure or (_unconfirmed(taken) if point == "publish" else "")
        self.failure = self.failure or self.judge.unseen(self.world.log.now())
        self.failure = self.failure or self.world.misread or self.world.baton.error
        if not self.failure:
            try:
                self.world.manager.check_integrity(quiet=False)
            except InternalError as error:
                self.failure = f"integrity: {error}"


def _unconfirmed(taken: list[StepTaken]) -> str:
    """Copies take the place of what they mend only in a step in which the lease was confirmed first."""
    confirmed = False
    for step in taken:
        confirmed = confirmed or (isinstance(step, LeaseTaken) and step.does == "confirm" and step.answer is True)
        if isinstance(step, EventTaken) and step.event == "commit" and not confirmed:
            return "a copy was published, and its lease was not confirmed in the same step"
    return ""
