"""What the bytes of a segment really are, beside what its facts say, and when facts are truthful.

`Truth` is a ghost: the engine never sees it. `truthful` is the invariant that ties facts to it; claims prove that every
transition and repair keeps the invariant, and that an accepted segment then holds what a query reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.verification.axioms.reading_sets import POSITIONAL, STATEFUL
from hitproof.verification.model import GroupModel
from hitproof.verification.terms import all_of, implies

__all__ = ["Truth", "fingerprints", "truthful"]

SOURCE = "layer_inputs"
IDENTITY = ("weights", "attention_config", "adapter", "media", "salt")
READABLE = ("layout", "kernel_version", "encoding", "scale_version", "v_layout", "shard")
NUMBERS = ("lo", "hi", "agree", "bytes", "origin", "address", "offset", "stride", "pool", "kv_generation", "media_from")
BOOLEANS = ("committed", "device", "mine", "mapped", "intact", "exact", "ring_still", "closed")
VERSIONS = (
    "boundary_version",
    "compressor_version",
    "seed",
    "index_config",
    "kv_content",
    "version",
    "separators",
    "skipped",
    "manifest_digest",
    "members_digest",
)


@dataclass(frozen=True)
class Truth:
    """Ghost values of one segment, by name; `fingerprint` is of the bytes now, `written` of the bytes at commit.

    `lo`, `hi`: tokens whose rows are really there. `agree`: leading tokens of the key path that are the request's.
    `origin`: the token of the first row, which lies `offset` bytes behind the block's address. `states`: lengths for
    which a whole state exists. `media_from`: the first token of a media item on the key path.
    `closed`: nobody will write into its block any more.
    """

    values: dict[str, Any]

    @classmethod
    def fresh(cls, ctx: z3.Context, tag: str) -> Truth:
        """A truth about which nothing is known."""
        names: dict[str, Any] = {}
        for name in (*NUMBERS, *IDENTITY, *READABLE, *VERSIONS, "fingerprint", "written", "window"):
            names[name] = z3.Int(f"{tag}truth.{name}", ctx=ctx)
        for name in BOOLEANS:
            names[name] = z3.Bool(f"{tag}truth.{name}", ctx=ctx)
        names["states"] = z3.Array(f"{tag}truth.states", z3.IntSort(ctx), z3.BoolSort(ctx))
        return cls(names)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def but(self, **changes: Any) -> Truth:
        """The same truth with some values replaced."""
        return Truth({**self.values, **changes})


def fingerprints(truth: Truth, assumptions: frozenset[str]) -> list[Any]:
    """`fingerprints_tell`: bytes with the fingerprint that was taken at commit are the bytes of that commit."""
    if "fingerprints_tell" not in assumptions:
        return []
    return [z3.Implies(truth["fingerprint"] == truth["written"], truth["intact"])]


def truthful(model: GroupModel, own: Any, truth: Truth) -> list[tuple[str, Any]]:
    """The invariant: each fact that is known agrees with the truth. Labelled clauses.

    Args:
        model: The group.
        own: Source of the segment's facts, before or after a change.
        truth: The ghost.
    """
    facts, ctx = model.group.facts, model.world.ctx
    form = own("form").value
    at_home = form == model.world.enums.member(facts["form"].type, model.group.home)
    alive = z3.Or(at_home, *(form == model.world.enums.member(facts["form"].type, f) for f in ("moving", "demoted")))
    on_device = own("tier").value == model.world.enums.member(facts["tier"].type, "device")
    always = z3.BoolVal(True, ctx=ctx)
    moving = form == model.world.enums.member(facts["form"].type, "moving")
    # A segment on its way from the device is still in its block there, until the copy has left.
    on_block = z3.And(on_device, z3.Or(at_home, moving))
    clauses: list[tuple[str, Any]] = []

    def say(label: str, premise: Any, needs: tuple[str, ...], conclusion: Any) -> None:
        known = [own(name).known for name in needs]
        clauses.append((label, implies(all_of([premise, *known], always), conclusion)))

    def fact(name: str) -> Any:
        return own(name).value

    say("committed", alive, (), truth["committed"])
    if model.group.object in (*POSITIONAL, SOURCE):
        say(
            "span",
            alive,
            ("start", "end"),
            z3.And(truth["lo"] <= fact("start"), fact("end") <= truth["hi"], truth["origin"] == fact("start")),
        )
    for name in IDENTITY:
        say(name, alive, (name,), truth[name] == fact(name))
    say("media_from", alive, ("media_from",), truth["media_from"] == fact("media_from"))
    say("matched", alive, ("matched",), fact("matched") <= truth["agree"])
    for name in VERSIONS:
        if name in facts:
            say(name, alive, (name,), truth[name] == fact(name))
    if model.group.constants.get("has_bytes"):
        say("device", on_block, (), truth["device"])
        # Where a segment is at home, or begins, no move of it is under way.
        at_rest = z3.Or(at_home, form == model.world.enums.member(facts["form"].type, "pending"))
        say("at_rest", at_rest, (), own("bound_for").value == model.world.enums.member(facts["tier"].type, "device"))
        say(
            "mine",
            alive,
            ("written_generation",),
            z3.Implies(fact("written_generation") == fact("generation"), truth["mine"]),
        )
        say("no_future", always, ("written_generation",), fact("written_generation") <= fact("generation"))
        say(
            "mapped",
            alive,
            ("mapped_generation",),
            z3.Implies(fact("mapped_generation") == fact("generation"), truth["mapped"]),
        )
        say("no_future_mapping", always, ("mapped_generation",), fact("mapped_generation") <= fact("generation"))
        # Whoever holds a pending segment is about to write it.
        begun = z3.Or(alive, form == model.world.enums.member(facts["form"].type, "pending"))
        say("sealed", begun, ("sealed",), z3.Implies(fact("sealed"), truth["closed"]))
        say("recorded", alive, ("recorded",), fact("recorded") == truth["written"])
        say("measured", alive, ("measured",), fact("measured") == truth["fingerprint"])
        say("bytes", alive, ("bytes",), truth["bytes"] == fact("bytes"))
        say("address", on_block, ("address",), truth["address"] == fact("address"))
        say("offset", on_block, ("offset",), truth["offset"] == fact("offset"))
        say("stride", on_block, ("stride",), truth["stride"] == fact("stride"))
        # A block belongs to the pool that gave it out, from the allocation on.
        placed = z3.Or(on_block, form == model.world.enums.member(facts["form"].type, "pending"))
        say("pool", placed, ("pool_epoch",), truth["pool"] == fact("pool_epoch"))
        exact = model.world.enums.member(facts["exactness"].type, "exact")
        say("exact", alive, ("exactness",), z3.Implies(fact("exactness") == exact, truth["exact"]))
        for name in READABLE:
            say(name, alive, (name,), truth[name] == fact(name))
    if "kv_generation" in facts:
        say("kv_generation", alive, ("kv_generation",), truth["kv_generation"] == fact("kv_generation"))
    if "window_size" in facts:
        say("window", alive, ("window_size",), fact("window_size") <= truth["window"])
        say(
            "ring",
            alive,
            ("write_sequence", "committed_sequence", "position", "end"),
            z3.Implies(
                z3.And(fact("write_sequence") == fact("committed_sequence"), fact("position") == fact("end")),
                truth["ring_still"],
            ),
        )
    if "marks" in facts and model.group.object in STATEFUL:
        point = z3.Int(f"{model.own.prefix}any.mark", ctx=ctx)
        say("marks", alive, ("marks",), z3.Implies(z3.Select(fact("marks"), point), z3.Select(truth["states"], point)))
        # The invariant speaks of every point; the length in question is the one that claims use.
        length = model.world.length
        say(
            "marks_here",
            alive,
            ("marks",),
            z3.Implies(z3.Select(fact("marks"), length), z3.Select(truth["states"], length)),
        )
    return clauses
