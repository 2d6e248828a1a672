"""Small geometries of every kind, for tests to draw."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hitproof.kernels.blocks import Geometry

LAYOUTS = ("token_major", "head_major", "value_major")


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    """Any small geometry, gaps and padding included."""
    layout: Any = draw(st.sampled_from(LAYOUTS))
    rows, heads, item = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 4)))
    cell = item * draw(st.integers(1, 5))
    gap = 0 if layout == "value_major" else draw(st.integers(0, 5))
    pitch = cell * (heads if layout == "token_major" else 1) + gap
    bare = Geometry(rows, heads, cell, layout, pitch=pitch, item_bytes=item)
    block = bare.used_bytes + draw(st.integers(0, 9))
    return Geometry(
        rows, heads, cell, layout, pitch, block, block + draw(st.integers(0, 9)), draw(st.integers(0, 9)), item
    )
