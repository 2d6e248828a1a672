"""What a framework states of its requests and writers, as carriers of the rulebook's facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitproof.engine import Engine, healthy_segment
from hitproof.engine.state import FAR
from hitproof.spec.bound import BoundGroup
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import LEVELS

__all__ = ["NO_REPAIRS", "Statements"]

_DRAWN_BY = "attention_config"
"""Where window boundaries lie follows from the attention configuration, unless a framework states more."""

_BOUNDARY_FACTS = ("window_version", "separators", "skipped")


class _NoRepairs(dict[tuple[str, int], frozenset[str]]):
    """Bars every level of every piece: a framework runs no repairs."""

    def get(self, key: tuple[str, int], default: Any = None) -> frozenset[str]:
        return _ALL

    def __bool__(self) -> bool:
        return True


_ALL = frozenset(LEVELS)
NO_REPAIRS: Mapping[tuple[str, int], frozenset[str]] = _NoRepairs()
"""What `Resolved.barred` is where only hits without repairs may be taken."""


class Statements:
    """Makes carriers for one engine; whatever is not stated is unknown.

    Args:
        engine: Rules and model.
        usual: Identity facts that hold unless a request or a writer states others.
    """

    def __init__(self, engine: Engine, usual: Mapping[str, Value]) -> None:
        self._engine = engine
        self.usual = dict(usual)
        prefix = "request."
        self._healthy = {
            path.removeprefix(prefix): value
            for path, value in engine.bound.rulebook.environment.items()
            # Whose bytes they are is stated or unknown, and never taken for usual.
            if path.startswith(prefix) and not _is_identity(engine, path.removeprefix(prefix))
        }
        # A prompt without pictures has none before any token.
        self._healthy["media_from"] = FAR
        self._known: dict[tuple[Any, ...], Any] = {}
        self.request(1, 1, {})

    def request(self, length: int, unit: int, stated: Mapping[str, Value]) -> Any:
        """Facts of a request: its length and hash unit in tokens, and its identity.

        Raises:
            UsageError: A stated name is no fact of a request.
        """
        identity = {**self.usual, **stated}
        for name in _BOUNDARY_FACTS:
            if name in self._engine.bound.rulebook.request:
                identity.setdefault(name, identity.get(_DRAWN_BY))
        values = {**self._healthy, **identity, "length": length, "granularity": unit}
        return self._made("request", values)

    def kernel(self, stated: Mapping[str, Value]) -> Any:
        """What an attention kernel reads.

        Raises:
            UsageError: A stated name is no fact of a kernel.
        """
        return self._made("kernel", stated)

    def runtime(self, pool_epoch: int) -> Any:
        """Run-time facts: the pool's epoch; rates are the rulebook's own, since no repair is chosen by them."""
        prefix = "runtime."
        values = {
            path.removeprefix(prefix): value
            for path, value in self._engine.bound.rulebook.environment.items()
            if path.startswith(prefix)
        }
        return self._made("runtime", {**values, "pool_epoch": pool_epoch})

    def template(self, group: BoundGroup, request: Any, kernel: Any, runtime: Any) -> Any:
        """What is alike in all segments that one writer writes: its identity, and what it wrote them for.

        Facts that other groups' segments decide are unknown.
        """
        context = {"request": request, "kernel": kernel, "runtime": runtime}
        return healthy_segment(self._engine.types, group, {"start": 0, "end": 1}, context, {})

    def nobody(self, group: BoundGroup) -> Any:
        """A segment of which the engine knows where it lies and nobody knows what it holds."""
        owned = {"form": group.home, "tier": "device", "bound_for": "device", "generation": 0, "pins": 0, "epoch": 0}
        return self._engine.types.segment_of(group.id, {**owned, "published": True})

    def records(self, request: Any, matched: int) -> dict[str, list[Any]]:
        """Segments of the groups without bytes that decide: their records are drawn anew by the request."""
        drawn: dict[str, list[Any]] = {}
        for group in self._engine.bound.groups:
            if group.rules.mandatory and group.constants.get("has_bytes", True) is False:
                key = (group.id, *(getattr(request, name) for name in request.names if name != "length"))
                record = self._known.get(key)
                if record is None:
                    if len(self._known) > 256:
                        self._known.clear()
                    record = self._known[key] = self.template(group, request, self.kernel({}), self.runtime(1))
                record = record.copy()
                record.start, record.end, record.matched = 0, matched, matched
                record.marks = frozenset((matched,))
                drawn[group.id] = [record]
        return drawn

    def _made(self, scope: str, values: Mapping[str, Value]) -> Any:
        try:
            return self._engine.types.make(scope, values)
        except AttributeError as error:
            raise UsageError(f"there is no such fact of the {scope}", got=error) from error


def _is_identity(engine: Engine, name: str) -> bool:
    return engine.bound.rulebook.request[name].type.kind == "identity"
