"""The ledger follows damage from block to block, and the book of promises what the disk has reported."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hitproof.engine import load
from hitproof.engine.cache.plain_memory import PlainMemory
from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.ledger import Ledger
from hitproof.engine.soak.stored import FaultyFiles, LostSegment, NotedStore, Promised
from hitproof.engine.soak.toys import toy
from hitproof.engine.store import Meaning, NotStored
from hitproof.rules.profiles import load_profile
from hitproof.spec.memory import Extent

BOUND = load(toy(load_profile("gemma-3-27b"))).bound
SPAN = Extent("full", (1, 2), 20)
OTHER = Extent("full", (5, 6), 20)


def memory_with(**rates: float) -> FaultyMemory:
    """A memory with faults of some kinds."""
    return FaultyMemory(PlainMemory(BOUND, 16), Ledger(lambda group, block: 0), Random(1), rates, lambda seconds: None)


def places(extent: Extent) -> list[tuple[str, int]]:
    """The blocks of an extent, as the ledger names them."""
    return [(extent.group, block) for block in extent.blocks]


def test_damage_moves_with_a_copy_and_ends_where_it_is_overwritten() -> None:
    """A copy of spoiled rows is spoiled; a copy of good rows over them ends that."""
    memory = memory_with()
    ledger = memory.ledger
    fault = ledger.inject("bit_flip", [("full", 1)])
    memory.copy(SPAN, OTHER)
    assert ledger.of(places(OTHER)) == (fault,)
    host = memory.host("full", 20)
    memory.save(OTHER, host, (0, 1))
    memory.copy(Extent("full", (8, 9), 20), OTHER)
    assert ledger.of(places(OTHER)) == ()
    memory.load(host, OTHER, (0, 1))
    assert ledger.of(places(OTHER)) == (fault,)


def test_damage_ends_when_a_block_is_given_to_somebody_else() -> None:
    """A block that was given out again holds its new owner's bytes."""
    serials = {("full", 1): 1}
    ledger = Ledger(lambda group, block: serials[group, block])
    fault = ledger.inject("bit_flip", [("full", 1)])
    assert ledger.of([("full", 1)]) == (fault,)
    serials["full", 1] = 2
    assert ledger.of([("full", 1)]) == ()
    ledger.close()
    assert fault.void == "given up unread"


def test_who_measures_spoiled_rows_has_noticed_the_fault() -> None:
    """The first who measures is told, with what it was about; how its turn ends is how it went on."""
    memory = memory_with()
    fault = memory.ledger.inject("bit_flip", [("full", 2)])
    with memory.ledger.turn() as words, memory.ledger.during("confirm"):
        memory.fingerprint(SPAN)
        words.append("asked anew")
    assert (fault.caught, fault.recovered) == ("confirm", "asked anew")


@pytest.mark.parametrize("kind", ["lost_write", "wrong_object"])
def test_a_write_that_does_not_happen_leaves_other_bytes(kind: str) -> None:
    """Lost and misdirected writes are seen by who measures, and the ledger knows which blocks they spoiled."""
    memory = memory_with(**{kind: 1.0})
    payload = bytes(range(1, 33)) * 20
    memory.write(SPAN, 0, payload)
    assert memory.fingerprint(SPAN) != memory.digest("full", payload)
    (fault,) = memory.ledger.faults
    assert set(places(SPAN)) <= fault.places


def test_a_torn_copy_differs_and_an_odd_address_is_told() -> None:
    """Half a copy has another fingerprint; bytes that came back at an odd place have an address that says so."""
    memory = memory_with(torn_copy=1.0)
    memory.memory.write(SPAN, 0, bytes(range(32)) * 20)
    memory.copy(SPAN, OTHER)
    assert memory.fingerprint(SPAN) != memory.fingerprint(OTHER)
    odd = memory_with(odd_address=1.0)
    odd.load(odd.host("full", 20), OTHER, (0, 1))
    assert odd.address("full", 5) % odd.shape("full").alignment


def test_nothing_is_injected_where_somebody_reads() -> None:
    """Between the last check and the end of a use the ledger spares the blocks."""
    ledger = Ledger(lambda group, block: 0)
    with ledger.reading([("full", 1)]), ledger.reading([("full", 1)]):
        assert ledger.spared([("full", 1)])
    assert not ledger.spared([("full", 1)])


def store_in(folder: Path, promised: Promised, full: float = 0.0, capacity: int | None = None) -> NotedStore:
    """A store that is watched."""
    ledger = Ledger(lambda group, block: 0)
    files = FaultyFiles(ledger, Random(1), full)
    return NotedStore(folder / "store", Meaning(BOUND), promised, ledger, files=files, capacity=capacity)


def test_a_reported_segment_that_is_gone_is_lost(tmp_path: Path) -> None:
    """A file that vanishes is a broken promise, unless a fault is known to have hit it."""
    promised = Promised(strict=True)
    with store_in(tmp_path, promised) as store:
        store.put("one", "full", {}, b"1" * 64)
        store.put("two", "full", {}, b"2" * 64)
        promised.check(store, bytes_too=True)
        hit, gone = sorted((tmp_path / "store" / "segments").glob("*/*/*.seg"))
        promised.excuse(hit.name[:64])
        hit.unlink()
        promised.check(store, bytes_too=True)
        gone.unlink()
        with pytest.raises(LostSegment):
            promised.check(store, bytes_too=True)


def test_what_is_evicted_as_reported_is_not_lost(tmp_path: Path) -> None:
    """A receipt that names what had to leave takes it out of what is promised."""
    promised = Promised(strict=True)
    with store_in(tmp_path, promised, capacity=20_000) as store:
        for number in range(12):
            store.put(f"key-{number}", "full", {}, bytes(3000))
        assert 0 < len(promised) < 12
        promised.check(store, bytes_too=True)
        assert promised.lost == 0


def test_a_full_disk_is_told_and_promises_nothing(tmp_path: Path) -> None:
    """What was not stored is not looked for."""
    promised = Promised(strict=True)
    with store_in(tmp_path, promised, full=1.0) as store:
        assert isinstance(store.put("one", "full", {}, b"1" * 64), NotStored)
        assert len(promised) == 0
        promised.check(store, bytes_too=True)
