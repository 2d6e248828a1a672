"""Groups from byte layouts: the constants of each object, and the arithmetic behind them as a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hitproof.spec.profile import Constant, Group

__all__ = [
    "Row",
    "boundary",
    "compressor_state",
    "entries",
    "full_kv",
    "inputs",
    "manifest",
    "recurrent_state",
    "routing_index",
    "shared_constants",
    "tail",
]


@dataclass(frozen=True, slots=True)
class Row:
    """How one row lies in one layer: its bytes, where they come from, and the page around it.

    Args:
        size: Bytes of one row in one layer.
        how: The sum that gives `size`.
        page_rows: Rows of one page.
        alignment: Bytes that page size and addresses are multiples of.
        scaled: Whether the values mean nothing without scales.
    """

    size: int
    how: str
    page_rows: int
    alignment: int
    scaled: bool = False

    def paged(self, rows: int) -> Row:
        """The same row on pages of `rows` rows."""
        return replace(self, page_rows=rows)

    @property
    def stride(self) -> int:
        """Bytes from one page to the next in one layer, padding included."""
        return -(-self.page_rows * self.size // self.alignment) * self.alignment

    def constants(self, layers: int) -> dict[str, Constant]:
        """Bytes of a row in all layers, alignment and stride."""
        return {"row_bytes": self.size * layers, "alignment": self.alignment, "stride": self.stride}

    def note(self, layers: int) -> str:
        """The arithmetic in one line."""
        raw = self.page_rows * self.size
        page = f"; page {self.page_rows} x {self.size:,} = {raw:,}" if self.page_rows > 1 else ""
        padded = f", padded to {self.stride:,}" if raw != self.stride else ""
        return f"{self.how} = {self.size:,} B, x {layers} layers = {self.size * layers:,}{page}{padded}"


def shared_constants(
    *,
    window: int = 1,
    windowed_layers: int = 0,
    chunk: int | None = None,
    recurrent: bool = False,
    media_ahead: bool = False,
) -> dict[str, Constant]:
    """Constants that hold for all groups of a model.

    Each stacked windowed layer lets a token see `window - 1` tokens further back, so an exact warm-up
    starts that many tokens earlier. Chunked layers see no further than to the start of the chunk, however many are
    stacked. A recurrent layer has no such bound.

    Args:
        window: Tokens of a window, the query included.
        windowed_layers: Layers that read one, those that own no rows too.
        chunk: Tokens of a chunk where the windowed layers are chunked.
        recurrent: Whether a layer keeps a recurrent state.
        media_ahead: Whether tokens of one picture attend to later ones of it.
    """
    constants: dict[str, Constant] = {
        "receptive_field": (window - 1) * windowed_layers if chunk is None else chunk - 1,
        "warmable": not recurrent,
        "lookahead": 0,
        "ranks": 1,
    }
    return {**constants, "media_ahead": True} if media_ahead else constants


def full_kv(group_id: str, layers: Sequence[int], row: Row, *, has_v: bool, consumers: Sequence[int] = ()) -> Group:
    """Every token's row, kept for the whole prefix; consumers read it and own none."""
    constants = {"row_tokens": 1, **row.constants(len(layers)), "has_v": has_v, "scaled": row.scaled}
    return _group(group_id, "full_kv", layers, constants, note=row.note(len(layers)), consumers=consumers)


def tail(
    layers: Sequence[int],
    row: Row,
    *,
    window: int,
    has_v: bool,
    chunk: int | None = None,
    consumers: Sequence[int] = (),
) -> Group:
    """The last rows before a boundary, with a chunk those of the boundary's own one; its peer is the record."""
    constants = {
        **_reach(window, chunk),
        "row_tokens": 1,
        **row.constants(len(layers)),
        "has_v": has_v,
        "scaled": row.scaled,
    }
    peers = {"boundary": "window_boundary"}
    return _group("window", "uncompressed_tail", layers, constants, peers, row.note(len(layers)), consumers)


def boundary(layers: Sequence[int], *, window: int, chunk: int | None = None, consumers: Sequence[int] = ()) -> Group:
    """The record beside a window; it owns no bytes, so it has neither row nor address constants."""
    note = "a record without bytes: version, separators, skipped regions"
    return _group("window_boundary", "window_boundary", layers, _reach(window, chunk), note=note, consumers=consumers)


def entries(group_id: str, layers: Sequence[int], row: Row, *, ratio: int, has_v: bool) -> Group:
    """One compressed row for every `ratio` tokens."""
    constants = {
        "ratio": ratio,
        "row_tokens": ratio,
        **row.constants(len(layers)),
        "has_v": has_v,
        "scaled": row.scaled,
    }
    return _group(group_id, "compressed_global", layers, constants, note=row.note(len(layers)))


def routing_index(group_id: str, layers: Sequence[int], row: Row, *, ratio: int, top_k: int, kv: str) -> Group:
    """Index keys over the rows of the group `kv`; `top_k` counts rows."""
    constants = {
        "ratio": ratio,
        "row_tokens": ratio,
        "top_k": top_k,
        **row.constants(len(layers)),
        "scaled": row.scaled,
    }
    return _group(group_id, "routing_index", layers, constants, {"kv": kv}, row.note(len(layers)))


def compressor_state(
    group_id: str, layers: Sequence[int], row: Row, *, ratio: int, overlap: int, entries: str
) -> Group:
    """Raw rows of the unfinished entry, and `overlap` rows before it; `state_bytes` is their most."""
    live = ratio - 1 + overlap
    constants = {
        "ratio": ratio,
        "overlap": overlap,
        "row_tokens": 1,
        **row.constants(len(layers)),
        "state_bytes": live * row.size * len(layers),
    }
    note = f"{row.note(len(layers))}; at most {ratio - 1} + {overlap} rows live"
    return _group(group_id, "compressor_state", layers, constants, {"entries": entries}, note)


def recurrent_state(group_id: str, layers: Sequence[int], state: Row) -> Group:
    """One state in each layer, of use at exactly the length where it was saved."""
    constants = {
        "state_bytes": state.size * len(layers),
        "alignment": state.alignment,
        "stride": state.stride,
    }
    return _group(group_id, "recurrent_state", layers, constants, note=state.note(len(layers)))


def manifest(layers: int) -> Group:
    """The record of a prefix in slower storage, over all layers; members of every group are named in it."""
    note = "what a prefix in slower storage consists of; without it nothing comes back from there"
    return _group("prefix_manifest", "demoted_prefix", range(layers), {}, note=note)


def inputs(layers: int, hidden: int, size: int, dtype: str) -> Group:
    """Kept inputs of all layers, `size` bytes an element; optional: a segment is held only where somebody pays."""
    row = Row(size * hidden, f"{hidden:,} hidden x {size} B {dtype}", 16, 512)
    constants = {"row_tokens": 1, **row.constants(layers), "scaled": False}
    return _group("layer_inputs", "layer_inputs", range(layers), constants, note=row.note(layers))


def _reach(window: int, chunk: int | None) -> dict[str, Constant]:
    return {"window": window} if chunk is None else {"window": window, "chunk": chunk}


def _group(
    group_id: str,
    object_name: str,
    layers: Sequence[int],
    constants: Mapping[str, Constant],
    peers: Mapping[str, str] | None = None,
    note: str = "",
    consumers: Sequence[int] = (),
) -> Group:
    return Group.model_validate(
        {
            "id": group_id,
            "object": object_name,
            "layers": list(layers),
            "consumers": list(consumers),
            "constants": dict(constants),
            "peers": dict(peers or {}),
            "note": note,
        }
    )
