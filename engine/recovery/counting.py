"""The counters of a recovery, changed by declared steps alone; a change that does not lower them is not made."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.spec.condition import interpret
from hitproof.spec.facts import Value, admit
from hitproof.spec.process import ProcessStep, RecoveryProcess

__all__ = ["Counting", "Measures"]

Measures = Mapping[str, int | bool]
"""What the engine counted, by the names of `spec.process.MEASURES`."""


class Counting:
    """Evaluates the guards and effects of a process.

    Args:
        process: Counters and steps.
        environment: Request and run-time facts by path.
    """

    def __init__(self, process: RecoveryProcess, environment: Mapping[str, Value]) -> None:
        self._process, self._environment = process, environment
        self.counters: dict[str, int] = {}

    def begin(self, measures: Measures) -> bool:
        """Give every counter its start; False where one has none within its domain."""
        env = self._env(measures)
        return self._assign({one.id: interpret(one.start, env) for one in self._process.counters})

    def choose(self, report: str, measures: Measures) -> ProcessStep | None:
        """The first step that answers the report and whose guard surely holds."""
        env = self._env(measures)
        return next(
            (
                step
                for step in self._process.steps
                if report in step.on and (step.when is None or interpret(step.when, env) is True)
            ),
            None,
        )

    def change(self, step: ProcessStep, measures: Measures) -> bool:
        """Apply a step's effect, measured after its consequence.

        Returns:
            False, with the counters as they were, where they would not become less in the order in which they weigh,
            or where one would leave its domain.
        """
        env = self._env(measures)
        after = {
            **self.counters,
            **{name: measures[name] for name in step.takes},
            **{name: interpret(node, env) for name, node in step.sets.items()},
        }
        before = dict(self.counters)
        if not self._assign(after):
            return False
        if tuple(self.counters.values()) < tuple(before.values()):
            return True
        self.counters = before
        return False

    def _assign(self, values: Mapping[str, Value]) -> bool:
        """Set all counters, in their declared order, or none of them."""
        admitted = {one.id: admit(one.fact, values[one.id]) for one in self._process.counters}
        if any(value is None for value in admitted.values()):
            return False
        self.counters = admitted  # type: ignore[assignment]
        return True

    def _env(self, measures: Measures) -> dict[str, Value]:
        return {**self._environment, **{f"event.{k}": v for k, v in measures.items()}, **self.counters}
