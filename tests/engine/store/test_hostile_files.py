"""Files that others have changed are refused with the reason, set aside, and never served."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.store import Files, Store
from hitproof.engine.store.answers import Unusable
from hitproof.engine.store.label import Label, Stored
from hitproof.engine.store.layout import Layout
from hitproof.engine.store.reading import Reader
from tests.engine.store.cases import facts, files_of, got, meaning, opened, payload, put

SECRET, OTHER = b"s" * 32, b"t" * 16


def changed(root: Path, change: Callable[[bytes], bytes]) -> None:
    """Changes the only segment's file."""
    (path,) = files_of(root)
    path.write_bytes(change(path.read_bytes()))


def relabelled(file: bytes, change: Callable[[bytes], bytes], schema: int = 2) -> bytes:
    """A file with another label, sealed as whoever can write the folder could seal it."""
    length = struct.unpack_from("<I", file, 12)[0]
    label = change(file[56 : 56 + length])
    size = struct.unpack_from("<Q", file, 16)[0]
    sealed = file[:8] + struct.pack("<HHIQ", schema, 0, len(label), size) + file[24:56] + label
    return sealed + hashlib.blake2b(sealed, digest_size=32).digest() + file[len(file) - size :]


def with_key(key: str) -> Callable[[bytes], bytes]:
    """Another key in the label."""
    return lambda label: canonical({**json.loads(label), "key": key})


def canonical(value: object) -> bytes:
    """The one way to write a label."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "torn"),
    "cut within the preamble": (lambda file: file[:20], "torn"),
    "cut within the label": (lambda file: file[:100], "torn"),
    "last byte gone": (lambda file: file[:-1], "torn"),
    "one byte more": (lambda file: file + b"\0", "torn"),
    "half of it zeros": (lambda file: file[: len(file) // 2] + bytes(len(file) - len(file) // 2), "wrong_fingerprint"),
    "another magic": (lambda file: b"\0" + file[1:], "torn"),
    "a bit of the payload": (lambda file: file[:-1] + bytes([file[-1] ^ 1]), "wrong_fingerprint"),
    "a bit of the payload's digest": (lambda file: file[:30] + bytes([file[30] ^ 1]) + file[31:], "wrong_fingerprint"),
    "a bit of the label": (lambda file: file[:90] + bytes([file[90] ^ 1]) + file[91:], "wrong_fingerprint"),
    "a huge label": (lambda file: file[:12] + b"\xff" * 4 + file[16:], "torn"),
    "a huge payload": (lambda file: file[:16] + b"\xff" * 8 + file[24:], "torn"),
    "an unknown code": (lambda file: file[:10] + b"\x07" + file[11:], "torn"),
    "another key's segment": (lambda file: relabelled(file, with_key("other")), "wrong_fingerprint"),
    "a later schema": (lambda file: relabelled(file, bytes, schema=3), "other_schema"),
    "a label that is no JSON": (lambda file: relabelled(file, lambda _: b"{"), "torn"),
    "a label that is a list": (lambda file: relabelled(file, lambda _: b"[]"), "torn"),
    "a deep label": (lambda file: relabelled(file, lambda _: b"[" * 500_000), "torn"),
    "a label with spaces": (lambda file: relabelled(file, lambda label: label.replace(b",", b", ", 1)), "torn"),
    "a key twice in the label": (lambda file: relabelled(file, lambda label: b'{"key":"k",' + label[1:]), "torn"),
    "a number of 5,000 digits": (
        lambda file: relabelled(file, lambda label: label.replace(b'"sequence":1', b'"sequence":' + b"9" * 5000)),
        "torn",
    ),
    "a sequence that is true": (
        lambda file: relabelled(file, lambda label: label.replace(b'"sequence":1', b'"sequence":true')),
        "torn",
    ),
    "facts that are a list": (
        lambda file: relabelled(file, lambda label: canonical({**json.loads(label), "facts": []})),
        "torn",
    ),
    "a field too many": (
        lambda file: relabelled(file, lambda label: canonical({**json.loads(label), "hidden": 1})),
        "torn",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_changed_file_is_refused(tmp_path: Path, name: str, known: bool) -> None:
    """By `get` where it was changed while the store was open, and by a start that does not know it."""
    change, reason = HOSTILE[name]
    with opened(tmp_path) as store:
        put(store, "k")
        if known:
            changed(tmp_path, change)
            assert got(store, "k") == reason
            if reason != "other_schema":
                assert files_of(tmp_path) == []
                assert store.sizes().quarantined == 1
                assert got(store, "k") == "missing"
                put(store, "k")
                assert got(store, "k") == payload("k")
            return
    changed(tmp_path, change)
    (tmp_path / "catalogue.sqlite").unlink()
    with opened(tmp_path) as store:
        assert [why for _, why in store.opened.quarantined] == [reason]
        assert got(store, "k") == "missing"
        assert files_of(tmp_path) == []


class OneFile(Files):
    """A disk whose every file has the same bytes."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def open(self, path: Path) -> tuple[int, int]:
        """At the beginning."""
        self.at = 0
        return -1, len(self.content)

    def read(self, fd: int, into: memoryview) -> int:
        """As many bytes as there are."""
        part = self.content[self.at : self.at + len(into)]
        into[: len(part)] = part
        self.at += len(part)
        return len(part)

    def close(self, fd: int) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize("secret", [None, SECRET], ids=["sealed", "authenticated"])
