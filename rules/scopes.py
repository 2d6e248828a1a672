"""What each kind of expression in a rulebook may read."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.rules.vocabulary import Vocabulary, block_fact, pseudo_fact, token_fact
from hitproof.spec.condition import Node, Scope
from hitproof.spec.facts import Fact
from hitproof.spec.plan import PLAN_FACTS
from hitproof.spec.process import MEASURES

__all__ = ["Scopes"]


class Scopes:
    """Builds scopes from a vocabulary; objects register their own facts and peers first."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.objects: dict[str, dict[str, Fact]] = {}
        self.homes: dict[str, str] = {}
        self.peers: dict[str, Mapping[str, tuple[str, ...]]] = {}
        shared = {
            f"{scope}.{name}": fact
            for scope in ("request", "runtime", "kernel", "group")
            for name, fact in vocabulary.facts[scope].items()
        }
        self._environment = {k: f for k, f in shared.items() if k.startswith(("request.", "runtime."))}
        self._shared = shared
        self._constants = frozenset(k for k in shared if k.startswith("group."))

    def register(self, name: str, home: str, facts: dict[str, Fact], peers: Mapping[str, tuple[str, ...]]) -> None:
        """Make an object known before any expression of it is parsed."""
        self.objects[name], self.homes[name], self.peers[name] = facts, home, peers

    def _self(self, name: str, prefix: str = "self") -> dict[str, Fact]:
        return {f"{prefix}.{fact}": declared for fact, declared in self.objects[name].items()}

    def _scope(self, facts: Mapping[str, Fact], name: str | None, macros: Mapping[str, Node] | None = None) -> Scope:
        aliases = {"home": self.homes[name]} if name in self.homes else {}
        return Scope(facts=facts, macros=macros or {}, constants=self._constants, aliases=aliases)

    def geometry(self, name: str) -> Scope:
        """`needs`: the length and constants."""
        facts = {k: f for k, f in self._shared.items() if k.startswith("group.")}
        return self._scope({**facts, "length": token_fact("length")}, name)

    def rule(self, name: str, needs: Mapping[str, Node]) -> Scope:
        """Checks, options and costs: the segment, its peers, request, run time, kernel and geometry."""
        facts = {
            **self._shared,
            **self._self(name),
            "length": token_fact("length"),
            "share.first": token_fact("share.first"),
            "share.to": token_fact("share.to"),
        }
        for role, objects in self.peers[name].items():
            common = set.intersection(*(set(self.objects[o]) for o in objects))
            facts.update({f"{role}.{f}": self.objects[objects[0]][f] for f in common})
            facts[f"{role}.ready"] = pseudo_fact(f"{role}.ready")
        return self._scope(facts, name, {f"needs.{k}": v for k, v in needs.items()})

    def event(self, name: str) -> Scope:
        """Transitions: the state before, the event's arguments, and a donor of the same object."""
        facts = {**self._shared, **self._self(name), **self._self(name, "event"), **self._self(name, "donor")}
        return self._scope(facts, name)

    def decision(self) -> Scope:
        """The price of prefill: request, run time and the length."""
        return self._scope({**self._environment, "length": token_fact("length")}, None)

    def plan(self, demands: Mapping[str, Node]) -> Scope:
        """Admission, execution and waiting: request, run time, a plan, and what it takes of each pool."""
        facts = {**self._environment, **{f"plan.{name}": fact for name, fact in PLAN_FACTS.items()}}
        return self._scope(facts, None, {f"demand.{pool}": node for pool, node in demands.items()})

    def demotion(self, name: str) -> Scope:
        """Early demotion: a segment at rest, the run time and the group's constants; no request."""
        facts = {path: fact for path, fact in self._shared.items() if path.startswith(("runtime.", "group."))}
        return self._scope({**facts, **self._self(name)}, name)

    def retention(self) -> Scope:
        """Retention: a boundary, the request's last one, and the period, which is constant once a mode is chosen."""
        facts = {name: block_fact(name) for name in ("boundary", "last", "period")}
        return Scope(facts=facts, constants=frozenset({"period"}))

    def recovering(self, counters: Mapping[str, Fact]) -> Scope:
        """Steps of a recovery: request, run time, what the engine measures, and the counters declared so far."""
        measures = {f"event.{name}": fact for name, fact in MEASURES.items()}
        return self._scope({**self._environment, **measures, **counters}, None)

    def key(self) -> Scope:
        """Keys: the request, constants, and the length at which a segment ends."""
        kept = {path: fact for path, fact in self._shared.items() if path.startswith(("request.", "group."))}
        return self._scope({**kept, "length": token_fact("length")}, None)

    def flag(self, over: str, name: str) -> Scope:
        """Flags: the request, or each used segment."""
        return self.decision() if over == "request" else self.rule(name, {})

    def invariant(self, over: str, name: str) -> Scope:
        """Invariants over a pair of segments of one object, a used segment, a lease or the run time."""
        if over == "runtime":
            return self.decision()
        facts = {**self._shared, **self._self(name)}
        if over == "pair":
            facts |= self._self(name, "other")
            facts["same_object"] = pseudo_fact("same_object")
        if over == "lease":
            facts["lease.confirmed"] = pseudo_fact("lease.confirmed")
            facts["lease.epoch"] = self.objects[name]["epoch"]
        return self._scope(facts, name)
