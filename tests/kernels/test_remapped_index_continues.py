"""DeepSeek-V4's entries are moved together, and the model goes on behind an index that was led to their new rows.

The library's cache has one list of entries and selects by number, so nothing in it can point to a wrong row. A paged
store has more: a pool of rows that prompts share, and a map from each index key to the row of its entry. Both stand
here around the model: its selection picks keys, and the entry behind a key is read at the row to which the map leads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.index_remap import Move, RowMap  # noqa: E402
from hitproof.kernels.jobs import RepairFault  # noqa: E402
from hitproof.kernels.numbers import decode, encode, plain_row  # noqa: E402
from hitproof.kernels.spans import gather_slots, scatter_slots  # noqa: E402
from tests.kernels.whole_cache import (  # noqa: E402
    OTHER,
    PREFIX,
    SAME,
    SUFFIX,
    Group,
    Place,
    Rows,
    mended,
    plain,
    prefix_of,
    read,
    room,
    store,
)

RATIO, BLOCKS = 4, 8
KEYS = PREFIX // RATIO
LAYERS = (1, 3)
FORM = plain_row("fp32", 32)


class SharedRows:
    """The rows of entries of ratio 4, a pool a layer, of two prompts; and whose entry each row holds."""

    def __init__(self, seed: int) -> None:
        self.pools = {layer: pool_of(Geometry(16, 1, FORM.cell_bytes), BLOCKS, poison=0xFF) for layer in LAYERS}
        self.table = torch.arange(BLOCKS)
        self.seed, self.generation = seed, 1
        draw = torch.Generator().manual_seed(seed)
        self.lies = self._write(torch.randperm(BLOCKS * 16, generator=draw)[:KEYS])

    def _write(self, lies: Any) -> Any:
        """The prompt's own entries go to these rows, and the other prompt's to all others."""
        everywhere = torch.arange(BLOCKS * 16)
        for layer, pool in self.pools.items():
            place = Place(layer, "compressed_kv", "compressor")
            own, other = (encode(prefix_of("v4", seed).rows[place], FORM) for seed in (self.seed, self.seed + 1))
            scatter_slots(pool, self.table, everywhere, other[everywhere % KEYS])
            scatter_slots(pool, self.table, lies, own)
        self.positions = torch.full((BLOCKS * 16,), -1, dtype=torch.int64)
        self.positions[lies] = torch.arange(KEYS) * RATIO
        return lies

    def moved_together(self) -> Move:
        """The entries lie one behind the other now, in the order of their old rows."""
        old = self.lies.sort().values
        new = torch.arange(9, 9 + KEYS)
        target = torch.empty_like(self.positions)
        target[old] = new
        self.lies = self._write(target[self.lies])
        self.generation += 1
        return Move(old, new, self.positions[new], self.generation)

    def at(self, rows: Any) -> Rows:
        """The entries that somebody reads who was led to these rows."""
        return {
            Place(layer, "compressed_kv", "compressor"): decode(gather_slots(pool, self.table, rows.long()), FORM)
            for layer, pool in self.pools.items()
        }


def index_of(entries: SharedRows) -> tuple[list[Group], Group, RowMap]:
    """Everything but those entries in blocks of its own, the index among it, and where its keys lead."""
    held = store({place: rows for place, rows in prefix_of("v4", entries.seed).rows.items() if not _shared(place)})
    index = next(group for group in held if group.kind == "index keys")
    found = RowMap(entries.lies.to(torch.int32), torch.arange(KEYS) * RATIO)
    return [group for group in held if group is not index], index, found


def _shared(place: Place) -> bool:
    return place.kind == "entries" and place.layer in LAYERS


def remapped(index: Group, found: RowMap, move: Move) -> tuple[Group, RowMap]:
    """The index after `index_remap`, in blocks of its own, and the map of the copy."""
    copy = RowMap(torch.full_like(found.rows, -9), torch.full_like(found.positions, -9))
    group, done = mended("index_remap", index, room(index.held, plain), {"self": (found, copy), "kv": move})
    assert move.generation == done.assigned["kv_generation"]
    return group, copy


@contextmanager
def selections(model: Any) -> Iterator[dict[int, Any]]:
    """While open, what each layer's indexer chose last for the tokens that follow the prefix, [T, K] in order."""
    chosen: dict[int, Any] = {}
    hooks = [
        model.model.layers[layer].self_attn.compressor.indexer.register_forward_hook(
            lambda _module, _args, out, layer=layer: chosen.update({layer: out[0, -SUFFIX:].sort(dim=-1).values})
        )
        for layer in LAYERS
    ]
    try:
        yield chosen
    finally:
        for hook in hooks:
            hook.remove()


