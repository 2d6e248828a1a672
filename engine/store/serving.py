"""What a store holds, read by key; what is torn is set aside, and what is not served has its reason."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock

from hitproof.engine.store.answers import Entry, Found, Refused, Unusable
from hitproof.engine.store.index import Index
from hitproof.engine.store.keeper import Keeper
from hitproof.engine.store.reading import Reader
from hitproof.spec.facts import Value

__all__ = ["Serving"]

_BROKEN = ("missing", "torn", "wrong_fingerprint")
"""Refusals after which a segment is no longer held."""


class Serving:
    """Reads segments of one store; several threads may call it. It changes what is held under the lock of writers."""

    def __init__(self, reader: Reader, index: Index, keeper: Keeper, writing: RLock) -> None:
        self._reader, self._index, self._keeper, self._writing = reader, index, keeper, writing

    def read(self, key: str, buffer: memoryview | None) -> Found | Refused:
        """A segment whose every byte was verified, or why there is none; the order of use stays.

        Args:
            key: Its key.
            buffer: Where the payload goes, if it is long enough.
        """
        entry: Entry | None = None
        try:
            # Nobody removes the file between look-up and opening; once it is open, it can be read to its end.
            with self._index.lock:
                entry = self._index.get(key)
                if entry is None:
                    return Refused(key, "missing", "no segment has this key")
                opened = self._reader.open(entry)
            return self._reader.read(key, opened, buffer)
        except FileNotFoundError as error:
            return self._refuse(entry, Refused(key, "missing", f"its file is gone: {error}"))
        except OSError as error:
            return Refused(key, "unreadable", str(error))
        except Unusable as error:
            return self._refuse(entry, Refused(key, error.reason, error.detail))

    def facts(self, key: str) -> Mapping[str, Value] | None:
        """A segment's facts, its payload unread, or None; nothing is set aside."""
        try:
            with self._index.lock:
                entry = self._index.get(key)
                opened = None if entry is None else self._reader.open(entry)
            return None if opened is None else self._reader.facts(key, opened)
        except (OSError, Unusable):
            return None

    def _refuse(self, entry: Entry | None, answer: Refused) -> Refused:
        """Sets a torn file aside, unless another has taken its place meanwhile."""
        if answer.reason not in _BROKEN:
            return answer
        with self._writing:
            if entry is None or self._index.get(answer.key) != entry:
                return answer
            try:
                self._keeper.set_aside(entry, answer.reason)
            except OSError:
                # It stays where it is, and is refused again.
                return answer
            return answer
