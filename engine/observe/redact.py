"""Decisions as plain data that may leave the process: identities hashed, sizes capped, no tokens and no salts."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from hitproof.spec.decision import Decision, PlanStep, Reason
from hitproof.spec.facts import Fact, Value
from hitproof.spec.rulebook import Rulebook

__all__ = ["LEFT_OUT", "Redactor", "plan_data"]

LEFT_OUT = "(left out)"
MAX_VALUES = 16
MAX_REASONS = 32
MAX_MEMBERS = 8
MAX_TEXT = 400
MAX_NUMBER = 2**62


class Redactor:
    """Makes values safe to write down.

    An identity becomes a keyed hash: equal within one redactor, so that two identities can be seen to differ, and
    worth nothing to whoever does not have the key. What the rulebook does not declare is left out.

    Args:
        rulebook: Says which facts are identities.
        key: Key of the hash; a new one that is kept nowhere else where it is None.
    """

    def __init__(self, rulebook: Rulebook, key: bytes | None = None) -> None:
        self._key = token_bytes(32) if key is None else key
        self._kinds: dict[str, set[str]] = {}
        scopes = (rulebook.request, rulebook.runtime, rulebook.kernel, rulebook.group)
        for facts in (*scopes, *(one.facts for one in rulebook.objects.values())):
            self._learn(facts)

    def _learn(self, facts: Mapping[str, Fact]) -> None:
        for name, fact in facts.items():
            self._kinds.setdefault(name, set()).add(fact.type.kind)

    def value(self, path: str, value: Value) -> Any:
        """A fact's value as it may be written down; None stays unknown."""
        kinds = self._kinds.get(path.rpartition(".")[2], {"bool", "int"})
        if value is None:
            return None
        if "identity" in kinds:
            return "~" + blake2b(repr(value).encode(), key=self._key, digest_size=6).hexdigest()
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return value if -MAX_NUMBER <= value <= MAX_NUMBER else LEFT_OUT
        if isinstance(value, frozenset) and "set" in kinds:
            return {"members": sorted(value)[:MAX_MEMBERS], "of": len(value)}
        return value if "enum" in kinds and isinstance(value, str) and len(value) <= 64 else LEFT_OUT

    def reason(self, reason: Reason) -> dict[str, Any]:
        """A rule that did not hold, with what it read."""
        values = dict(list(reason.values.items())[:MAX_VALUES])
        return {
            "rule": reason.rule,
            "layer": reason.layer,
            "conjunct": _clip(reason.conjunct),
            "values": {path: self.value(path, value) for path, value in values.items()},
            "because": _clip(reason.because),
            "place": _clip(reason.place),
        }

    def decision(self, decision: Decision, *, reasons: bool = True) -> dict[str, Any]:
        """A decision, with the values that failing rules read where `reasons` asks for them."""
        return {
            "verdict": decision.verdict,
            "logical": decision.logical,
            "usable": decision.usable,
            "cost_us": _finite(decision.cost_us),
            "total_us": _finite(decision.total_us),
            "plan": [plan_data(step) for step in decision.plan[:MAX_REASONS]],
            "failed": list(decision.failed[:MAX_REASONS]),
            "reasons": [self.reason(one) for one in decision.reasons[:MAX_REASONS]] if reasons else [],
            "admission": [self.reason(one) for one in decision.admission[:MAX_REASONS]] if reasons else [],
            "dispositions": dict(list(decision.dispositions.items())[:MAX_REASONS]),
            "flags": list(decision.flags),
            "execution": decision.execution,
            "digest": decision.digest,
        }


def plan_data(step: PlanStep) -> dict[str, Any]:
    """A repair of a plan as plain data."""
    return {
        "group": step.group,
        "segment": step.segment,
        "option": step.option,
        "repair": step.repair,
        "level": step.level,
        "cost_us": step.cost_us,
    }


def _finite(number: float) -> float | None:
    return number if number < float("inf") else None


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."
