"""The disk tier gives back what was put, byte for byte, and says why where it does not."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from threading import Thread
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine.store import Deleted, Found, Meaning, NotStored, Opened, Receipt, Refused, Sizes, Store
from hitproof.spec.errors import InputTooLargeError, InternalError, StoreError, StoreLockedError, UsageError
from tests.engine.state_cases import bound_to
from tests.engine.store.cases import GROUP, facts, files_of, got, meaning, opened, payload, put


def test_what_was_put_is_found_again_after_a_restart(tmp_path: Path) -> None:
    """Payload and facts come back, unknown ones as unknown; the disk is the real one, waited for."""
    given_facts = facts(measured=None, marks=frozenset({3, 1, 1024}))
    with Store(tmp_path / "s", meaning()) as store:
        receipt = store.put("k" * 64, GROUP, given_facts, payload("a", 5000))
        assert isinstance(receipt, Receipt)
        assert receipt.bytes == (tmp_path / "s" / "segments" / receipt.name).stat().st_size
    with Store(tmp_path / "s", meaning()) as store:
        found = store.get("k" * 64)
        assert isinstance(found, Found)
        assert (found.group, found.facts, bytes(found.payload)) == (GROUP, given_facts, payload("a", 5000))
        assert (store.opened.adopted, store.opened.swept, store.opened.rebuilt) == ((), (), False)


def test_facts_alone_are_those_that_get_tells(tmp_path: Path) -> None:
    """Before and after a restart; an absent key has none, and no order of use is changed."""
    told = facts(measured=None, marks=frozenset({3, 1, 1024}))
    with opened(tmp_path) as store:
        put(store, "k", measured=None, marks=told["marks"])
        put(store, "other")
        assert store.facts("k") == told
    with opened(tmp_path) as store:
        assert store.facts("k") == told
        assert store.facts("absent") is None
        assert [one.key for one in store.entries()] == ["k", "other"]
        found = store.get("k")
        assert isinstance(found, Found)
        assert store.facts("k") == found.facts


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 1_000_003])
def test_payloads_of_any_size_come_back(tmp_path: Path, size: int) -> None:
    """Empty and odd sizes too, into a buffer of the caller's where it is long enough."""
    with opened(tmp_path) as store:
        put(store, "k", payload("x", size))
        assert got(store, "k") == payload("x", size)
        buffer = bytearray(size + 7)
        found = store.get("k", buffer)
        assert isinstance(found, Found)
        assert bytes(buffer[:size]) == payload("x", size)
        assert len(found.payload) == size
        short = bytearray(max(0, size - 1))
        assert isinstance(found := store.get("k", short), Found)
        assert bytes(found.payload) == payload("x", size)


def test_the_last_put_under_a_key_counts(tmp_path: Path) -> None:
    """One file a key is left, also where the earlier one was larger."""
    with opened(tmp_path) as store:
        put(store, "k", payload("first", 3000))
        put(store, "k", payload("second", 10))
        assert got(store, "k") == payload("second", 10)
        assert len(files_of(tmp_path)) == 1
        assert store.sizes().bytes == files_of(tmp_path)[0].stat().st_size
    with opened(tmp_path) as store:
        assert got(store, "k") == payload("second", 10)


def test_what_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    """Not after a restart, and not when the catalogue is made anew of the files."""
    with opened(tmp_path) as store:
        put(store, "k")
        put(store, "other")
        assert store.delete("k") == Deleted("k")
        assert store.delete("k") == Refused("k", "missing", "no segment has this key")
        assert got(store, "k") == "missing"
    (tmp_path / "catalogue.sqlite").unlink()
    with opened(tmp_path) as store:
        assert store.opened.rebuilt
        assert got(store, "k") == "missing"
        assert got(store, "other") == payload("other")


def test_entries_are_told_by_group_in_the_order_of_use(tmp_path: Path) -> None:
    """A segment that was got moves to the end; the order outlives a restart."""
    bound = bound_to("windowed")
    options = {"meaning": Meaning(bound)}
    with opened(tmp_path, **options) as store:
        for key, group in (("a", "kv"), ("b", "inputs"), ("c", "kv"), ("d", "kv")):
            assert isinstance(store.put(key, group, {}, b"bytes"), Receipt)
        store.get("a")
        assert [one.key for one in store.entries("kv")] == ["c", "d", "a"]
    with opened(tmp_path, **options) as store:
        assert [one.key for one in store.entries()] == ["b", "c", "d", "a"]
        assert [one.key for one in store.entries("inputs")] == ["b"]
        assert "c" in store
        assert "e" not in store


