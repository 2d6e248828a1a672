"""Early demotion by the rules: which segments leave the device before their room is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import bind, compile_python

__all__ = ["EarlyDemotion"]

Read = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class _Rule:
    to: str
    when: Read
    rank: Read


class EarlyDemotion:
    """Asks a policy's demotion rules (article 7).

    Args:
        bound: The rulebook, bound to a model.
        policy: Id of one of its policies.
    """

    def __init__(self, bound: BoundRulebook, policy: str) -> None:
        rules = bound.rulebook.policy
        self._rules: dict[str, list[_Rule]] = {group.id: [] for group in bound.groups}
        for group in bound.groups:
            constants = {f"group.{name}": value for name, value in group.constants.items()}
            for name in rules.policies[policy].demotion:
                rule = rules.demotion[name]
                if group.object in rule.when:
                    when, rank = (
                        compile_python(bind(node, constants, where=rule.where, rule=name), trusted=True)
                        for node in (rule.when[group.object], rule.rank[group.object])
                    )
                    self._rules[group.id].append(_Rule(rule.to, when, rank))

    @property
    def asks(self) -> bool:
        """Whether the policy has any such rule."""
        return any(self._rules.values())

    def chosen(self, segments: Iterable[Any], runtime: Any) -> list[tuple[Any, str]]:
        """Segments that should leave now, with the tier that they go to, in the order in which they go.

        Args:
            segments: Segments at rest on the device.
            runtime: Run-time facts.
        """
        around = runtime.as_dict("runtime.")
        found: list[tuple[float, int, Any, str]] = []
        for place, segment in enumerate(segments):
            facts = {**around, **segment.as_dict("self.")}
            for rule in self._rules[segment.group]:
                if rule.when(facts) is True:
                    rank = rule.rank(facts)
                    found.append((float("inf") if rank is None else float(rank), place, segment, rule.to))
                    break
        return [(segment, to) for _, _, segment, to in sorted(found, key=lambda one: one[:2])]
