"""What must hold of the bytes when a group is accepted: readable, the request's own, and there where it is read."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.verification.axioms.reading_sets import POSITIONAL, STATEFUL, reads, state_is_read
from hitproof.verification.axioms.truth import IDENTITY, SOURCE, Truth
from hitproof.verification.encode import Z3Fact
from hitproof.verification.model import GroupModel

__all__ = ["HELD", "held_parts", "serve_parts"]

HELD = (
    *("alignment", "chunk", "has_bytes", "has_v", "lookahead", "overlap", "ratio"),
    *("row_bytes", "row_tokens", "scaled", "state_bytes", "window"),
)
"""Constants that say which rows a query reads and where they lie."""


def serve_parts(model: GroupModel, truth: Truth) -> list[tuple[str, Any]]:
    """What makes bytes readable by this request's kernels and its own, whatever positions they hold.

    Each part carries the name of the fact that should have told.
    """
    world, group = model.world, model.group
    constants = group.constants
    request = world.shared
    media_from = request("request.media_from")
    ahead = world.length + int(constants.get("lookahead", 0))

    def same(ghost: str, other: Z3Fact) -> tuple[str, Any]:
        return ghost, z3.And(other.known, truth[ghost] == other.value)

    parts = [
        ("form", truth["committed"]),
        ("matched", truth["agree"] >= ahead),
        *(same(name, request(f"request.{name}")) for name in IDENTITY if name != "media"),
        # Up to the first media item of both there is none that could differ, if the rows depend on nothing behind it.
        (
            "media",
            z3.Or(
                # The same pictures at other places are another content.
                z3.And(
                    same("media", request("request.media"))[1],
                    media_from.known,
                    truth["media_from"] == media_from.value,
                ),
                z3.And(media_from.known, ahead <= media_from.value, ahead <= truth["media_from"]),
            ),
        ),
    ]
    if constants.get("has_bytes"):
        parts += _byte_parts(model, truth, same)
    if group.object not in POSITIONAL:
        # What stands for a span that ends before it starts stands for nothing.
        start, end = model.own("start"), model.own("end")
        parts.append(("end", z3.And(start.known, end.known, start.value <= end.value)))
    match group.object:
        case "uncompressed_tail":
            parts += [
                ("write_sequence", truth["ring_still"]),
                ("window_size", truth["window"] >= int(constants["window"])),
                same("boundary_version", request("request.window_version")),
            ]
        case "compressed_global":
            parts += [
                same("compressor_version", request("request.compressor_version")),
                same("seed", request("request.compression_seed")),
            ]
        case "routing_index":
            kv = model.peers["kv"]
            parts += [
                same("index_config", request("request.index_config")),
                same("kv_content", kv.own("recorded")),
                same("kv_generation", kv.own("generation")),
            ]
        case "compressor_state":
            parts.append(same("compressor_version", request("request.compressor_version")))
        case "demoted_prefix":
            parts.append(("manifest_digest", truth["manifest_digest"] == truth["members_digest"]))
            nowhere = world.enums.member(group.facts["tier"].type, "nowhere")
            parts.append(("tier", model.own("tier").value != nowhere))
        case "window_boundary":
            parts += [
                same("version", request("request.window_version")),
                same("separators", request("request.separators")),
                same("skipped", request("request.skipped")),
            ]
        case _:
            pass
    return parts


def _byte_parts(model: GroupModel, truth: Truth, same: Any) -> list[tuple[str, Any]]:
    constants, request = model.group.constants, model.world.shared
    allows, pool = request("request.allows_approximate"), request("runtime.pool_epoch")
    alignment = int(constants["alignment"])
    parts = [
        ("tier", truth["device"]),
        ("written_generation", truth["mine"]),
        ("mapped_generation", truth["mapped"]),
        ("measured", truth["intact"]),
        # What its owner may still write need not be there any more when a later query reads it.
        ("sealed", truth["closed"]),
        ("pool_epoch", z3.And(pool.known, truth["pool"] == pool.value)),
        ("exactness", z3.Or(truth["exact"], z3.And(allows.known, allows.value))),
        same("layout", model.kernel("layout")),
        same("kernel_version", model.kernel("version")),
        same("encoding", model.kernel("encoding")),
        same("shard", model.kernel("shard")),
        ("address", (truth["address"] + truth["offset"]) % alignment == 0),
        ("stride", truth["stride"] % alignment == 0),
    ]
    if constants.get("scaled"):
        parts.append(same("scale_version", model.kernel("scale_version")))
    if constants.get("has_v"):
        parts.append(same("v_layout", model.kernel("v_layout")))
    return parts


def held_parts(model: GroupModel, truth: Truth, position: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """Whether anything of this group is read at `position` (for states: at the length), and what then must hold."""
    group, length = model.group, model.world.length
    constants = group.constants
    serves = serve_parts(model, truth)
    if group.object in POSITIONAL:
        wanted = z3.And(
            reads(group.object, constants, length, position),
            position >= model.share_first,
            position < model.share_to,
        )
        return wanted, [*_row_parts(model, truth, position), *serves]
    if group.object == SOURCE:
        # No query reads kept inputs; a repair reads any row that they claim to hold.
        kept = [model.own(name) for name in ("start", "end")]
        wanted = z3.And(*(fact.known for fact in kept), kept[0].value <= position, position < kept[1].value)
        return wanted, [*_row_parts(model, truth, position), *serves]
    if group.object in STATEFUL:
        there = [
            ("marks", z3.Select(truth["states"], length)),
            ("bytes", truth["bytes"] >= int(constants["state_bytes"])),
        ]
        return state_is_read(group.object, constants, length), [*there, *serves]
    return length > 0, serves


def _row_parts(model: GroupModel, truth: Truth, position: Any) -> list[tuple[str, Any]]:
    """The row of the token at `position` is there, to its last byte."""
    constants = model.group.constants
    tokens, size = int(constants.get("row_tokens", 1)), int(constants["row_bytes"])
    row_end = (position - truth["origin"]) / tokens + 1
    return [
        ("start", truth["lo"] <= position),
        ("end", position < truth["hi"]),
        ("bytes", row_end * size <= truth["bytes"]),
    ]
