"""The folder of pages, the settings and the profile, which need no LMCache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hitproof.engine import load
from hitproof.integrations.lmcache import SUPPORTED, check_version
from hitproof.integrations.lmcache.folder import KEPT_REFUSED, PageFolder
from hitproof.integrations.lmcache.model import GROUP, ChunkShape, chunk_profile, layout_digest
from hitproof.integrations.lmcache.settings import read_settings
from hitproof.spec.errors import UsageError

STATED: dict[str, Any] = {"folder": "/pages", "weights": "w", "adapter": "none", "salt": "none"}


def settings(**stated: Any) -> Any:
    """Settings read from an `extra_config` that also has keys of others."""
    return read_settings({"storage_plugin.hitproof.class_name": "x", **{f"hitproof.{n}": v for n, v in stated.items()}})


def test_pages_are_kept_in_parts_and_found_after_a_restart(tmp_path: Path) -> None:
    """What was put is read, whole or its beginning, by this folder object and by the next one."""
    folder = PageFolder(tmp_path, None)
    assert folder.put("one", b"record", memoryview(b"bytes"))
    assert (folder.read("one"), folder.read("one", 3), folder.read("two")) == (b"recordbytes", b"rec", None)
    (tmp_path / "left.tmp").write_bytes(b"half")
    again = PageFolder(tmp_path, None)
    assert again.read("one") == b"recordbytes" and len(again) == 1
    assert not (tmp_path / "left.tmp").exists(), "what a cut left behind is swept"


def test_pages_unused_for_longest_leave_first(tmp_path: Path) -> None:
    """Reading keeps a page; pinned ones stay; what never fits is turned away."""
    folder = PageFolder(tmp_path, 30)
    for name in ("a", "b", "c"):
        assert folder.put(name, bytes(10))
    folder.read("a")
    assert folder.put("d", bytes(10))
    assert [name for name in "abcd" if name in folder] == ["a", "c", "d"]
    assert folder.pin("c") and folder.put("e", bytes(20))
    assert [name for name in "abcde" if name in folder] == ["c", "e"]
    assert not folder.put("f", bytes(31))
    assert folder.pin("e") and not folder.put("g", bytes(5))
    assert folder.unpin("e") and folder.put("g", bytes(5)) and "e" not in folder
    assert not folder.unpin("nobody") and not folder.pin("nobody")


def test_the_order_of_use_outlives_a_restart_by_the_files_times(tmp_path: Path) -> None:
    """After a restart the eldest file leaves first."""
    folder = PageFolder(tmp_path, 30)
    for place, name in enumerate(("young", "old", "middle")):
        folder.put(name, bytes(10))
        os.utime(tmp_path / f"{name}.page", (0, (30, 10, 20)[place]))
    again = PageFolder(tmp_path, 30)
    again.put("new", bytes(10))
    assert "old" not in again and "middle" in again


def test_bad_pages_are_set_aside_and_only_the_last_are_kept(tmp_path: Path) -> None:
    """A refused page is found no more; its file is kept for a while."""
    folder = PageFolder(tmp_path, None)
    for number in range(KEPT_REFUSED + 3):
        folder.put(str(number), b"x")
        folder.refuse(str(number))
    assert len(folder) == 0
    assert len(list((tmp_path / "refused").iterdir())) == KEPT_REFUSED
    folder.refuse("nobody")
    folder.put("gone", b"x")
    (tmp_path / "gone.page").unlink()
    assert folder.read("gone") is None and "gone" not in folder


def test_a_disk_that_refuses_is_an_answer(tmp_path: Path) -> None:
    """A write that fails keeps nothing, and a folder that cannot be made is an error with its reason."""
    folder = PageFolder(tmp_path / "pages", None)
    (tmp_path / "pages" / "refused").rmdir()
    (tmp_path / "pages").rmdir()
    assert not folder.put("one", b"x") and "one" not in folder
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError):
        PageFolder(tmp_path / "file", None)


def test_settings_are_read(tmp_path: Path) -> None:
    """Facts, tags, capacity and secret are what was stated."""
    (tmp_path / "key").write_bytes(b"secret\n")
    given = settings(**STATED, capacity_gb=0.5, secret_file=str(tmp_path / "key"), tags={"adapter": "lora"})
    assert (given.folder, given.capacity, given.secret) == (Path("/pages"), 2**29, b"secret")
    assert given.identity({"lora": "b", "other": "c"}) == {"adapter": "b"} and given.identity({}) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"folder": None}, "folder"),
        ({"folder": 3}, "folder"),
        ({"weights": None}, "weights"),
        ({"adapter": None}, "adapter"),
        ({"salt": 7}, "no text"),
        ({"lora": "x"}, "no such setting"),
        ({"tags": {"lora": "x"}}, "tags"),
        ({"tags": "adapter"}, "tags"),
        ({"capacity_gb": 0}, "capacity"),
        ({"capacity_gb": "much"}, "capacity"),
        ({"secret_file": "/nowhere/at/all"}, "secret"),
        ({"secret_file": os.devnull}, "secret"),
    ],
)
def test_wrong_settings_are_told(change: dict[str, Any], message: str) -> None:
    """Each missing, unknown or impossible setting is an error that names it."""
    stated = {name: value for name, value in {**STATED, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        settings(**stated)


def test_a_chunk_is_full_keys_and_values_of_all_layers() -> None:
    """The profile has LMCache's own bytes a token, and binds to the rules; one-byte formats have scales."""
    shape = ChunkShape(((2, 4, 1, 32), (1, 2, 1, 64)), (2, 1), 6)
    profile = chunk_profile("org/Some Model-7B", shape)
    assert profile.profile == "org-some-model-7b"
    group = load(profile).bound.group(GROUP)
    assert group.constants["row_bytes"] == 2 * 4 * 32 * 2 + 2 * 64 and group.constants["scaled"] is True
    assert chunk_profile("7B", ChunkShape(((2, 1, 1, 8),), (4,), 1)).groups[0].constants["scaled"] is False
    digests = {layout_digest("m", shape, mla) for mla in (False, True)} | {layout_digest("n", shape, False)}
    assert len(digests) == 3


def test_unknown_versions_are_refused_at_load() -> None:
    """Only versions whose interface was read are served, and the error says which."""
    assert check_version(SUPPORTED[0]) == SUPPORTED[0]
    with pytest.raises(UsageError, match="not supported"):
        check_version("0.6.0")
