"""What tests of the disk tier share: a vocabulary, facts, payloads, and a disk that does not wait."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from hitproof.engine.store import Files, Found, Meaning, Receipt, Store
from hitproof.spec.facts import Value
from tests.engine.state_cases import bound_to, build_of

GROUP = "kv"


class Hasty(Files):
    """A disk that is not waited for: tests that lose no power need no `fsync`."""

    def sync(self, fd: int) -> None:
        """Does nothing."""

    def sync_folder(self, path: Path) -> None:
        """Does nothing."""


@cache
def meaning() -> Meaning:
    """The shipped rulebook's vocabulary, of a model with one group."""
    return Meaning(bound_to("homogeneous"))


@cache
def _facts() -> dict[str, Value]:
    values: dict[str, Value] = build_of("homogeneous", 1025).segment(GROUP).as_dict()
    return {name: value for name, value in values.items() if name in bound_to("homogeneous").group(GROUP).facts}


def facts(**changes: Value) -> dict[str, Value]:
    """A healthy segment's facts, some of them changed."""
    return {**_facts(), **changes}


def payload(seed: str, size: int = 1000) -> bytes:
    """Bytes that belong to a seed."""
    return hashlib.shake_256(seed.encode()).digest(size)


def opened(root: Path, **options: Any) -> Store:
    """A store on a disk that is not waited for."""
    return Store(root, options.pop("meaning", None) or meaning(), **{"files": Hasty(), **options})


def put(store: Store, key: str, content: bytes | None = None, **changes: Value) -> Receipt:
    """Puts a segment whose payload belongs to its key, and wants a receipt."""
    answer = store.put(key, GROUP, facts(**changes), payload(key) if content is None else content)
    assert isinstance(answer, Receipt), answer
    return answer


def got(store: Store, key: str) -> bytes | str:
    """The payload, or the reason why there is none."""
    answer = store.get(key)
    return bytes(answer.payload) if isinstance(answer, Found) else answer.reason


def files_of(root: Path) -> list[Path]:
    """All segment files below a store's folder."""
    return sorted(path for path in (root / "segments").rglob("*") if path.is_file())
