"""How pages of SGLang's host pools are sealed: one `PageSeal` a pool, by its geometry and the server's identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitproof.engine import load
from hitproof.integrations.gate import GroupBlocks, PageSeal, gate_profile
from hitproof.integrations.gate.groups import group_ids
from hitproof.integrations.sglang.pools import element_name
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile

__all__ = ["page_seals", "pool_layout"]


def page_seals(
    profile: Profile,
    pools: Mapping[str, Any],
    layers: Mapping[str, Sequence[int]],
    identity: Mapping[str, Any],
    shard: str,
    secret: bytes | None = None,
) -> dict[str, PageSeal]:
    """Seals by the name of the pool.

    Args:
        profile: The model's share of this rank.
        pools: Host pools of keys and values, together of all layers.
        layers: By pool, the model's layers that lie there.
        identity: Of the server; what tells requests apart is in the keys that SGLang makes.
        shard: Which share of the heads this process holds.
        secret: Key of 1 to 64 bytes; with it only pages of who has it are opened.

    Raises:
        HitproofError: The pools are not the model's, or keep pages in a way that is not covered.
    """
    blocks = {name: _blocks(pool, tuple(layers[name])) for name, pool in pools.items()}
    engine = load(gate_profile(profile, blocks))
    ids = group_ids(profile, blocks)
    seals = {}
    for name, pool in pools.items():
        layout = pool_layout(pool)
        contract = {
            "layout": layout,
            "v_layout": layout,
            "version": "sglang host page",
            "encoding": element_name(pool.dtype),
            "scale_version": str(identity["weights"]) if "float8" in str(pool.dtype) else "no scales",
            "shard": shard,
        }
        seals[name] = PageSeal(engine, ids[name], identity=identity, contract=contract, secret=secret)
    return seals


def pool_layout(pool: Any) -> str:
    """How the bytes of one page lie, as SGLang writes them to slower storage."""
    heads = f"{pool.head_num}x{pool.head_dim}" if hasattr(pool, "head_num") else f"1x{pool.kv_cache_dim}"
    return f"{pool.layout}:{pool.layer_num}x{pool.page_size}x({heads})"


def _blocks(pool: Any, layers: tuple[int, ...]) -> GroupBlocks:
    if len(layers) != pool.layer_num:
        raise UsageError("a host pool does not hold the layers of its group", got=pool.layer_num, expected=len(layers))
    page = pool.get_dummy_flat_data_page()
    stride = page.numel() * page.element_size() // pool.layer_num
    return GroupBlocks(layers, pool.page_size, stride, alignment=page.element_size())
