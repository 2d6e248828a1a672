"""Doors with an observer: the same decisions and the same events, and somebody is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from hitproof.engine.event import EventContext, ImpossibleEventError
from hitproof.engine.observe.observer import Observer, Served
from hitproof.spec.decision import Decision

if TYPE_CHECKING:
    from hitproof.engine.state import Resolved
    from hitproof.engine.table import TransitionTable

__all__ = ["Decides", "Fires", "ObservedEngine", "ObservedMachine", "ObservedTable"]


class Decides(Protocol):
    """An engine, with a policy or without."""

    def decide(self, state: Resolved, *, explain: bool = True) -> Decision:
        """Decide one request."""
        ...


class Fires(Protocol):
    """The form machine or its table."""

    def fire(self, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen to a segment."""
        ...


class ObservedEngine:
    """Decides as the engine does, and tells each decision as the answer to its request.

    A request that a `Recovery` carries out is told by the recovery; give that one the plain engine, or the request
    counts twice.
    """

    def __init__(self, engine: Decides, observer: Observer) -> None:
        self._engine, self._observer = engine, observer

    def decide(self, state: Resolved, *, explain: bool = True) -> Decision:
        """Decide one request, and tell it.

        Args:
            state: Segments, request, run time and kernels.
            explain: Also give reasons, dispositions and flags; without it failed checks are not known and not counted.
        """
        began = perf_counter()
        decision = self._engine.decide(state, explain=explain)
        self._observer.decided(decision, perf_counter() - began)
        self._observer.served(Served(decision, decision.verdict, decision.usable, state.request.length or 0))
        return decision


class ObservedMachine:
    """Fires events as the machine does, and tells each of them."""

    def __init__(self, machine: Fires, observer: Observer) -> None:
        self._machine, self._observer = machine, observer

    def fire(self, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen to a segment, and tell it.

        Raises:
            ImpossibleEventError: The segment's object does not have the event, or not in this form.
        """
        try:
            fired = self._machine.fire(segment, trigger, context)
        except ImpossibleEventError:
            self._observer.changed(segment.group, trigger, "impossible")
            raise
        self._observer.changed(segment.group, trigger, "fired" if fired else "refused")
        return fired


class ObservedTable(ObservedMachine):
    """Fires events as the table does, and tells each of them."""

    def __init__(self, table: TransitionTable, observer: Observer) -> None:
        super().__init__(table, observer)
        self._table = table

    def fire_all(
        self, segments: Iterable[Any], trigger: str, context: EventContext | Callable[[Any], EventContext]
    ) -> list[bool]:
        """Let the same event happen to many segments, and tell it for each.

        Raises:
            ImpossibleEventError: For one segment the event is impossible; then none has changed, and one is told.
        """
        chosen = list(segments)
        try:
            answers = self._table.fire_all(chosen, trigger, context)
        except ImpossibleEventError as error:
            group = str(error.got).partition(".")[0]
            self._observer.changed(group, trigger, "impossible")
            raise
        for segment, fired in zip(chosen, answers, strict=True):
            self._observer.changed(segment.group, trigger, "fired" if fired else "refused")
        return answers
