"""Who is told what happens: the protocol, the observer that does nothing, and several observers as one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from hitproof.spec.decision import Decision, Verdict

if TYPE_CHECKING:
    from hitproof.engine.recovery.result import Recovered, StepTaken

__all__ = ["NOBODY", "Observer", "Observers", "Served", "Silent", "is_explained"]


@dataclass(frozen=True, slots=True)
class Served:
    """What a request ended with; told once a request.

    Args:
        decision: The last decision about it.
        verdict: The verdict after recovery; that of the decision where nothing was recovered.
        usable: Tokens that are reused, at most the decision's logical ones.
        tokens: Tokens of the request; 0 where they are not known.
    """

    decision: Decision
    verdict: Verdict
    usable: int
    tokens: int


class Observer(Protocol):
    """Is told what happened, after it happened and in the thread in which it did.

    An observer changes neither segments nor answers. Where threads share one, it guards its own state.
    """

    def decided(self, decision: Decision, seconds: float) -> None:
        """The rules were asked; a recovery may ask more than once for a request.

        Args:
            decision: Its `admission` says which rules of admission stood against the plan that was wanted.
            seconds: Wall time that it took.
        """
        ...

    def served(self, served: Served) -> None:
        """A request has its final answer."""
        ...

    def stepped(self, step: StepTaken) -> None:
        """A recovery took a step."""
        ...

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """A recovery ended; `served` follows.

        Args:
            recovered: Its end.
            seconds: Wall time from its first decision on.
        """
        ...

    def changed(self, group: str, transition: str, result: str) -> None:
        """An event was asked of a segment.

        Args:
            group: The segment's group.
            transition: Id of the event.
            result: One of `spec.metrics.TRANSITION_RESULTS`.
        """
        ...


class Silent:
    """Does nothing; a base for observers that listen to a part only."""

    def decided(self, decision: Decision, seconds: float) -> None:
        """Does nothing."""

    def served(self, served: Served) -> None:
        """Does nothing."""

    def stepped(self, step: StepTaken) -> None:
        """Does nothing."""

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """Does nothing."""

    def changed(self, group: str, transition: str, result: str) -> None:
        """Does nothing."""


NOBODY = Silent()
"""The observer where none is asked for."""


class Observers:
    """Several observers as one, in their order.

    An observer that fails changes no answer: its error is logged once and counted, and the others are still told.
    """

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers
        self._lock = Lock()
        self.failures: dict[str, int] = {}

    def decided(self, decision: Decision, seconds: float) -> None:
        """Tell all."""
        self._tell("decided", decision, seconds)

    def served(self, served: Served) -> None:
        """Tell all."""
        self._tell("served", served)

    def stepped(self, step: StepTaken) -> None:
        """Tell all."""
        self._tell("stepped", step)

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """Tell all."""
        self._tell("recovered", recovered, seconds)

    def changed(self, group: str, transition: str, result: str) -> None:
        """Tell all."""
        self._tell("changed", group, transition, result)

    def _tell(self, what: str, *told: Any) -> None:
        for observer in self._observers:
            try:
                getattr(observer, what)(*told)
            except Exception:
                self._failed(type(observer).__name__)

    def _failed(self, name: str) -> None:
        with self._lock:
            self.failures[name] = self.failures.get(name, 0) + 1
            first = self.failures[name] == 1
        if first:
            logging.getLogger("hitproof.observe").exception("observer %s failed; later failures are only counted", name)


def is_explained(decision: Decision) -> bool:
    """Whether a decision tells which checks failed; one that was asked without an explanation bears no digest."""
    return bool(decision.digest)
