"""Facts of a plan that the engine gives to the rules of admission: lengths, prices, traffic and demand."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.spec.facts import Fact, declare_fact

__all__ = ["PLAN_FACTS"]

_DECLARED = {
    "length": ("tokens", "tokens that the plan reuses"),
    "recovery_us": ("us", "price of its repairs, a joint one once"),
    "prefill_us": ("us", "price of computing what it does not reuse"),
    "recompute_us": ("us", "price of computing the whole prompt"),
    "wait_us": ("us", "time until the paths that it uses are free"),
    "host_bytes": ("bytes", "bytes that it brings back from host memory"),
    "disk_bytes": ("bytes", "bytes that it brings back from disk"),
    "blocks": ("blocks", "blocks that the whole prompt takes, in hash units"),
    "held_blocks": ("blocks", "those of them that lie on the device already and are reused where they lie"),
    "loaded_blocks": ("blocks", "those of them that the plan's repairs make or bring back"),
    "level": ("count", "severest recovery level: 0 none, 1 in_place, 2 intra_layer, 3 nothing is reused"),
}

PLAN_FACTS: Mapping[str, Fact] = {
    name: declare_fact(name, unit, {}, because=because) for name, (unit, because) in _DECLARED.items()
}
"""By name; rules read them as `plan.length` and so on. All are known once a plan has a price."""
