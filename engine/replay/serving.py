"""The serving process of a replay: what its requests ask for, and the version changes that are injected into it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.engine.machine import FormMachine
from hitproof.engine.replay.moulds import Mould, moulds_of
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.errors import UsageError

__all__ = ["CHANGEABLE", "Serving"]

CHANGEABLE = ("request.compressor_version", "request.index_config", "request.window_version", "kernel.version")
"""Versions that a roll-out of the serving process can change; no public trace tells how often one does."""


class Serving:
    """Facts of the running process: request, run time and kernels; each injected change opens a new generation.

    Args:
        bound: The rulebook, bound to a profile; its stated environment gives all that is not overridden.
        types: The carriers of the facts.
        change_rate: Probability, a request, that one version of the process changes for good.
        seed: Seed of the draws.
        request, runtime: Facts that replace those of the environment.

    Raises:
        UsageError: The rate is no probability, or an overridden fact is not declared.
    """

    def __init__(
        self,
        bound: BoundRulebook,
        types: FactTypes,
        *,
        change_rate: float = 0.0,
        seed: int = 0,
        request: Mapping[str, object] | None = None,
        runtime: Mapping[str, object] | None = None,
    ) -> None:
        if type(change_rate) not in (int, float) or not 0 <= change_rate <= 1:
            raise UsageError(
                "the rate of version changes cannot be used", got=change_rate, expected="a number from 0 to 1"
            )
        self.bound, self.types = bound, types
        self.request = self._carrier("request", {**_without_media(bound), **(request or {})})
        self.runtime = self._carrier("runtime", runtime)
        self.kernels = {group.id: self._carrier("kernel", None) for group in bound.groups}
        self.generation = 0
        self.changes: dict[str, int] = {}
        self._machine = FormMachine(bound, types)
        self._rate, self._random = change_rate, Random(seed)
        read = {path for group in bound.groups for check in group.checks for path in reads(check.require)}
        self._changeable = [path for path in CHANGEABLE if path in read]
        self.moulds: list[dict[str, Mould]] = [self._moulds()]

    @property
    def may_change(self) -> bool:
        """Whether a change can ever happen."""
        return bool(self._rate and self._changeable)

    def pass_time(self) -> bool:
        """Lets the injected changes happen that fall before the next request; changes the facts.

        Returns:
            True where a version has changed: what was written before stays of the old one.
        """
        if not self.may_change or self._random.random() >= self._rate:
            return False
        path = self._random.choice(self._changeable)
        self.generation += 1
        self.changes[path] = self.changes.get(path, 0) + 1
        scope, _, fact = path.partition(".")
        # What was written before keeps the contract that it was written by.
        self.kernels = {group: kernel.copy() for group, kernel in self.kernels.items()}
        for carrier in [self.request] if scope == "request" else self.kernels.values():
            setattr(carrier, fact, f"injected {fact} {self.generation}")
        self.moulds.append(self._moulds())
        return True

    def _moulds(self) -> dict[str, Mould]:
        return moulds_of(self.bound, self.types, self._machine, self.request, self.runtime, self.kernels)

    def _carrier(self, scope: str, overrides: Mapping[str, object] | None) -> Any:
        usual = self.bound.rulebook.environment.items()
        prefix = f"{scope}."
        values = {path.removeprefix(prefix): value for path, value in usual if path.startswith(prefix)}
        try:
            return self.types.make(scope, {**values, **(overrides or {})})
        except AttributeError as error:
            raise UsageError(f"'{error}' is no fact of the {scope}", got=str(error)) from error


def _without_media(bound: BoundRulebook) -> dict[str, object]:
    """No public trace tells of media: the first item lies beyond every prompt."""
    fact = bound.rulebook.request.get("media_from")
    return {} if fact is None else {"media_from": fact.hi}
