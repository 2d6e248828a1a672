"""Stores of version 1 are brought to version 2; a damaged catalogue is made anew, a newer one is left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hitproof.engine.store import Found, Migration, Opened
from hitproof.engine.store.meaning import Meaning
from hitproof.spec.errors import StoreError
from tests.engine.state_cases import bound_to
from tests.engine.store.cases import facts, files_of, got, opened, payload, put
from tests.engine.store.old_files import name_1, schema_1, write_schema_1

HELD = {"a": payload("a", 900), "b": b"", "c": payload("c", 70_000)}


@pytest.mark.parametrize("catalogue", [True, False])
def test_a_store_of_version_1_is_upgraded_once(tmp_path: Path, catalogue: bool) -> None:
    """Every file is rewritten in schema 2 with its facts and payload; the next start has nothing to do."""
    write_schema_1(tmp_path, HELD, catalogue=catalogue)
    with opened(tmp_path) as store:
        assert sorted(store.opened.upgraded) == sorted(HELD)
        assert store.opened.quarantined == ()
        for key, content in HELD.items():
            found = store.get(key)
            assert isinstance(found, Found)
            assert (bytes(found.payload), found.facts) == (content, facts())
    assert len(files_of(tmp_path)) == len(HELD)
    assert all(path.read_bytes()[8] == 2 for path in files_of(tmp_path))
    with opened(tmp_path) as store:
        assert store.opened.upgraded == ()
        assert [got(store, key) for key in HELD] == list(HELD.values())
        put(store, "a", b"new")


def test_the_catalogue_of_version_1_gains_its_columns(tmp_path: Path) -> None:
    """The tables are altered in place, and keep their rows."""
    write_schema_1(tmp_path, HELD)
    opened(tmp_path).close()
    database = sqlite3.connect(tmp_path / "catalogue.sqlite")
    assert database.execute("PRAGMA user_version").fetchone() == (2,)
    columns = [row[1] for row in database.execute("PRAGMA table_info(segments)")]
    assert columns == ["key", "grp", "file", "bytes", "sequence", "used"]
    assert {row[0] for row in database.execute("SELECT key FROM segments")} == set(HELD)
    database.close()


def test_files_without_a_code_are_not_given_one(tmp_path: Path) -> None:
    """With a key set, files of schema 1 stay as they are and are refused: anybody could have written them."""
    write_schema_1(tmp_path, HELD)
    with opened(tmp_path, secret=b"s" * 16) as store:
        assert store.opened.upgraded == ()
        assert {got(store, key) for key in HELD} == {"other_schema"}
        assert len(store.scrub()) == len(HELD)
        put(store, "a", b"new")
        assert got(store, "a") == b"new"
    with opened(tmp_path, secret=b"s" * 16) as store:
        assert (got(store, "a"), got(store, "b")) == (b"new", "other_schema")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: file[:-1], "torn"),
        (lambda file: file[:40], "torn"),
        (lambda file: file[:-1] + bytes([file[-1] ^ 1]), "wrong_fingerprint"),
        (lambda file: file[:50] + bytes([file[50] ^ 1]) + file[51:], "wrong_fingerprint"),
        (lambda file: file[:8] + b"\3" + file[9:], "other_schema"),
        (lambda _: schema_1("a", b"", sequence=7), "torn"),
        (lambda _: schema_1("other", b""), "wrong_fingerprint"),
    ],
    ids=["short", "very-short", "payload", "label", "schema", "a-sequence", "another-key"],
)
def test_a_broken_file_of_version_1_is_set_aside(tmp_path: Path, change: Callable[[bytes], bytes], reason: str) -> None:
    """Nothing torn is rewritten as whole."""
    write_schema_1(tmp_path, {"a": HELD["a"]})
    path = tmp_path / "segments" / name_1("a")
    path.write_bytes(change(path.read_bytes()))
    with opened(tmp_path) as store:
        assert [why for _, why in store.opened.quarantined] == [reason]
        assert got(store, "a") == "missing"
        assert store.opened.missing == ("a",)


def test_an_upgrade_keeps_the_rulebook_that_was_meant(tmp_path: Path) -> None:
    """What was stored under another rulebook still was, and needs its migration."""
    write_schema_1(tmp_path, {})
    path = tmp_path / "segments" / name_1("a")
    path.parent.mkdir(parents=True)
    path.write_bytes(schema_1("a", b"payload", rulebook="0" * 64))
    with opened(tmp_path) as store:
        assert store.opened.upgraded == ("a",)
        assert got(store, "a") == "other_rulebook"
    declared = Meaning(bound_to("homogeneous"), [Migration("0" * 64, "only prices were changed")])
    with opened(tmp_path, meaning=declared) as store:
        assert got(store, "a") == b"payload"


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"not a database" * 100),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "empty": lambda path: path.write_bytes(b""),
    "another table": lambda path: _run(path, "DROP TABLE segments", "CREATE TABLE segments (key TEXT)"),
    "a wrong type": lambda path: _run(path, "UPDATE segments SET bytes = 'many'"),
    "a number out of range": lambda path: _run(path, f"UPDATE segments SET used = {2**63 - 1}"),
    "no version": lambda path: _run(path, "PRAGMA user_version = 0"),
    "a foreign file": lambda path: _run(path, "UPDATE segments SET file = '../../../etc/passwd'"),
    "a foreign key": lambda path: _run(path, "UPDATE segments SET key = 'other' || key"),
    "a wrong size": lambda path: _run(path, "UPDATE segments SET bytes = 1"),
    "no rows": lambda path: _run(path, "DELETE FROM segments"),
    "rows without files": lambda path: _run(path, "INSERT INTO segments VALUES ('x', 'kv', 'x', 1, 1, 1)"),
}


def _run(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_damage_of_the_catalogue_loses_a_segment(tmp_path: Path, damage: str) -> None:
    """Files are the truth: the catalogue is made anew, or mended, and the next start finds it in order."""
    with opened(tmp_path) as store:
        for key in HELD:
            put(store, key, HELD[key])
        size = store.sizes().bytes
    DAMAGES[damage](tmp_path / "catalogue.sqlite")
    for _ in range(2):
        with opened(tmp_path) as store:
            assert {entry.key for entry in store.entries()} == set(HELD)
            assert [got(store, key) for key in HELD] == list(HELD.values())
            assert store.sizes().bytes == size
            assert store.scrub() == ()
    assert store.opened == Opened()


def test_a_damaged_catalogue_is_kept(tmp_path: Path) -> None:
    """It is set aside and not removed."""
    with opened(tmp_path) as store:
        put(store, "a")
    DAMAGES["no database"](tmp_path / "catalogue.sqlite")
    with opened(tmp_path) as store:
        assert store.opened.rebuilt
    assert (tmp_path / "quarantine" / "catalogue.sqlite.damaged.0").read_bytes().startswith(b"not a database")


def test_the_log_of_a_damaged_catalogue_leaves_before_it(tmp_path: Path) -> None:
    """A log that stays beside a new catalogue would be taken for the new one's."""
    with opened(tmp_path) as store:
        put(store, "a")
    # As long as another connection is open, SQLite does not remove the log.
    other = sqlite3.connect(tmp_path / "catalogue.sqlite", isolation_level=None)
    other.execute("PRAGMA user_version = 0")
    with opened(tmp_path) as store:
        assert store.opened.rebuilt
        assert got(store, "a") == payload("a")
    other.close()
    kept = sorted(path.name for path in (tmp_path / "quarantine").iterdir())
    assert kept == [f"catalogue.sqlite{part}.damaged.0" for part in ("-shm", "-wal", "")]


def test_a_newer_catalogue_is_left_alone(tmp_path: Path) -> None:
    """A store of a later version is not opened, and nothing in it is changed."""
    with opened(tmp_path) as store:
        put(store, "a")
    _run(tmp_path / "catalogue.sqlite", "PRAGMA user_version = 3")
    before = {path: path.read_bytes() for path in files_of(tmp_path)}
    with pytest.raises(StoreError, match="newer"):
        opened(tmp_path)
    assert {path: path.read_bytes() for path in files_of(tmp_path)} == before


def test_the_catalogue_is_waited_for(tmp_path: Path) -> None:
    """A write-ahead log that is synchronised with each transaction."""
    with opened(tmp_path) as store:
        database = store._keeper.catalogue._database
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)