def chosen_cold(seed: int) -> dict[int, Any]:
    """Selections of a run over all tokens."""
    prefix = prefix_of("v4", seed)
    with selections(prefix.model) as chosen:
        prefix.logits(prefix.tokens, None)
    return chosen


def chosen_behind(seed: int, rows: Rows) -> dict[int, Any]:
    """Selections for the tokens that follow, behind a cache of these rows."""
    with selections(prefix_of("v4", seed).model) as chosen:
        prefix_of("v4", seed).continued(rows)
    return chosen


def read_at(entries: SharedRows, chosen: Any, rows: Any) -> tuple[list[int], list[int]]:
    """Positions that were chosen among the prefix's keys, and those whose entries lie at the rows they lead to."""
    keys = chosen[(chosen >= 0) & (chosen < KEYS)]
    return (keys * RATIO).tolist(), entries.positions[rows.long()[keys]].tolist()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_remapped_index_answers_as_a_cold_run(seed: int) -> None:
    """Keys choose as in a cold run, each is led to the entry of its own position, and the logits are the cold ones."""
    entries = SharedRows(seed)
    others, index, found = index_of(entries)
    copy, map_of_copy = remapped(index, found, entries.moved_together())
    rows = {**read([*others, copy]), **entries.at(map_of_copy.rows)}
    chosen, cold = chosen_behind(seed, rows), chosen_cold(seed)
    for layer in LAYERS:
        assert torch.equal(cold[layer], chosen[layer])
        wanted, lies = read_at(entries, chosen[layer], map_of_copy.rows)
        assert wanted == lies
        assert wanted
    assert prefix_of("v4", seed).error(rows) < SAME


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_index_that_leads_to_the_old_rows_answers_otherwise(seed: int) -> None:
    """Control: before the move the index is right; after it the same keys choose other prompts' entries."""
    entries = SharedRows(seed)
    others, index, found = index_of(entries)
    held = read([*others, index])
    assert prefix_of("v4", seed).error({**held, **entries.at(found.rows)}) < SAME
    entries.moved_together()
    rows = {**held, **entries.at(found.rows)}
    chosen, cold = chosen_behind(seed, rows), chosen_cold(seed)
    wanted, lies = read_at(entries, chosen[1], found.rows)
    assert wanted != lies
    # Layer 3 chooses by what layer 1 made of wrong entries.
    assert not torch.equal(cold[3], chosen[3])
    assert prefix_of("v4", seed).error(rows) > OTHER


def test_entries_that_were_moved_to_each_other_s_rows_are_refused() -> None:
    """Where the owner records another position at a new row, or none, nothing is handed over."""
    entries = SharedRows(0)
    _, index, found = index_of(entries)
    move = entries.moved_together()
    swapped = move.new.clone()
    swapped[:2] = move.new[:2].flip(0)
    gone = move.new.clone()
    gone[5] = -1
    for new, status in ((swapped, "failed"), (gone, "source_lost")):
        told = entries.positions[new.clamp(min=0)]
        with pytest.raises(RepairFault) as fault:
            remapped(index, found, Move(move.old, new, told, move.generation))
        assert status == fault.value.status
