"""Blocks as segments of the rulebook: neighbours that are alike in everything are one segment of several blocks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hitproof.integrations.gate.table import ABSENT, OPEN, BlockTable
from hitproof.spec.bound import BoundGroup

__all__ = ["Held", "blocks_of", "held_segments"]

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Held:
    """A segment that a look-up found, with the blocks in which it lies.

    Args:
        facts: What the rules read.
        first, to: Its blocks are those from `first` up to `to` of the look-up's list.
    """

    facts: Any
    first: int
    to: int


def blocks_of(blocks: Sequence[int | None], absent: int | None) -> _Numbers:
    """Block ids as numbers, `ABSENT` where there is none."""
    try:
        ids = np.array(blocks, dtype=np.int64)
    except TypeError:
        ids = np.array([ABSENT if block is None else block for block in blocks], dtype=np.int64)
    ids[ids < 0] = ABSENT
    if absent is not None:
        ids[ids == absent] = ABSENT
    return ids


def held_segments(
    group: BoundGroup,
    table: BlockTable,
    templates: Sequence[Any],
    ids: _Numbers,
    digests: Sequence[Hashable] | None,
    matched: int,
    place: tuple[int, int],
    request: Any,
) -> list[Held]:
    """The segments in which a list of blocks lies, in token order.

    Neighbours become one segment where they were written by one writer's facts, are in one state and agree with the
    request alike. A block whose digest or span is another than the look-up took it for agrees with the request in
    nothing that is known. One that ends before the first picture of its writer's prompt and of the request holds what
    either would have written, so it counts as written for the request's pictures.

    Args:
        group: The group.
        table: What is known of its blocks, with room for these.
        templates: Facts by the kind of what was written; the first is of what nobody wrote.
        ids: Block ids from token 0 on.
        digests: By which each block was found; None where the framework does not tell.
        matched: Tokens that the look-up claims.
        place: Address of block 0, and bytes from one to the next.
        request: Who asks.
    """
    count = len(ids)
    present = ids != ABSENT
    if not present.any():
        return []
    where = np.where(present, ids, 0)
    codes = table.code[where]
    agree = table.start[where] == np.arange(count, dtype=np.int64) * table.tokens
    if digests is not None:
        found = list(map(table.digests.__getitem__, where.tolist()))
        if found != list(digests):
            agree &= np.fromiter((a == b for a, b in zip(found, digests, strict=True)), dtype=bool, count=count)
    plain = _before_pictures(group, table, where, request)
    # One number a block: absent, or its code with whether it agrees and whether pictures matter.
    alike = np.where(present, codes * 4 + agree * 2 + plain, -1)
    if group.rules.pieces == "point":
        cuts = list(range(count))
    else:
        cuts = [0, *(np.flatnonzero(alike[1:] != alike[:-1]) + 1).tolist()]
    held = []
    for first, to in zip(cuts, [*cuts[1:], count], strict=True):
        if not present[first]:
            continue
        facts = _segment(group, table, templates, int(ids[first]), first, to, place)
        facts.matched = matched if agree[first] else None
        if plain[first]:
            facts.media, facts.media_from = request.media, request.media_from
        held.append(Held(facts, first, to))
    return held


def _before_pictures(group: BoundGroup, table: BlockTable, blocks: _Numbers, request: Any) -> npt.NDArray[np.bool_]:
    """Which blocks end, with all that their rows look ahead to, before the first picture of writer and request."""
    asked = 0 if request.media_from is None else request.media_from
    ends = np.arange(1, len(blocks) + 1, dtype=np.int64) * table.tokens + int(group.constants.get("lookahead", 0))
    before: npt.NDArray[np.bool_] = ends <= np.minimum(table.begins[blocks], asked)
    return before


def _segment(
    group: BoundGroup,
    table: BlockTable,
    templates: Sequence[Any],
    block: int,
    first: int,
    to: int,
    place: tuple[int, int],
) -> Any:
    code = int(table.code[block])
    facts = templates[table.kind_of(block)].copy()
    tokens = table.tokens
    facts.start, facts.end = first * tokens, to * tokens
    if table.kind_of(block) == 0:
        return facts
    constants = group.constants
    if group.rules.pieces == "point":
        facts.start = 0
        facts.bytes = constants.get("state_bytes")
    else:
        facts.bytes = (to - first) * tokens // int(constants.get("row_tokens", 1)) * int(constants["row_bytes"])
    facts.marks = frozenset((facts.end,))
    for name in ("position", "filed"):
        if name in group.facts:
            setattr(facts, name, facts.end)
    facts.generation = int(table.generation[block])
    facts.written_generation = int(table.written[block])
    # A framework's table names blocks without a generation: it leads to whatever is there now.
    facts.mapped_generation = facts.generation
    facts.sealed = not code & OPEN
    facts.recorded, facts.measured = table.recorded[block], table.measured[block]
    facts.address, facts.offset, facts.stride = place[0] + block * place[1], 0, place[1]
    return facts
