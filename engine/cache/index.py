"""The index: which segments are found under which leading tokens and identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Slot
from hitproof.spec.bound import BoundGroup, BoundKey, BoundRulebook
from hitproof.spec.condition import Node, interpret, reads
from hitproof.spec.facts import Fact, Value, admit

__all__ = ["Index", "Key"]

Key = tuple[Any, ...]
"""Kind of keys, end, digest of the tokens named, and the fields that take part: equal keys are equal identity."""

_Field = tuple[str, Fact, Node, list[tuple[str, str]]]


class Index:
    """Segments by the device keys of the rulebook.

    A segment is filed under each multiple of the hash unit that it reaches, and at its end, so that a prompt that
    agrees with a part of it finds that part. Groups whose keys are made alike share a key. Readers need no lock: what
    a key leads to is replaced as a whole.

    Args:
        bound: The rulebook, bound to a model.
        unit: The hash unit, in tokens.
    """

    def __init__(self, bound: BoundRulebook, unit: int) -> None:
        self.unit = unit
        self._kinds: list[tuple[BoundKey, BoundGroup]] = []
        self._kind_of: dict[str, int] = {}
        for group in bound.groups:
            key = next((one for one in group.keys if one.tier == "device"), None)
            if key is None:
                continue
            alike = (place for place, (other, _) in enumerate(self._kinds) if _alike(key, other))
            place = next(alike, len(self._kinds))
            if place == len(self._kinds):
                self._kinds.append((key, group))
            self._kind_of[group.id] = place
        self._fields = [_fields(key, group) for key, group in self._kinds]
        self._named = [dict[int, int | None]() for _ in self._kinds]
        self._filed: dict[Key, tuple[Slot, ...]] = {}
        self._odd: Counter[int] = Counter()
        # Kind, end and digest of every key: most ends of a prompt lead to nothing, and are passed over by these alone.
        self._present: Counter[Key] = Counter()

    def __len__(self) -> int:
        return len(self._filed)

    def keys(self, group: str, prompt: Prompt, start: int, end: int, *, inner: bool) -> tuple[Key, ...]:
        """The keys under which a segment `[start, end)` that was written for a prompt is filed.

        Args:
            inner: Whether a part of it, up to a multiple of the hash unit, is of use too.
        """
        kind = self._kind_of.get(group)
        if kind is None:
            return ()
        ends = set(range(start // self.unit * self.unit + self.unit, end + 1, self.unit)) if inner else set()
        found = (self._key(kind, prompt, one) for one in sorted({*ends, end}))
        return tuple(key for key in found if key is not None)

    def file(self, slot: Slot, keys: Iterable[Key]) -> None:
        """Let keys lead to a segment, beside the others that they lead to."""
        slot.keys = tuple(keys)
        for key in slot.keys:
            known = self._filed.get(key)
            if known is None and key[1] % self.unit:
                self._odd[key[1]] += 1
            if known is None:
                self._present[key[:3]] += 1
            self._filed[key] = (slot,) if known is None else (*known, slot)

    def clear(self, slot: Slot) -> None:
        """No key leads to a segment any more."""
        for key in slot.keys:
            known = self._filed.get(key, ())
            place = known.index(slot) if slot in known else len(known)
            left = (*known[:place], *known[place + 1 :])
            if left:
                self._filed[key] = left
                continue
            if self._filed.pop(key, None) is not None:
                self._present[key[:3]] -= 1
                if not self._present[key[:3]]:
                    del self._present[key[:3]]
            if key[1] % self.unit:
                self._odd[key[1]] -= 1
                if not self._odd[key[1]]:
                    del self._odd[key[1]]
        slot.keys = ()

    def find(self, prompt: Prompt) -> tuple[int, dict[Slot, int]]:
        """Every segment on the prompt's path, with the tokens up to which it and the prompt are known to agree.

        Returns:
            The deepest such length, and the segments.
        """
        top = prompt.length
        ends = sorted({*range(self.unit, top + 1, self.unit), *(end for end in self._odd if end <= top)})
        found: dict[Slot, int] = {}
        for kind in range(len(self._kinds)):
            for end in ends:
                named = self._tokens(kind, end)
                if named is None or (kind, end, prompt.digest(named)) not in self._present:
                    continue
                key = self._key(kind, prompt, end)
                # Ends rise, so the last one that leads to a segment is the deepest.
                found.update(dict.fromkeys(self._filed.get(key, ()) if key is not None else (), end))
        return max(found.values(), default=0), found

    def leads_to(self, slot: Slot) -> bool:
        """Whether every key of a segment leads to it."""
        return all(slot in self._filed.get(key, ()) for key in slot.keys)

    def filed(self) -> Iterator[tuple[Key, Slot]]:
        """All that is filed."""
        for key, slots in list(self._filed.items()):
            for slot in slots:
                yield key, slot

    def _tokens(self, kind: int, end: int) -> int | None:
        """How many leading tokens a key of a segment that ends there names."""
        named = self._named[kind].get(end, -1)
        if named == -1:
            value = interpret(self._kinds[kind][0].tokens, {"length": end})
            named = self._named[kind][end] = value if type(value) is int else None
        return named

    def _key(self, kind: int, prompt: Prompt, end: int) -> Key | None:
        if (kind, end) not in prompt.keys:
            prompt.keys[kind, end] = self._made(kind, prompt, end)
        return prompt.keys[kind, end]

    def _made(self, kind: int, prompt: Prompt, end: int) -> Key | None:
        key = self._kinds[kind][0]
        fields = prompt.fields.get(kind)
        if fields is None:
            fields = prompt.fields[kind] = {
                fact: admit(declared, interpret(node, {path: getattr(prompt.request, name) for path, name in paths}))
                for fact, declared, node, paths in self._fields[kind]
            }
        named = self._tokens(kind, end)
        digest = None if named is None else prompt.digest(named)
        if named is None or digest is None:
            return None
        parts: list[tuple[str, Value]] = []
        for fact, value in fields.items():
            begins = key.begins.get(fact)
            if begins is not None:
                start = getattr(prompt.request, begins)
                if type(start) is not int:
                    return None
                if start >= named:
                    continue
                parts.append((begins, start))
            if value is None:
                return None
            parts.append((fact, value))
        return (kind, end, digest, *parts)


def _fields(key: BoundKey, group: BoundGroup) -> list[_Field]:
    """The fields of keys of one kind, each with the facts of the request that it reads, by path and name."""
    return [
        (
            fact,
            group.facts[fact],
            node,
            [(path, path.removeprefix("request.")) for path in reads(node) if path.startswith("request.")],
        )
        for fact, node in key.fields.items()
    ]


def _alike(one: BoundKey, other: BoundKey) -> bool:
    return (one.tokens, dict(one.fields), dict(one.begins)) == (other.tokens, dict(other.fields), dict(other.begins))
