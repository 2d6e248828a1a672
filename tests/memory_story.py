"""Stories of calls on a memory, and the memory that tells what must come of them: a dictionary of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.memory import Extent, Memory, PoolShape
from hitproof.spec.profile import Group, Profile

__all__ = ["BLOCKS", "SHAPES", "DictMemory", "answers", "expected", "fingerprint_by_hand", "small_model", "stories"]

BLOCKS = 5
SHAPES = {
    "full": PoolShape(BLOCKS, 4, 3, 13, 64, 16),
    "keys": PoolShape(BLOCKS, 2, 1, 28, 72, 24),
    "linear": PoolShape(BLOCKS, 1, 2, 40, 48, 16),
}
"""Rows of odd bytes, an alignment that is no power of two, and states of one row."""

_WORD = 2**64


@cache
def small_model() -> BoundRulebook:
    """A model of three groups with bytes and one without, of pages that fit a glance."""
    full = {"row_bytes": 39, "alignment": 16, "stride": 64, "has_v": False, "scaled": False}
    keys = {"ratio": 1, "top_k": 4, "row_bytes": 28, "alignment": 24, "stride": 72, "scaled": False}
    shared = {"receptive_field": 0, "warmable": False, "lookahead": 0, "ranks": 1}
    groups = (
        Group(id="full", object="full_kv", layers=(0, 1, 2), constants=full),
        Group(id="keys", object="routing_index", layers=(0,), constants=keys, peers={"kv": "full"}),
        Group(
            id="linear",
            object="recurrent_state",
            layers=(3, 4),
            constants={"state_bytes": 80, "alignment": 16, "stride": 48},
        ),
        Group(id="prefix_manifest", object="demoted_prefix", layers=(0,)),
    )
    model = Profile(profile="small", title="small", layers=5, constants=shared, groups=groups)
    return bind_rulebook(load_rulebook("mixed_attention"), model)


@dataclass
class DictMemory:
    """What a memory of `SHAPES` must answer, row by row; only the calls that change or read bytes."""

    rows: dict[tuple[str, int, int, int], bytes] = field(default_factory=dict)
    """By group, layer, block and row of the block; zeros where nothing is."""

    def _places(self, extent: Extent) -> list[tuple[int, int]]:
        per = SHAPES[extent.group].rows
        return [(extent.blocks[row // per], row % per) for row in range(extent.rows)]

    def write(self, extent: Extent, first: int, payload: bytes) -> None:
        """As `Memory`."""
        parts = _cut(extent.group, payload)
        for layer, rows in enumerate(parts):
            for (block, row), part in zip(self._places(extent)[first:], rows, strict=False):
                self.rows[extent.group, layer, block, row] = part

    def read(self, extent: Extent) -> bytes:
        """As `Memory`."""
        shape = SHAPES[extent.group]
        return b"".join(
            self.rows.get((extent.group, layer, block, row), bytes(shape.row_bytes))
            for layer in range(shape.layers)
            for block, row in self._places(extent)
        )

    def copy(self, source: Extent, target: Extent) -> None:
        """As `Memory`."""
        held = self.read(source)
        self._fill(target.group, target.blocks, 0)
        self.write(target, 0, held)

    def load_places(self, held: bytes, target: Extent, places: Sequence[int]) -> None:
        """What `load` makes of a host buffer that has those bytes."""
        per = SHAPES[target.group].rows
        for place in places:
            block = target.blocks[place]
            self._fill(target.group, (block,), 0)
            for layer, rows in enumerate(_cut(target.group, held)):
                for row, part in enumerate(rows[place * per : (place + 1) * per]):
                    self.rows[target.group, layer, block, row] = part

    def poison(self, group: str, blocks: Sequence[int]) -> None:
        """As `Memory`."""
        self._fill(group, blocks, 0xFF)

    def _fill(self, group: str, blocks: Sequence[int], byte: int) -> None:
        shape = SHAPES[group]
        for block in blocks:
            for layer in range(shape.layers):
                for row in range(shape.rows):
                    self.rows[group, layer, block, row] = bytes([byte]) * shape.row_bytes


def fingerprint_by_hand(group: str, payload: bytes) -> str:
    """The formula of the README of `kernels/checksum` in whole numbers; each layer is a head."""
    layers = _cut(group, payload)
    heads, words = len(layers), -(-SHAPES[group].row_bytes // 8)
    total = 0
    for head, rows in enumerate(layers):
        for token, row in enumerate(rows):
            for word in range(words):
                place = (token * heads + head) * words + word
                value = int.from_bytes(row[8 * word : 8 * word + 8], "little")
                total += _mixed(value ^ (place + 1) * 0x9E3779B97F4A7C15 % _WORD)
    return f"{_mixed((total + (len(payload) + 1) * 0x9E3779B97F4A7C15) % _WORD):016x}"


def _mixed(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD % _WORD
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 % _WORD
    return word ^ word >> 33


def _cut(group: str, payload: bytes) -> list[list[bytes]]:
    """The payload's rows, layer by layer."""
    shape = SHAPES[group]
    flat = [payload[at : at + shape.row_bytes] for at in range(0, len(payload), shape.row_bytes)]
    count = len(flat) // shape.layers
    return [flat[layer * count : (layer + 1) * count] for layer in range(shape.layers)]


