"""The toy model: rows tell what they were made of, and repairs compute out of the bytes that they read."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from hitproof.engine import Engine, load
from hitproof.engine.cache.plain_memory import PlainMemory
from hitproof.engine.soak.compute import Compute
from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.ledger import Ledger
from hitproof.engine.soak.mixing import masked
from hitproof.engine.soak.prompts import Crowd
from hitproof.engine.soak.toys import toy
from hitproof.engine.soak.world import World
from hitproof.rules.profiles import load_profile
from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent
from hitproof.spec.repair import RepairJob, RepairRequest, Source
from hitproof.spec.rows import has_rows, pool_shape, rows_of

V4 = "deepseek-v4-flash"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The engine of a small DeepSeek-V4-Flash."""
    return load(toy(load_profile(V4)))


@pytest.fixture(scope="module")
def world(engine: Engine) -> World:
    """Its toy model."""
    return World(engine.bound)


def asked(length: int = 200, **facts: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Tokens and facts of a request."""
    words = Random(1)
    return tuple(words.randrange(1000) for _ in range(length)), {**Crowd(1).facts(3, 0, False), **facts}


def test_a_small_profile_reads_as_the_whole_one() -> None:
    """Groups, objects, peers, ratios, rows of states and alignments are the same; rows and layers are not."""
    whole, small = load_profile(V4), toy(load_profile(V4))
    for group in whole.groups:
        other = small.group(group.id)
        assert (other.object, other.peers) == (group.object, group.peers)
        for name in ("ratio", "overlap", "row_tokens", "alignment", "has_v", "scaled"):
            assert other.constants.get(name) == group.constants.get(name)
    made = load(small).bound
    for old in load(whole).bound.groups:
        if has_rows(old):
            new = made.group(old.id)
            assert rows_of(old, 0, 128) == rows_of(new, 0, 128)
            shape = pool_shape(new, 1)
            assert shape.stride % shape.alignment == 0
            assert shape.row_bytes * shape.rows <= shape.stride


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "salt", "compression_seed"])
def test_another_identity_has_other_rows(world: World, fact: str) -> None:
    """No row of any group is the same where one fact of the identity differs."""
    tokens, facts = asked()
    one, other = world.prefix(tokens, facts), world.prefix(tokens, {**facts, fact: "another"})
    for group in ("window", "csa_entries", "csa_index", "hca_entries", "layer_inputs"):
        assert not (one.rows(group, 0, 200) == other.rows(group, 0, 200)).all(axis=(0, 2)).any()


def test_media_count_from_the_first_media_item_on(world: World) -> None:
    """Rows before the first picture are anybody's, those from it on are not."""
    tokens, facts = asked(media="one", media_from=48)
    one, other = world.prefix(tokens, facts), world.prefix(tokens, {**facts, "media": "two"})
    same = (one.rows("window", 0, 200) == other.rows("window", 0, 200)).all(axis=(0, 2))
    assert same.tolist() == [True] * 48 + [False] * 152


def test_a_row_depends_on_every_token_before_it(world: World) -> None:
    """With another token at one place, the rows before it stay and all rows from there on change."""
    tokens, facts = asked()
    changed = (*tokens[:100], tokens[100] + 1, *tokens[101:])
    one, other = world.prefix(tokens, facts), world.prefix(changed, facts)
    same = (one.rows("window", 0, 200) == other.rows("window", 0, 200)).all(axis=(0, 2))
    assert same.tolist() == [True] * 100 + [False] * 100


def test_a_part_is_the_same_as_out_of_the_whole(world: World) -> None:
    """Entries that begin in the middle read the overlap before them, as those of the whole prompt do."""
    prefix = world.prefix(*asked())
    maker = world.maker("csa_entries")
    part = maker.rows(prefix.inputs[92:200], 92, 96, 200, asked()[1])
    assert np.array_equal(part, prefix.rows("csa_entries", 0, 200)[:, 24:])


def memory_of(engine: Engine) -> FaultyMemory:
    """A memory without faults."""
    ledger = Ledger(lambda group, block: 0)
    return FaultyMemory(PlainMemory(engine.bound, 64), ledger, Random(1), {}, lambda seconds: None)


def job_of(engine: Engine, world: World, memory: FaultyMemory) -> RepairJob:
    """Entries to be made anew out of kept inputs that lie in memory."""
    tokens, facts = asked()
    inputs = masked(world.prefix(tokens, facts).rows("layer_inputs", 0, 200), "a", "s")
    held = Extent("layer_inputs", tuple(range(13)), 200)
    memory.write(held, 0, inputs.tobytes())
    known: dict[str, Value] = {
        "start": 0,
        "end": 200,
        "encoding": "a",
        "scale_version": "s",
        "recorded": memory.fingerprint(held),
    }
    wanted: dict[str, Value] = {"start": 0, "end": 128, "encoding": "b", "scale_version": "t"}
    request = RepairRequest("recompress", "csa_entries", -1, 128, 0, 128, {}, wanted, {})
    rows = rows_of(engine.bound.group("csa_entries"), 0, 128)
    source = {"layer_inputs": (Source(known, held),)}
    return RepairJob(
        request, tokens, facts, None, Extent("csa_entries", (3,), rows), source, {"inputs": "layer_inputs"}
    )


def test_a_repair_computes_the_true_rows_out_of_true_bytes(engine: Engine, world: World) -> None:
    """Entries made of kept inputs are those that a whole forward pass makes."""
    memory = memory_of(engine)
    job = job_of(engine, world, memory)
    outcome = Compute(world, memory, measures=True)(job)
    truth = masked(world.prefix(job.tokens, job.facts).rows("csa_entries", 0, 128), "b", "t")
    assert outcome.status == "done"
    assert memory.read(job.target) == truth.tobytes()
    assert outcome.measured["recorded"] == memory.fingerprint(job.target)


def test_a_repair_reads_what_lies_there(engine: Engine, world: World) -> None:
    """Of spoiled inputs it makes spoiled entries, unless it measures what it reads."""
    memory = memory_of(engine)
    job = job_of(engine, world, memory)
    source = job.held["layer_inputs"][0]
    memory.write(Extent("layer_inputs", (0,), 1), 0, bytes(32))
    assert Compute(world, memory, measures=True)(job).status == "source_lost"
    assert Compute(world, memory, measures=False)(job).status == "done"
    truth = masked(world.prefix(job.tokens, job.facts).rows("csa_entries", 0, 128), "b", "t")
    assert memory.read(job.target) != truth.tobytes()
    missing = replace(job, held={"layer_inputs": (Source({**source.facts, "end": 100}, source.extent),)})
    assert Compute(world, memory, measures=False)(missing).status == "source_lost"
