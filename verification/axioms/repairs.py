"""What each repair really needs and really does: written from its formula, never from its declaration.

Sources: article section 4.3; DeepSeek-V4 (arXiv 2606.19348): compressors and indexer pool projections of the layers'
inputs, not raw keys and values, so no entry or key can be made from what it stands for. A forward pass needs tokens and
media, and as warm-up also the exact history of all other layers over a prefix longer than the receptive field. Stacked
chunked layers reach no further back than to the start of the chunk, less than one chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from hitproof.spec.bound import BoundOption
from hitproof.verification.axioms.reading_sets import STATEFUL
from hitproof.verification.axioms.truth import IDENTITY, READABLE, Truth
from hitproof.verification.model import GroupModel, Post

__all__ = ["COPYING", "KNOWN_REPAIRS", "MEASURING", "SOURCES", "repaired", "warmed_up"]

SOURCES: dict[str, frozenset[str]] = {
    "checksum": frozenset({"self"}),
    "promote": frozenset({"self", "demoted_prefix"}),
    "relayout": frozenset({"self"}),
    "requantize": frozenset({"self"}),
    "tail_fill": frozenset({"self", "layer_inputs"}),
    "window_roll": frozenset({"self", "window_boundary"}),
    "recompress": frozenset({"layer_inputs"}),
    "index_rebuild": frozenset({"layer_inputs", "kv"}),
    "index_remap": frozenset({"self", "kv"}),
    "forward": frozenset({"tokens", "media"}),
    "boundary_record": frozenset(),
}
"""What a repair cannot do without; a declaration that names less promises what nobody can keep."""

KNOWN_REPAIRS = frozenset(SOURCES)

COPYING = KNOWN_REPAIRS - {"checksum", "boundary_record"}
"""Repairs that write into a private copy, which nobody has filed under any key."""

MEASURING = frozenset({"promote", "checksum", "relayout"})
"""Repairs that measure what they read against what was recorded, and fail where it differs."""

WARMED = frozenset({"uncompressed_tail", "compressor_state"})
"""Objects that a pass over the last tokens before a length brings whole: no row of theirs lies further back."""


def repaired(
    model: GroupModel,
    option: BoundOption,
    post: Post,
    before: Truth,
    sources: Callable[[str], Any],
    inputs: tuple[Any, Any] | None,
) -> tuple[Any, Truth]:
    """The sources that the repair needs are whole (a condition), and the truth after it has run from them.

    Args:
        model: The group.
        option: The recovery option.
        post: Facts after, by the rulebook.
        before: Truth before.
        sources: Whether a source (`self`, an object, `tokens`, ...) is whole, by what the option checks.
        inputs: Tokens that the kept layer inputs cover, if the group has such a peer.
    """
    world, ctx = model.world, model.world.ctx
    needs = [sources(name) for name in sorted(SOURCES[option.repair])]
    true = z3.BoolVal(True, ctx=ctx)
    pool = world.shared("runtime.pool_epoch").value
    fresh = Truth.fresh(ctx, f"{model.own.prefix}{option.id}.after.")
    kernel = {name: model.kernel("version" if name == "kernel_version" else name).value for name in READABLE}
    place = {name: post(name).value for name in ("address", "offset", "stride")}
    # A writing repair measures its own output in the same pass and fails where it cannot: what is left is whole.
    seal = {"intact": true, "mine": true, "mapped": true, "device": true, "closed": true}
    same_print = {"fingerprint": before["written"]}
    # What is written goes into a private copy: a block of the current pool, published when the plan ends well.
    copied = {**seal, **same_print, **place, "pool": pool}
    # Where the content itself changes, so does its fingerprint: the copy is recorded with its own.
    anew = {name: post("recorded").value for name in ("fingerprint", "written")}
    first, to = _wanted(model)
    match option.repair:
        case "checksum":
            return _all(ctx, needs), before.but(**same_print, intact=true)
        case "promote":
            after = before.but(**copied, committed=true)
            return _all(ctx, [*needs, *_lies_below(model)]), after
        case "relayout":
            changed = {name: kernel[name] for name in ("layout", "kernel_version", "v_layout")}
            return _all(ctx, needs), before.but(**copied, **changed)
        case "requantize":
            changed = {name: kernel[name] for name in ("encoding", "scale_version")}
            after = before.but(**{**copied, **anew}, **changed, exact=z3.BoolVal(False, ctx=ctx))
            # Values are found by the layout in which they are read.
            return _all(ctx, [*needs, before["layout"] == kernel["layout"]]), after
        case "index_remap":
            kv = model.peers["kv"]
            # Only keys of these entries have a place among their rows.
            theirs = z3.And(kv.own("recorded").known, before["kv_content"] == kv.own("recorded").value)
            return _all(ctx, [*needs, theirs]), before.but(**copied, kv_generation=kv.own("generation").value)
        case "window_roll":
            changed = {"boundary_version": world.shared("request.window_version").value, "ring_still": true}
            # Only what the ring holds can be rolled: nothing new comes into being.
            held = z3.And(before["lo"] <= first, to <= before["hi"])
            return _all(ctx, [*needs, held]), before.but(**copied, **changed)
        case "tail_fill":
            end = model.own("end").value
            covered = true if inputs is None else z3.And(inputs[0] <= end, to <= inputs[1])
            # A ring keeps the youngest rows that its window holds; the oldest make room.
            room: dict[str, Any] = {}
            if model.group.object == "uncompressed_tail":
                oldest = to - before["window"]
                low = z3.If(oldest > before["lo"], oldest, before["lo"])
                room = {"lo": low, "origin": post("start").value}
            joined = z3.And(before["lo"] <= first, end <= before["hi"], first <= end, end < to)
            # The rows that it does not make must be there, to the last byte.
            tokens, size = int(model.group.constants.get("row_tokens", 1)), int(model.group.constants["row_bytes"])
            whole = (end - before["origin"]) * size <= before["bytes"] * tokens
            written = _written(model, post, to - post("start").value)
            after = before.but(**{**copied, **anew}, **room, hi=to, bytes=written, ring_still=true)
            return _all(ctx, [*needs, covered, joined, whole]), after
        case "boundary_record":
            request = world.shared
            names = {"version": "window_version", "separators": "separators", "skipped": "skipped"}
            # A record is made from the request alone, so it is the request's own, for as long as the request is.
            own = _identity(model, post)
            after = before.but(
                committed=true,
                agree=post("matched").value,
                lo=post("start").value,
                hi=post("end").value,
                origin=post("start").value,
                **own,
                **{name: request(f"request.{fact}").value for name, fact in names.items()},
            )
            return _all(ctx, needs), after
        case _:
            return _rebuilt(model, option, post, fresh, needs, inputs, {**seal, **place, **kernel, "pool": pool})


def _lies_below(model: GroupModel) -> list[Any]:
    """A copy lies in slower storage, and the manifest tells of all of it."""
    own, kinds, enums = model.own, model.group.facts, model.world.enums
    below = [own("tier").value == enums.member(kinds["tier"].type, name) for name in ("host", "disk")]
    found = [own("form").value == enums.member(kinds["form"].type, "demoted"), z3.Or(below)]
    if "manifest" in model.peers:
        end, told = own("end"), model.peers["manifest"].own("end")
        found += [end.known, told.known, end.value <= told.value]
    return found


def _rebuilt(
    model: GroupModel,
    option: BoundOption,
    post: Post,
    fresh: Truth,
    needs: list[Any],
    inputs: tuple[Any, Any] | None,
    common: dict[str, Any],
) -> tuple[Any, Truth]:
    """Newly made bytes, of this request's identity, exact, in the kernel's layout, over exactly what was wanted."""
    world, ctx = model.world, model.world.ctx
    request = world.shared
    first, to = _wanted(model)
    true = z3.BoolVal(True, ctx=ctx)
    if option.repair != "forward" and inputs is not None:
        needs = [*needs, inputs[0] <= first, to <= inputs[1]]
    exact = true
    if option.repair == "forward":
        warmable = z3.BoolVal(bool(model.group.constants.get("warmable")), ctx=ctx)
        exact = _exact(model)
        needs = [*needs, warmable, z3.BoolVal(option.history, ctx=ctx), *_behind_the_start(model)]
    versions = {
        "compressor_version": "compressor_version",
        "seed": "compression_seed",
        "boundary_version": "window_version",
    }
    made = fresh.but(
        **common,
        committed=true,
        exact=exact,
        ring_still=true,
        written=fresh["fingerprint"],
        lo=first,
        hi=to,
        origin=first,
        agree=fresh["agree"],
        bytes=_written(model, post, to - first),
        window=z3.IntVal(int(model.group.constants.get("window", 0)), ctx=ctx),
        states=z3.Store(z3.K(z3.IntSort(ctx), z3.BoolVal(False, ctx=ctx)), world.length, true),
        **{name: request(f"request.{fact}").value for name, fact in versions.items()},
        **_identity(model, post),
        index_config=request("request.index_config").value,
    )
    if "kv" in model.peers:
        kv = model.peers["kv"]
        made = made.but(kv_content=kv.own("recorded").value, kv_generation=kv.own("generation").value)
    # The new segment is filed under the request's own key; its fingerprint is the one that is then recorded.
    return _all(ctx, needs), made.but(
        agree=z3.If(post("matched").known, post("matched").value, fresh["agree"]),
        fingerprint=post("recorded").value,
        written=post("recorded").value,
    )


def _exact(model: GroupModel) -> Any:
    """A pass is exact only over more than the receptive field, and from history that is exact itself."""
    world, request = model.world, model.world.shared
    field = int(model.group.constants.get("receptive_field", 0))
    if model.group.object == "compressor_state":
        # Its oldest row lies an entry and the overlap before the length, and must be exact, too.
        field += int(model.group.constants["ratio"]) + int(model.group.constants.get("overlap", 0))
    allows = request("request.allows_approximate")
    exact = z3.And(world.length > field, z3.Or(z3.Not(allows.known), z3.Not(allows.value)))
    if model.group.constants.get("media_ahead"):
        # Rows of a picture depend on its later tokens, which a pass that ends inside of it does not run.
        media_from = request("request.media_from")
        exact = z3.And(exact, media_from.known, world.length <= media_from.value)
    return exact


def warmed_up(model: GroupModel) -> Any:
    """A pass over the last tokens before the length would bring the group whole; None where no such pass can.

    What it makes is exact, or the request takes it though it is not.
    """
    if model.group.object not in WARMED or not model.group.constants.get("warmable"):
        return None
    request = model.world.shared
    sources = [z3.And(fact.known, fact.value) for fact in map(request, ("request.has_tokens", "request.has_media"))]
    allows = request("request.allows_approximate")
    good = z3.Or(_exact(model), z3.And(allows.known, allows.value))
    peers = [model.ready(role).value for role, peer in model.peers.items() if peer.group.rules.mandatory]
    return _all(model.world.ctx, [*sources, *peers, *_behind_the_start(model), good])


def _behind_the_start(model: GroupModel) -> list[Any]:
    """A pass over one window, or over one chunk, begins behind the first token: from there on it would be prefill."""
    if model.group.object != "uncompressed_tail":
        return []
    spans = [int(model.group.constants[name]) for name in ("window", "chunk") if name in model.group.constants]
    return [model.world.length >= min(spans)]


def _written(model: GroupModel, post: Post, tokens: Any) -> Any:
    """Bytes of what the repair leaves: what it was told to write, and never more than its rows or its state take."""
    constants, told = model.group.constants, post("bytes").value
    if model.group.object in STATEFUL:
        most: Any = z3.IntVal(int(constants["state_bytes"]), ctx=model.world.ctx)
    else:
        row = int(constants.get("row_tokens", 1))
        most = (tokens + row - 1) / row * int(constants["row_bytes"])
    return z3.If(told <= most, told, most)


def _identity(model: GroupModel, post: Post) -> dict[str, Any]:
    """Identity of newly made content: the request's. Where it ends before any media item, it suits whatever media."""
    own = {name: model.world.shared(f"request.{name}").value for name in IDENTITY}
    return {**own, "media": post("media").value, "media_from": post("media_from").value}


def _wanted(model: GroupModel) -> tuple[Any, Any]:
    """The tokens that the repair has to bring: what the length needs, within the piece's share."""
    first, _ = model.number(model.group.raw_first)
    to, _ = model.number(model.group.raw_to)
    if model.group.rules.pieces == "span":
        first = z3.If(first > model.share_first, first, model.share_first)
        to = z3.If(to < model.share_to, to, model.share_to)
    return first, to


def _all(ctx: z3.Context, parts: list[Any]) -> Any:
    return z3.And(z3.BoolVal(True, ctx=ctx), *parts)