@st.composite
def _extents(draw: st.DrawFn, group: str, rows: int | None = None) -> Extent:
    shape = SHAPES[group]
    count = draw(st.integers(0, shape.blocks * shape.rows)) if rows is None else rows
    order = draw(st.permutations(range(shape.blocks)))
    spare = draw(st.integers(0, 1))
    return Extent(group, tuple(order[: shape.blocks_for(count) + spare]), count)


@st.composite
def _calls(draw: st.DrawFn) -> tuple[Any, ...]:
    group = draw(st.sampled_from(sorted(SHAPES)))
    shape, extent = SHAPES[group], draw(_extents(group))
    kind = draw(st.sampled_from(("write", "copy", "round_trip", "fill", "poison")))
    if kind == "write":
        first = draw(st.integers(0, extent.rows))
        count = draw(st.integers(0, extent.rows - first))
        return kind, extent, first, draw(_bytes(shape.payload_bytes(count)))
    if kind == "poison":
        return kind, group, draw(st.lists(st.integers(0, shape.blocks - 1), max_size=3))
    other = draw(_extents(group, extent.rows))
    if kind == "copy" and set(other.blocks) & set(extent.blocks):
        return "read", extent
    places = st.lists(st.integers(0, max(0, shape.blocks_for(extent.rows) - 1)), unique=True)
    if kind == "round_trip":
        return kind, extent, other, *(draw(places) if extent.rows else [] for _ in range(2))
    if kind == "fill":
        return kind, other, draw(_bytes(shape.payload_bytes(other.rows))), draw(places) if other.rows else []
    return kind, extent, other


def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.randoms(use_true_random=False).map(lambda random: random.randbytes(size))


def stories() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Calls in order, on extents of every size over few blocks."""
    return st.lists(_calls(), max_size=12)


def answers(memory: Memory, story: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What a memory answers, call by call, and all of its rows at the end."""
    told: list[Any] = []
    _begin(memory)
    for kind, *rest in story:
        if kind == "write":
            memory.write(*rest)
            told.append((memory.read(rest[0]), memory.fingerprint(rest[0])))
        elif kind == "read":
            told.append((memory.read(rest[0]), memory.fingerprint(rest[0])))
        elif kind == "copy":
            memory.copy(*rest)
            told.append(memory.fingerprint(rest[1]))
        elif kind == "poison":
            memory.poison(*rest)
        elif kind == "round_trip":
            source, target, saved, loaded = rest
            host = memory.host(source.group, source.rows)
            failed = memory.save(source, host, saved)
            memory.fence().wait()
            held = bytes(memory.payload(host))
            told.append((failed, held, memory.load(host, target, loaded), memory.digest(source.group, held)))
        else:
            target, payload, loaded = rest
            host = memory.host(target.group, target.rows)
            memory.fill(host, payload)
            told.append((bytes(memory.payload(host)), memory.load(host, target, loaded), host.nbytes))
    return [*told, *_all_rows(memory)]


def expected(story: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The same by the dictionary."""
    memory = DictMemory()
    told: list[Any] = []
    _begin(memory)
    for kind, *rest in story:
        if kind in ("write", "read"):
            if kind == "write":
                memory.write(*rest)
            held = memory.read(rest[0])
            told.append((held, fingerprint_by_hand(rest[0].group, held)))
        elif kind == "copy":
            memory.copy(*rest)
            told.append(fingerprint_by_hand(rest[1].group, memory.read(rest[1])))
        elif kind == "poison":
            memory.poison(*rest)
        elif kind == "round_trip":
            source, target, saved, loaded = rest
            found = _cut(source.group, memory.read(source))
            per = SHAPES[source.group].rows
            held = b"".join(
                row if at // per in saved else bytes(len(row)) for rows in found for at, row in enumerate(rows)
            )
            memory.load_places(held, target, loaded)
            told.append(((), held, (), fingerprint_by_hand(source.group, held)))
        else:
            target, payload, loaded = rest
            memory.load_places(payload, target, loaded)
            told.append((payload, (), len(payload)))
    return [*told, *_all_rows(memory)]


def _begin(memory: Memory | DictMemory) -> None:
    """No row is zero at first, so that one that is zeroed can be told from one that was never written."""
    for group, shape in SHAPES.items():
        memory.poison(group, range(shape.blocks))


def _all_rows(memory: Memory | DictMemory) -> list[bytes]:
    return [
        memory.read(Extent(group, tuple(range(shape.blocks)), shape.blocks * shape.rows))
        for group, shape in SHAPES.items()
    ]
