"""Which adapter a request really uses: the digest of its files when they were loaded, never its name or path."""

from __future__ import annotations

import hashlib
from functools import wraps
from pathlib import Path
from typing import Any

__all__ = ["NO_ADAPTER", "digest_of_loaded", "files_digest", "note_loads"]

NO_ADAPTER = "none"
_MARK = "hitproof_digest"
_STATS: dict[str, tuple[tuple[tuple[str, int, int], ...], str]] = {}
"""By folder, what its files looked like when they were read, and their digest."""


def files_digest(folder: str) -> str | None:
    """A digest of the adapter's files by name and content; None where there are none. Read anew when they change.

    Args:
        folder: Where the adapter lies on this machine.
    """
    files = sorted(path for path in Path(folder).glob("*") if path.is_file()) if Path(folder).is_dir() else []
    if not files:
        return None
    stats = tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    known = _STATS.get(folder)
    if known is not None and known[0] == stats:
        return known[1]
    digest = hashlib.sha256()
    for path in files:
        content = hashlib.sha256()
        with path.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                content.update(chunk)
        digest.update(f"{path.name} {content.hexdigest()}\n".encode())
    _STATS[folder] = stats, digest.hexdigest()
    return digest.hexdigest()


def note_loads(manager: type[Any]) -> None:
    """Have a worker's adapter manager note the digest of the files with every adapter that it loads.

    Files that change while they are read leave no digest. Changes the class, once.
    """
    load = manager._load_adapter
    if getattr(load, _MARK, False):
        return

    @wraps(load)
    def noting(self: Any, request: Any) -> Any:
        before = files_digest(_absolute(request.lora_path))
        adapter = load(self, request)
        after = files_digest(_absolute(request.lora_path))
        setattr(adapter, _MARK, before if before == after else None)
        return adapter

    setattr(noting, _MARK, True)
    manager._load_adapter = noting


def digest_of_loaded(manager: Any, adapter: int) -> str | None:
    """The digest that was noted when the adapter of this number was loaded; None where it is not loaded."""
    loaded = manager._adapter_manager.list_adapters().get(adapter)
    return None if loaded is None else getattr(loaded, _MARK, None)


def _absolute(path: str) -> str:
    from vllm.lora.utils import get_adapter_absolute_path

    folder: str = get_adapter_absolute_path(path)
    return folder