def size_of_one() -> int:
    """Bytes of a file with a payload of 1,000 bytes and the shortest key."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as store:
        return put(store, "0").bytes


def test_the_longest_unused_leaves_first_and_no_pinned_one(tmp_path: Path) -> None:
    """Receipts name who left; where pins leave too little room, nothing leaves and nothing is stored."""
    one = size_of_one()
    with opened(tmp_path, capacity=3 * one) as store:
        for key in "abc":
            put(store, key)
        store.get("a")
        assert store.pin("b")
        assert put(store, "d").evicted == ("c",)
        assert store.pin("a")
        assert store.pin("d")
        refused = store.put("e", GROUP, facts(), payload("e"))
        assert isinstance(refused, NotStored)
        assert (refused.reason, refused.evicted) == ("pinned", ())
        assert store.sizes() == Sizes(3, 3 * one, 3 * one, 3, 0)
        kept = store.delete("a")
        assert isinstance(kept, Refused)
        assert kept.reason == "pinned"
        assert isinstance(store.put("a", GROUP, facts(), b""), NotStored)
        store.unpin("d")
        assert put(store, "e").evicted == ("d",)
        with pytest.raises(InternalError):
            store.unpin("d")
        assert not store.pin("d")


def test_a_smaller_capacity_is_met_at_the_start(tmp_path: Path) -> None:
    """The longest unused leave; what is larger than the capacity is never stored."""
    one = size_of_one()
    with opened(tmp_path) as store:
        for key in "abc":
            put(store, key)
    with opened(tmp_path, capacity=2 * one) as store:
        assert store.opened.evicted == ("a",)
        answer = store.put("d", GROUP, facts(), payload("d", 30_000))
        assert isinstance(answer, NotStored)
        assert (answer.reason, answer.evicted) == ("too_large", ())
        assert [entry.key for entry in store.entries()] == ["b", "c"]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "get", "delete", "pin", "unpin", "reopen"]), st.sampled_from("abcdef")),
        max_size=25,
    )
)
def test_any_order_of_calls_leaves_what_a_plain_list_says(steps: list[tuple[str, str]]) -> None:
    """A list in the order of use, cut at the capacity, tells the same keys in the same order."""
    # Labels count the files that were written, so later ones may be a digit longer.
    three = 3 * size_of_one() + 10
    with tempfile.TemporaryDirectory() as folder:
        store = opened(Path(folder), capacity=three)
        plain: list[str] = []
        pins: list[str] = []
        for what, key in steps:
            if what == "put":
                rest = [held for held in plain if held != key]
                free = [held for held in rest if held not in pins]
                leaving = free[: max(0, len(rest) - 2)]
                answer = store.put(key, GROUP, facts(), payload(key))
                if key in pins or len(rest) - len(leaving) > 2:
                    assert isinstance(answer, NotStored)
                else:
                    assert isinstance(answer, Receipt)
                    assert answer.evicted == tuple(leaving)
                    plain = [held for held in rest if held not in leaving] + [key]
            elif what == "get":
                assert got(store, key) == (payload(key) if key in plain else "missing")
                plain = [held for held in plain if held != key] + [key] * (key in plain)
            elif what == "delete":
                gone = key in plain and key not in pins
                assert isinstance(store.delete(key), Deleted) == gone
                plain = [held for held in plain if held != key or not gone]
            elif what == "pin":
                assert store.pin(key) == (key in plain)
                pins += [key] * (key in plain)
            elif what == "unpin" and key in pins:
                store.unpin(key)
                pins.remove(key)
            elif what == "reopen":
                store.close()
                store, pins = opened(Path(folder), capacity=three), []
                assert store.opened == Opened()
            assert [entry.key for entry in store.entries()] == plain
            store.check_integrity()
        store.close()


@pytest.mark.parametrize("damage", ["gone", "short", "row"])
def test_a_folder_that_somebody_else_changed_is_noticed(tmp_path: Path, damage: str) -> None:
    """A file that is gone, one of another size, a row too few."""
    with opened(tmp_path) as store:
        put(store, "k")
        store.check_integrity()
        (path,) = files_of(tmp_path)
        if damage == "gone":
            path.unlink()
        elif damage == "short":
            path.write_bytes(b"")
        else:
            store._keeper.catalogue.apply((), ["k"], {})
        with pytest.raises((InternalError, FileNotFoundError)):
            store.check_integrity()


def test_threads_get_whole_segments_while_others_replace_them(tmp_path: Path) -> None:
    """Whatever the order, a reader sees one of the payloads that were put, or none."""
    allowed = {payload(f"{key}{turn}", 20_000) for key in "ab" for turn in range(20)} | {"missing"}
    wrong: list[object] = []
    with opened(tmp_path) as store:

        def write(key: str) -> None:
            for turn in range(20):
                put(store, key, payload(f"{key}{turn}", 20_000))
                if turn % 5 == 4:
                    store.delete(key)

        def read() -> None:
            for _ in range(100):
                wrong.extend(answer for key in "ab" if (answer := got(store, key)) not in allowed)

        threads = [Thread(target=write, args=(key,)) for key in "ab"] + [Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_signals_do_not_tear_a_segment(tmp_path: Path) -> None:
    """A timer that interrupts system calls all the time changes nothing."""
    count = 0

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        with Store(tmp_path, meaning()) as store:
            for turn in range(5):
                put(store, f"k{turn}", payload(f"k{turn}", 2_000_000))
                assert got(store, f"k{turn}") == payload(f"k{turn}", 2_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert count > 0


def test_one_process_has_a_store_open(tmp_path: Path) -> None:
    """A second opening is refused with the holder's number, and possible after the first is closed."""
    with opened(tmp_path), pytest.raises(StoreLockedError, match="process"):
        opened(tmp_path)
    opened(tmp_path).close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Neither reading nor writing is possible; closing again is."""
    store = opened(tmp_path)
    store.close()
    store.close()
    with pytest.raises(UsageError, match="closed"):
        store.get("k")
    with pytest.raises(UsageError, match="closed"):
        store.facts("k")
    with pytest.raises(UsageError, match="closed"):
        put(store, "k")


@pytest.mark.parametrize(
    ("key", "group", "changes", "content"),
    [
        ("", GROUP, {}, b""),
        ("k" * 1025, GROUP, {}, b""),
        ("\ud800", GROUP, {}, b""),
        ("k", "nowhere", {}, b""),
        ("k", GROUP, {"colour": "red"}, b""),
        ("k", GROUP, {"form": "melted"}, b""),
        ("k", GROUP, {"end": -1}, b""),
        ("k", GROUP, {"end": True}, b""),
        ("k", GROUP, {"weights": 10**5000}, b""),
        ("k", GROUP, {}, memoryview(b"abcdef")[::2]),
        ("k", GROUP, {}, "text"),
    ],
)
def test_what_can_never_be_stored_is_an_error(
    tmp_path: Path, key: str, group: str, changes: dict[str, object], content: bytes
) -> None:
    """Keys, groups, facts and payloads of the wrong kind are refused before anything is written."""
    with opened(tmp_path) as store:
        with pytest.raises(UsageError):
            store.put(key, group, {**facts(), **changes}, content)  # type: ignore[dict-item]
        with pytest.raises(InputTooLargeError):
            store.put("k", GROUP, facts(weights="w" * (1 << 20)), b"")
        with pytest.raises(UsageError):
            store.get("k", memoryview(b"fixed"))  # a buffer that cannot be written
        assert files_of(tmp_path) == []


@pytest.mark.parametrize("salt", [b"very-secret", 7.25])
def test_messages_show_no_identity(tmp_path: Path, salt: object) -> None:
    """A salt of a wrong type is told by its type, a key by its length."""
    with opened(tmp_path) as store:
        with pytest.raises(UsageError) as refused:
            store.put("k", GROUP, facts(salt=salt), b"")  # type: ignore[arg-type]
        assert type(salt).__name__ in str(refused.value)
        assert "secret" not in str(refused.value)
        assert "7.25" not in str(refused.value)
        with pytest.raises(UsageError) as refused:
            store.put("very-secret\n", GROUP, facts(), b"")
        assert "secret" not in str(refused.value)


def test_unusable_settings_are_errors(tmp_path: Path) -> None:
    """A negative capacity, a short secret, a folder without a parent, a file in the folder's place."""
    with pytest.raises(UsageError):
        opened(tmp_path, capacity=-1)
    with pytest.raises(UsageError):
        opened(tmp_path, secret=b"short")
    with pytest.raises(StoreError):
        opened(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        opened(tmp_path / "file")
