"""A toy model whose every row is a digest of the tokens before it and of what they were computed with."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitproof.engine.soak.mixing import Mixer, masked
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.rows import has_rows, pool_shape, rows_of

__all__ = ["Prefix", "Rows", "World"]

Rows = NDArray[np.uint8]
"""[layers][rows][row_bytes]"""

_KEPT = 512
_ROOT = ("weights", "attention_config", "adapter", "salt", "compression_seed")


class Prefix:
    """The truth about one prompt: the input row of position p is a digest of the identity and tokens up to p.

    Args:
        world: The model.
        tokens: Token ids.
        facts: The request's facts, by name.
    """

    def __init__(self, world: World, tokens: Sequence[int], facts: Mapping[str, Any]) -> None:
        self._world, self._facts = world, facts
        self.length = len(tokens)
        self.inputs = _chain(tokens, facts, world.row_bytes)
        self._made: dict[tuple[str, int, int], Rows] = {}
        self._written: dict[tuple[str, int, int, str, str], Rows] = {}

    def rows(self, group: str, start: int, end: int) -> Rows:
        """What a segment of the tokens [start, end) holds, before any number format."""
        maker = self._world.maker(group)
        if maker.group.rules.pieces == "point" and maker.group.object != "layer_inputs":
            return self._of(maker, start, end)
        return maker.cut(self._of(maker, 0, self.length), start, end)

    def written(self, group: str, start: int, end: int, kernel: Any) -> Rows:
        """The bytes that a segment of the tokens [start, end) truly has, in the number format of a kernel."""
        maker = self._world.maker(group)
        whole = maker.group.rules.pieces != "point" or maker.group.object == "layer_inputs"
        first, to = (0, self.length) if whole else (start, end)
        key = (group, first, to, kernel.encoding, kernel.scale_version)
        if key not in self._written:
            self._written[key] = masked(self._of(maker, first, to), kernel.encoding, kernel.scale_version)
        return maker.cut(self._written[key], start, end) if whole else self._written[key]

    def _of(self, maker: Maker, start: int, end: int) -> Rows:
        place = (maker.group.id, start, end)
        if place not in self._made:
            first = max(0, start - maker.reach)
            self._made[place] = maker.rows(self.inputs[first:end], first, start, end, self._facts)
        return self._made[place]


class World:
    """Computes rows, as a model would: truly from tokens, and from bytes of kept inputs, whatever these are.

    Args:
        bound: A rulebook bound to a small profile.
    """

    def __init__(self, bound: BoundRulebook) -> None:
        self._makers = {group.id: Maker(bound, group) for group in bound.groups if has_rows(group)}
        inputs = [maker for maker in self._makers.values() if maker.group.object == "layer_inputs"]
        self.row_bytes = inputs[0].row_bytes if inputs else 32
        self._known: OrderedDict[tuple[Any, ...], Prefix] = OrderedDict()
        self._lock = Lock()

    def prefix(self, tokens: Sequence[int], facts: Mapping[str, Any]) -> Prefix:
        """The truth about a prompt; the last ones asked for are kept."""
        key = (tuple(tokens), tuple(sorted((name, facts[name]) for name in facts if type(facts[name]) is str)))
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        made = Prefix(self, tokens, facts)
        with self._lock:
            self._known[key] = made
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return made

    def maker(self, group: str) -> Maker:
        """How a group's rows are made."""
        return self._makers[group]


class Maker:
    """How the rows of one group are made from input rows.

    Args:
        bound: The rulebook.
        group: The group.
    """

    def __init__(self, bound: BoundRulebook, group: BoundGroup) -> None:
        self.group = group
        shape = pool_shape(group, 1)
        self.row_bytes, self.layers = shape.row_bytes, shape.layers
        self.tokens = int(group.constants.get("row_tokens", 1))
        self._overlap = _overlap(bound, group)
        self._mixers: dict[str, Mixer] = {}

    def cut(self, rows: Rows, start: int, end: int) -> Rows:
        """The rows of the tokens [start, end) out of those of a prompt from its first token on."""
        return rows[:, start // self.tokens : end // self.tokens]

    @property
    def reach(self) -> int:
        """Tokens before the first one that its rows are made from too."""
        if self.group.object == "recurrent_state":
            return 1
        return self._overlap if self.group.object in ("compressed_global", "routing_index") else 0

    def rows(self, inputs: NDArray[np.uint32], first: int, start: int, end: int, facts: Mapping[str, Any]) -> Rows:
        """Rows of the tokens [start, end).

        Args:
            inputs: Input rows from position `first` on, as words; those up to `end` are read.
            first, start, end: Positions.
            facts: The request's facts: versions of compressor and indexer are read.
        """
        mixer = self._mixer(facts)
        kind, given = self.group.object, inputs[start - first : end - first]
        if kind == "layer_inputs":
            return _bytes(given)
        if kind in ("full_kv", "uncompressed_tail"):
            return mixer.each(given)
        if kind == "recurrent_state":
            return mixer.each(inputs[end - 1 - first : end - first])
        if kind == "compressor_state":
            state = np.zeros((self.layers, rows_of(self.group, start, end), self.row_bytes), np.uint8)
            state[:, : end - start] = mixer.each(given)
            return state
        return mixer.pooled(inputs, first, start, end, self.tokens, self._overlap)

    def _mixer(self, facts: Mapping[str, Any]) -> Mixer:
        names = {"compressed_global": "compressor_version", "compressor_state": "compressor_version"}
        names["routing_index"] = "index_config"
        version = str(facts.get(names.get(self.group.object, ""), ""))
        if version not in self._mixers:
            self._mixers[version] = Mixer(f"{self.group.id}/{version}", self.layers, self.row_bytes)
        return self._mixers[version]


def _overlap(bound: BoundRulebook, group: BoundGroup) -> int:
    """Tokens before its own that an entry reads: the overlap that the state has which continues it."""
    for other in bound.groups:
        if other.object == "compressor_state" and other.peers.get("entries") == group.id:
            return int(other.constants.get("overlap", 0))
    return 0


def _chain(tokens: Sequence[int], facts: Mapping[str, Any], row_bytes: int) -> NDArray[np.uint32]:
    """Input rows as words [tokens][row_bytes / 4]; media count from the first media item on."""
    content = "\x00".join(f"{name}={facts.get(name)}" for name in _ROOT)
    link = hashlib.blake2b(content.encode(), digest_size=row_bytes).digest()
    media, media_from = str(facts.get("media")).encode(), facts.get("media_from") or 0
    links = []
    for position, token in enumerate(tokens):
        extra = media if position == media_from else b""
        link = hashlib.blake2b(link + token.to_bytes(8, "little") + extra, digest_size=row_bytes).digest()
        links.append(link)
    return np.frombuffer(b"".join(links), np.uint32).reshape(len(tokens), row_bytes // 4)


def _bytes(words: NDArray[np.uint32]) -> Rows:
    return np.ascontiguousarray(words).view(np.uint8)[None]