def test_any_changed_byte_is_noticed(tmp_path: Path, secret: bytes | None) -> None:
    """Each byte is flipped in turn, and each beginning is tried: none can be read, nor facts of a changed label."""
    with opened(tmp_path, secret=secret) as store:
        put(store, "k", b"payload", **dict.fromkeys(facts()))
        (entry,) = store.entries()
    disk = OneFile((tmp_path / "segments" / entry.name).read_bytes())
    reader = Reader(disk, Layout(tmp_path), meaning(), secret)
    whole = disk.content
    assert bytes(reader.read("k", reader.open(entry), None).payload) == b"payload"
    for i in range(len(whole)):
        for disk.content in (whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :], whole[:i]):
            with pytest.raises(Unusable):
                reader.read("k", reader.open(entry), None)
            if i < len(whole) - len(b"payload") or len(disk.content) < len(whole):
                with pytest.raises(Unusable):
                    reader.facts("k", reader.open(entry))
            else:
                assert reader.facts("k", reader.open(entry)) == dict.fromkeys(facts())


def test_a_file_under_another_name_is_not_taken_in(tmp_path: Path) -> None:
    """A whole file that was copied to another key's place, or to a later sequence, is set aside at the start."""
    with opened(tmp_path) as store:
        name = put(store, "k").name
        other = put(store, "other").name
    path = tmp_path / "segments" / name
    (tmp_path / "segments" / (other[:-5] + "9.seg")).write_bytes(path.read_bytes())
    path.with_name(path.name[:-5] + "9.seg").write_bytes(path.read_bytes())
    with opened(tmp_path) as store:
        assert [why for _, why in store.opened.quarantined] == ["wrong_fingerprint"] * 2
        assert (got(store, "k"), got(store, "other")) == (payload("k"), payload("other"))


def test_what_is_no_segment_is_set_aside_and_not_removed(tmp_path: Path) -> None:
    """Files, links, folders and pipes that are not of the store end in quarantine, whatever their names."""
    with opened(tmp_path / "s") as store:
        name = put(store, "k").name
    folder = tmp_path / "s" / "segments" / "ab" / "cd"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("notes")
    (folder / f"{'abcd' + '0' * 60}-{1:016x}.seg").symlink_to(tmp_path / "s" / "segments" / name)
    (folder / f"{'abcd' + '1' * 60}-{1:016x}.seg").mkdir()
    os.mkfifo(folder / f"{'abcd' + '2' * 60}-{1:016x}.seg")
    (folder / f"{'abcd' + '3' * 60}-{2**63:016x}.seg").write_text("a number beyond all")
    (folder / f"{'ffff' + '3' * 60}-{1:016x}.seg").write_text("in another's folder")
    (tmp_path / "s" / "segments" / "zz").mkdir()
    with opened(tmp_path / "s") as store:
        assert [why for _, why in store.opened.quarantined] == ["unknown"] * 7
        assert store.sizes().quarantined == 7
        assert got(store, "k") == payload("k")
    assert (tmp_path / "s" / "quarantine" / "notes.txt.unknown.0").read_text() == "notes"


def test_a_segment_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """A link to a whole file elsewhere is refused."""
    with opened(tmp_path / "s") as store:
        put(store, "k")
        (path,) = files_of(tmp_path / "s")
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        assert got(store, "k") == "unreadable"


