"""A bound group as Z3 terms at one candidate length: facts, checks, acceptance, options before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Node, reads
from hitproof.spec.facts import TOKENS, Fact
from hitproof.verification.cut import Cut
from hitproof.verification.encode import Dual, EnumSorts, Z3Fact, Z3Facts, encode, encode_number
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["FAR", "GroupModel", "Post", "World"]

FAR = 2**40


class World:
    """What all groups of one decision share: a context, the request, the run time and the length.

    A world that is made `beside` another one reads the same state by other rules.
    """

    def __init__(self, bound: BoundRulebook, prefix: str = "", beside: World | None = None) -> None:
        self.bound = bound
        self.ctx: Any = z3.Context() if beside is None else beside.ctx
        self.enums: EnumSorts = EnumSorts(self.ctx) if beside is None else beside.enums
        self.prefix = prefix
        self.true, self.false = self.enums.true, z3.BoolVal(False, ctx=self.ctx)
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

    @property
    def everyone(self) -> tuple[BoundGroup, ...]:
        """All groups of the model, those too that a proof does not read: a story needs segments of all of them."""
        whole = self.bound.whole if isinstance(self.bound, Cut) else self.bound
        return whole.groups

    def domains(self) -> list[Any]:
        """Domains of everything that is always known and was read so far."""
        found = list(self.shared.assumptions)
        for model in self.models.values():
            found += model.domains()
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

    `own(path)` gives the segment's facts (`self.` left out), `names` resolves every path of the group's rules, `free`
    holds constants that were left unbound.
    """

    def __init__(self, world: World, group: BoundGroup, prefix: str | None = None) -> None:
        self.world, self.group = world, group
        # No path has a colon, so that a group may be called `request` and is still told from the request.
        tag = f"{world.prefix}{group.id}:" if prefix is None else prefix
        owned = world.bound.rulebook.engine_owned
        self.own = Z3Facts(world.enums, dict(group.facts), tag, owned)
        self.kernel = Z3Facts(world.enums, dict(world.bound.rulebook.kernel), f"{tag}kernel.")
        self.true, self.false = world.true, world.false
        self.free = Z3Facts(world.enums, dict(world.bound.rulebook.group), f"{tag}group.", world.bound.rulebook.group)
        self._tag = tag
        self._share: dict[str, Z3Fact] = {}
        self.peers = {role: world.group(peer) for role, peer in group.peers.items()} if prefix is None else {}
        self._ready: dict[str, Z3Fact] = {}
        self._forgotten: dict[str, Z3Fact] = {}
        self._own_reads: dict[int, tuple[Node, tuple[str, ...]]] = {}
        self._duals: dict[tuple[int, ...], tuple[Dual, tuple[Z3Fact, ...]]] = {}

    def share(self, name: str) -> Z3Fact:
        """The `first` token of the piece's share, or the one `to` which it goes."""
        if name not in self._share:
            self._share[name] = Z3Fact(z3.Int(f"{self._tag}share.{name}", ctx=self.world.ctx), self.true)
        return self._share[name]

    @property
    def reads_share(self) -> bool:
        """Whether anything was said of the piece's share."""
        return bool(self._share)

    @property
    def share_first(self) -> Any:
        """The first token of the piece's share."""
        return self.share("first").value

    @property
    def share_to(self) -> Any:
        """The token after the piece's share."""
        return self.share("to").value

    def domains(self) -> list[Any]:
        """Domains of what is always known of this group and was read so far."""
        pieces = [*self._share_domain(), *self._answering_peers()]
        return [*self.own.assumptions, *self.kernel.assumptions, *self.free.assumptions, *pieces]

    def _share_domain(self) -> list[Any]:
        """What is so of a piece's share; nothing if no share was read.

        Pieces meet where one ends, and an accepted piece ends with a whole row. The only piece answers for everything;
        of several, those are asked that hold something of what is needed, and each up to its own end but the last.
        """
        if not self._share:
            return []
        rows = int(self.group.constants.get("row_tokens", 1))
        first, to = self.share_first, self.share_to
        found = [0 <= first, first <= to, to <= FAR]
        if rows > 1:
            found += [first % rows == 0, to % rows == 0]
        if self.group.rules.pieces != "span":
            return found
        start, end = self.own("start"), self.own("end")
        (wanted, _), (behind, _) = self.number(self.group.raw_first), self.number(self.group.raw_to)
        holds = z3.And(start.known, end.known, start.value < behind, wanted < end.value)
        last, own_end = to == FAR, z3.And(end.known, to == end.value)
        return [*found, z3.Or(z3.And(first == 0, last), holds), z3.Or(last, own_end)]

    def _answering_peers(self) -> list[Any]:
        """A peer's piece that is ready answers for all that this piece needs of the group."""
        found = []
        for role, ready in self._ready.items():
            peer = self.peers[role]
            if not (peer.reads_share and peer.group.rules.pieces == "span"):
                continue
            (low, _), (high, _) = self.number(self.group.raw_first), self.number(self.group.raw_to)
            if self.reads_share:
                low = z3.If(low < self.share_first, self.share_first, low)
                high = z3.If(high > self.share_to, self.share_to, high)
            found.append(z3.Implies(ready.value, z3.And(peer.share_first <= low, high <= peer.share_to)))
        return found

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
        if scope == "group":
            return self.free(name)
        if scope == "share":
            return self.share(name)
        if name == "ready":
            return self.ready(scope)
        return self.peers[scope].own(name)

    def ready(self, role: str) -> Z3Fact:
        """Readiness of a peer: its own acceptance."""
        if role not in self._ready:
            self._ready[role] = Z3Fact(self.peers[role].accepted(), self.true)
        return self._ready[role]

    def dual(self, node: Node, own: Any = None) -> Dual:
        """A condition, read on the state before or on another state of the segment's own facts."""
        source = self.own if own is None else own
        if id(node) not in self._own_reads:
            self._own_reads[id(node)] = node, tuple(p[5:] for p in sorted(reads(node)) if p.startswith("self."))
        # States that agree in what the condition reads share its terms.
        read = tuple(source(name) for name in self._own_reads[id(node)][1])
        key = (id(node), *map(id, read))
        if key not in self._duals:
            world = self.world
            dual = encode(node, lambda path: self.resolve(path, source), ctx=world.ctx, enums=world.enums)
            # The key is by identity, so what it names must not go away.
            self._duals[key] = dual, read
        return self._duals[key][0]

    def number(self, node: Node, own: Any = None) -> tuple[Any, Any]:
        """An expression's value and its being known."""
        source = self.own if own is None else own
        return encode_number(node, lambda path: self.resolve(path, source), ctx=self.world.ctx, enums=self.world.enums)

    def needed(self, own: Any = None) -> Any:
        """Not surely unneeded."""
        return negated(self.dual(self.group.needed, own).F)

    def holds(self, check: str, own: Any = None) -> Any:
        """The check is surely true, or the group is surely not needed."""
        require = next(c.require for c in self.group.checks if c.id == check)
        return any_of((self.dual(self.group.needed, own).F, self.dual(require, own).T), self.false)

    def accepted(self, own: Any = None) -> Any:
        """Every check holds."""
        checks = [self.dual(check.require, own).T for check in self.group.checks]
        return any_of((self.dual(self.group.needed, own).F, all_of(checks, self.true)), self.false)

    def peers_accepted(self) -> list[Any]:
        """Every mandatory peer is accepted: without them the length would not be reused at all."""
        return [peer.accepted() for peer in self.peers.values() if peer.group.rules.mandatory]

    def identity(self, own: Any = None) -> Any:
        """Every identity check holds."""
        checks = [self.dual(c.require, own).T for c in self.group.checks if c.layer == "identity"]
        return all_of(checks, self.true)

    def applies(self, option: BoundOption) -> Any:
        """The option may be chosen: its condition, what it consumes, and its own bytes where it reads them."""
        parts = [self.dual(option.when).T, *(self.ready(role).value for role in option.peers)]
        if option.own_bytes:
            parts += [
                self.holds(check.id)
                for check in self.group.checks
                if check.layer in ("identity", "block_integrity") and check.id not in option.mends
            ]
        return all_of(parts, self.true)

    def after(self, option: BoundOption) -> tuple[Post, list[Any]]:
        """The segment's facts after an option, and what its choices promise."""
        effect = option.effect
        tag = f"{self.own.prefix}after.{option.id}."
        fresh = Z3Facts(self.world.enums, dict(self.group.facts), tag, set(effect.chooses))
        facts: dict[str, Z3Fact] = {}
        renewed = Z3Fact(z3.Int(tag + "of.new.bytes", ctx=self.world.ctx), self.true)
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
                facts[name] = self.forgotten(name)
        post = Post(facts)
        promises = [self.dual(node, post).T for node in effect.chooses.values()]
        return post, [*promises, *fresh.assumptions]

    def forgotten(self, name: str) -> Z3Fact:
        """The fact, no longer known."""
        if name not in self._forgotten:
            self._forgotten[name] = Z3Fact(self.own(name).value, self.false)
        return self._forgotten[name]

    def _assigned(self, fact: Fact, value: Any, known: Any) -> Z3Fact:
        if fact.type.is_number and fact.lo is not None and fact.hi is not None and fact.type.kind != "real":
            known = all_of((known, self.world.enums.within(fact, value)), self.true)
        return Z3Fact(value, known)

    def _set(self, name: str, reset: Node | None, add: Node | None) -> Z3Fact:
        ctx = self.world.ctx
        value, known = self.number(reset if reset is not None else add)  # type: ignore[arg-type]
        if reset is not None:
            empty = z3.K(z3.IntSort(ctx), self.false)
            return Z3Fact(z3.Store(empty, value, self.true), known)
        before = self.own(name)
        return Z3Fact(z3.Store(before.value, value, self.true), all_of((before.known, known), self.true))
