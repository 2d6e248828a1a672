"""A bound group as Z3 terms at one candidate length: facts, checks, acceptance, options before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Node
from hitproof.spec.facts import TOKENS, Fact
from hitproof.verification.encode import Dual, EnumSorts, Z3Fact, Z3Facts, encode, encode_number

__all__ = ["FAR", "GroupModel", "Post", "World"]

FAR = 2**40


class World:
    """What all groups of one decision share: a context, the request, the run time and the length."""

    def __init__(self, bound: BoundRulebook, prefix: str = "") -> None:
        self.bound = bound
        self.ctx = z3.Context()
        self.enums = EnumSorts(self.ctx)
        self.prefix = prefix
        rulebook = bound.rulebook
        lookup: dict[str, Fact] = {"length": Fact("length", TOKENS, 0, FAR)}
        lookup.update({f"request.{name}": fact for name, fact in rulebook.request.items()})
        lookup.update({f"runtime.{name}": fact for name, fact in rulebook.runtime.items()})
        known = {"length", *(f"request.{name}" for name in rulebook.door)}
        self.shared = Z3Facts(self.enums, lookup, prefix, known)
        self.length = self.shared("length").value
        self.models: dict[str, GroupModel] = {}

    def group(self, name: str) -> GroupModel:
        """The model of a group; its peers' models are made with it."""
        if name not in self.models:
            self.models[name] = GroupModel(self, self.bound.group(name))
        return self.models[name]

    def domains(self) -> list[Any]:
        """Domains of everything that is always known and was read so far."""
        found = list(self.shared.assumptions)
        for model in self.models.values():
            found += [*model.own.assumptions, *model.kernel.assumptions, *model.share_domain]
        return found

    def usual(self) -> list[Any]:
        """The request's length exceeds the candidate; a decision proposes no other."""
        n = self.shared("request.length").value
        return [self.length <= n - 1]


@dataclass(frozen=True)
class Post:
    """Facts of a segment after a repair or a transition, by name."""

    facts: Mapping[str, Z3Fact]

    def __call__(self, name: str) -> Z3Fact:
        """The fact after the change."""
        return self.facts[name]