def test_a_file_that_vanished_is_missing(tmp_path: Path) -> None:
    """Found out by `get` and by a start; the key can be put again."""
    with opened(tmp_path) as store:
        put(store, "k")
        put(store, "l")
        for path in files_of(tmp_path):
            path.unlink()
        assert got(store, "k") == "missing"
        assert [entry.key for entry in store.entries()] == ["l"]
    with opened(tmp_path) as store:
        assert store.opened.missing == ("l",)
        put(store, "l")
        assert got(store, "l") == payload("l")


def test_a_scrub_finds_what_nobody_asked_for(tmp_path: Path) -> None:
    """Every torn segment is told and set aside; the order of use stays."""
    with opened(tmp_path) as store:
        for key in "abc":
            put(store, key)
        path = tmp_path / "segments" / store.entries()[1].name
        path.write_bytes(path.read_bytes()[:-1])
        assert [(one.key, one.reason) for one in store.scrub()] == [("b", "torn")]
        assert store.scrub() == ()
        assert [entry.key for entry in store.entries()] == ["a", "c"]


@pytest.mark.parametrize(
    ("wrote", "reads", "answer"),
    [
        (SECRET, SECRET, None),
        (None, SECRET, "unauthenticated"),
        (OTHER, SECRET, "unauthenticated"),
        (SECRET, None, None),
    ],
)
@pytest.mark.parametrize("catalogue", [True, False])
def test_where_a_key_is_set_its_code_is_needed(
    tmp_path: Path, wrote: bytes | None, reads: bytes | None, answer: str | None, catalogue: bool
) -> None:
    """No code and another key's code are refused; the files stay, since the key may be the wrong one."""
    with opened(tmp_path, secret=wrote) as store:
        put(store, "k")
    if not catalogue:
        (tmp_path / "catalogue.sqlite").unlink()
    with opened(tmp_path, secret=reads) as store:
        assert got(store, "k") == (answer or payload("k"))
        assert store.facts("k") == (None if answer else facts())
        assert len(files_of(tmp_path)) == 1
    with opened(tmp_path, secret=wrote) as store:
        assert got(store, "k") == payload("k")


def test_a_code_speaks_for_every_byte(tmp_path: Path) -> None:
    """A payload or a label that was changed and sealed anew is refused, with the code left in place or stripped."""
    with opened(tmp_path, secret=SECRET) as store:
        put(store, "k")
        (path,) = files_of(tmp_path)
        whole = path.read_bytes()
        length = struct.unpack_from("<I", whole, 12)[0]
        label, code, content = whole[56 : 56 + length], whole[56 + length + 32 :][:32], whole[56 + length + 64 :]
        for kind, new in ((1, content[:-1] + b"?"), (0, content), (0, content[:-1] + b"?")):
            sealed = whole[:10] + struct.pack("<H", kind) + whole[12:24]
            sealed += hashlib.blake2b(new, digest_size=32).digest() + label
            path.write_bytes(sealed + hashlib.blake2b(sealed, digest_size=32).digest() + code * kind + new)
            assert got(store, "k") == "unauthenticated"


def test_a_secret_is_told_nowhere(tmp_path: Path) -> None:
    """Neither in a file nor in the text of a store."""
    with opened(tmp_path, secret=SECRET) as store:
        put(store, "k")
        assert SECRET.decode() not in repr(store)
    assert not any(SECRET in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.lists(st.integers(), unique=True).map(sorted),
)


@given(st.dictionaries(st.text(), st.builds(Stored, st.text(), _VALUES)), st.text(), st.integers(0, 2**62))
def test_labels_come_back_as_they_were(facts: dict[str, Stored], text: str, sequence: int) -> None:
    """Any facts and texts; values keep their types, so that 1, 1.0 and true stay apart."""
    label = Label(text, text, "kv", text, 1, sequence, facts)
    found = Label.decoded(label.encoded(), 2)
    assert found == label
    assert [type(one.value) for one in found.facts.values()] == [type(facts[name].value) for name in found.facts]


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_labels(text: bytes) -> None:
    """Whatever the bytes, they are a label or they are refused."""
    try:
        Label.decoded(text, 2)
    except Unusable as refused:
        assert refused.reason == "torn"


def test_files_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    """What users wrote can be worked out from rows, so nobody else can read them."""
    with Store(tmp_path / "s", meaning()) as store:
        put(store, "k")
        (path,) = files_of(tmp_path / "s")
        assert path.stat().st_mode & 0o077 == 0
        assert (tmp_path / "s").stat().st_mode & 0o077 == 0
