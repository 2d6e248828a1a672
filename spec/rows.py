"""How a group's rows lie in pages: the geometry that its constants state, and how many rows a segment has."""

from __future__ import annotations

from hitproof.spec.bound import BoundGroup
from hitproof.spec.errors import ProfileError
from hitproof.spec.memory import PoolShape

__all__ = ["has_rows", "is_state", "page_rows", "pool_shape", "rows_of"]


def has_rows(group: BoundGroup) -> bool:
    """Whether segments of the group have bytes; a boundary record or a manifest has none."""
    return bool(group.constants.get("has_bytes", True))


def is_state(group: BoundGroup) -> bool:
    """Whether a segment of the group is a state of one length, of which no part is of use."""
    return "state_bytes" in group.constants


def pool_shape(group: BoundGroup, blocks: int) -> PoolShape:
    """Geometry of a pool of so many blocks.

    `row_bytes` and `state_bytes` of a profile count all layers of a group together, `stride` one page of one layer. A
    state without rows of its own is one row.

    Raises:
        ProfileError: The group states no size, or one that its layers do not share evenly.
    """
    constants = group.constants
    layers, alignment = int(constants["layer_count"]), int(constants.get("alignment", 1))
    whole = int(constants.get("row_bytes", constants.get("state_bytes", 0)))
    row, left = divmod(whole, layers)
    stride = int(constants.get("stride", 0))
    if left or not 0 < row <= stride:
        raise ProfileError(
            "the group's rows do not fit a page",
            rule=group.id,
            got=f"{whole} bytes in {layers} layers, pages of {stride} bytes",
            expected="row_bytes or state_bytes that its layers share evenly, and a stride of one row or more",
        )
    return PoolShape(blocks, page_rows(row, stride, alignment), layers, row, stride, alignment)


def page_rows(row_bytes: int, stride: int, alignment: int) -> int:
    """Rows of one page.

    A page is padded to a multiple of the alignment, so several counts of a short row may have the same stride: 62 to 65
    index keys of 132 bytes all take 8,640 bytes in units of 576. Pages hold round numbers of rows; of the counts that
    fit the stride, the one with the most factors of two is it, here 64.

    Args:
        row_bytes: Bytes of a row in one layer.
        stride: Bytes from a page to the next in one layer.
        alignment: What the stride was padded to.
    """
    most = stride // row_bytes
    fewest = min(most, max(1, (stride - alignment) // row_bytes + 1))
    return max(range(fewest, most + 1), key=lambda rows: (rows & -rows, rows))


def rows_of(group: BoundGroup, start: int, end: int) -> int:
    """Rows of a segment of the tokens [start, end).

    A span has one for every `row_tokens` tokens; a state as many as `state_bytes` holds, whatever its tokens.
    """
    constants = group.constants
    if is_state(group):
        return int(constants["state_bytes"]) // int(constants.get("row_bytes", constants["state_bytes"]))
    tokens = int(constants["row_tokens"])
    return end // tokens - start // tokens