class GroupModel:
    """One group in a world.

    `own(path)` gives the segment's facts (`self.` left out), `names` resolves every path of the group's rules.
    """

    def __init__(self, world: World, group: BoundGroup, prefix: str | None = None) -> None:
        self.world, self.group = world, group
        tag = f"{world.prefix}{group.id}." if prefix is None else prefix
        owned = world.bound.rulebook.engine_owned
        self.own = Z3Facts(world.enums, dict(group.facts), tag, owned)
        self.kernel = Z3Facts(world.enums, dict(world.bound.rulebook.kernel), f"{tag}kernel.")
        self.share_first = z3.Int(f"{tag}share.first", ctx=world.ctx)
        self.share_to = z3.Int(f"{tag}share.to", ctx=world.ctx)
        true = z3.BoolVal(True, ctx=world.ctx)
        self._share = {"first": Z3Fact(self.share_first, true), "to": Z3Fact(self.share_to, true)}
        rows = int(group.constants.get("row_tokens", 1))
        # Pieces meet where one ends, and a well-formed piece ends with a whole row.
        self.share_domain = [
            0 <= self.share_first,
            self.share_first <= self.share_to,
            self.share_to <= FAR,
            self.share_first % rows == 0,
            self.share_to % rows == 0,
        ]
        self.peers = {role: world.group(peer) for role, peer in group.peers.items()} if prefix is None else {}
        self._ready: dict[str, Z3Fact] = {}
        self._duals: dict[tuple[int, int], tuple[Dual, Node, Any]] = {}

    def names(self, path: str) -> Z3Fact:
        """The fact at a path, in the state before."""
        return self.resolve(path, self.own)

    def resolve(self, path: str, own: Any) -> Z3Fact:
        """The fact at a path, with the segment's own facts taken from `own`."""
        scope, _, name = path.partition(".")
        if path == "length" or scope in ("request", "runtime"):
            return self.world.shared(path)
        if scope == "self":
            fact: Z3Fact = own(name)
            return fact
        if scope == "kernel":
            return self.kernel(name)
        if scope == "share":
            return self._share[name]
        if name == "ready":
            return self.ready(scope)
        return self.peers[scope].own(name)

    def ready(self, role: str) -> Z3Fact:
        """Readiness of a peer: its own acceptance."""
        if role not in self._ready:
            self._ready[role] = Z3Fact(self.peers[role].accepted(), z3.BoolVal(True, ctx=self.world.ctx))
        return self._ready[role]

    def dual(self, node: Node, own: Any = None) -> Dual:
        """A condition, read on the state before or on another state of the segment's own facts."""
        source = self.own if own is None else own
        # The key holds on to what it names, so that no other object can take its place.
        key = (id(node), id(source))
        if key not in self._duals:
            dual = encode(node, lambda path: self.resolve(path, source), ctx=self.world.ctx)
            self._duals[key] = (dual, node, source)
        return self._duals[key][0]

    def number(self, node: Node, own: Any = None) -> tuple[Any, Any]:
        """An expression's value and its being known."""
        source = self.own if own is None else own
        return encode_number(node, lambda path: self.resolve(path, source), ctx=self.world.ctx, enums=self.world.enums)

    def needed(self, own: Any = None) -> Any:
        """Not surely unneeded."""
        return z3.Not(self.dual(self.group.needed, own).F)

    def holds(self, check: str, own: Any = None) -> Any:
        """The check is surely true, or the group is surely not needed."""
        require = next(c.require for c in self.group.checks if c.id == check)
        return z3.Or(z3.Not(self.needed(own)), self.dual(require, own).T)

    def accepted(self, own: Any = None) -> Any:
        """Every check holds."""
        checks = [self.dual(check.require, own).T for check in self.group.checks]
        true = z3.BoolVal(True, ctx=self.world.ctx)
        return z3.Or(z3.Not(self.needed(own)), z3.And(true, *checks))

    def peers_accepted(self) -> list[Any]:
        """Every mandatory peer is accepted: without them the length would not be reused at all."""
        return [peer.accepted() for peer in self.peers.values() if peer.group.rules.mandatory]

    def identity(self, own: Any = None) -> Any:
        """Every identity check holds."""
        checks = [self.dual(c.require, own).T for c in self.group.checks if c.layer == "identity"]
        return z3.And(z3.BoolVal(True, ctx=self.world.ctx), *checks)

    def applies(self, option: BoundOption) -> Any:
        """The option may be chosen: its condition, what it consumes, and its own bytes where it reads them."""
        parts = [self.dual(option.when).T, *(self.ready(role).value for role in option.peers)]
        if option.own_bytes:
            parts += [
                self.holds(check.id)
                for check in self.group.checks
                if check.layer in ("identity", "block_integrity") and check.id not in option.mends
            ]
        return z3.And(z3.BoolVal(True, ctx=self.world.ctx), *parts)

    def after(self, option: BoundOption) -> tuple[Post, list[Any]]:
        """The segment's facts after an option, and what its choices promise."""
        ctx, effect = self.world.ctx, option.effect
        tag = f"{self.own.prefix}after.{option.id}."
        fresh = Z3Facts(self.world.enums, dict(self.group.facts), tag, set(effect.chooses))
        facts: dict[str, Z3Fact] = {}
        renewed = Z3Fact(z3.Int(tag + "renewed", ctx=ctx), z3.BoolVal(True, ctx=ctx))
        unknown = z3.BoolVal(False, ctx=ctx)
        for name, fact in self.group.facts.items():
            if name in effect.sets:
                facts[name] = self._assigned(fact, *self.number(effect.sets[name]))
            elif name in effect.resets or name in effect.adds:
                facts[name] = self._set(name, effect.resets.get(name), effect.adds.get(name))
            elif name in effect.chooses:
                facts[name] = fresh(name)
            elif effect.renews and name in ("recorded", "measured"):
                facts[name] = renewed
            elif name in effect.keeps:
                facts[name] = self.own(name)
            else:
                facts[name] = Z3Fact(self.own(name).value, unknown)
        post = Post(facts)
        promises = [self.dual(node, post).T for node in effect.chooses.values()]
        return post, [*promises, *fresh.assumptions]

    def _assigned(self, fact: Fact, value: Any, known: Any) -> Z3Fact:
        if fact.type.is_number and fact.lo is not None and fact.hi is not None and fact.type.kind != "real":
            known = z3.And(known, value >= int(fact.lo), value <= int(fact.hi))
        return Z3Fact(value, known)

    def _set(self, name: str, reset: Node | None, add: Node | None) -> Z3Fact:
        ctx = self.world.ctx
        value, known = self.number(reset if reset is not None else add)  # type: ignore[arg-type]
        if reset is not None:
            empty = z3.K(z3.IntSort(ctx), z3.BoolVal(False, ctx=ctx))
            return Z3Fact(z3.Store(empty, value, z3.BoolVal(True, ctx=ctx)), known)
        before = self.own(name)
        return Z3Fact(z3.Store(before.value, value, z3.BoolVal(True, ctx=ctx)), z3.And(before.known, known))
