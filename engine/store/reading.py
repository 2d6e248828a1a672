"""One segment read from its file, and verified to its last byte before anybody sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.engine.store.answers import Entry, Found, Unusable
from hitproof.engine.store.files import Files
from hitproof.engine.store.format import Head, read_head, read_payload
from hitproof.engine.store.layout import Layout
from hitproof.engine.store.meaning import Meaning
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["Reader", "bytes_of"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads segments of one store; `secret` is the key of the authentication code, or None."""

    files: Files
    layout: Layout
    meaning: Meaning
    secret: bytes | None

    def open(self, entry: Entry) -> tuple[int, int]:
        """Opens an entry's file; answers its descriptor and its size. Raises `OSError`."""
        return self.files.open(self.layout.segments / entry.name)

    def read(self, key: str, opened: tuple[int, int], buffer: memoryview | None) -> Found:
        """Reads and verifies a file that was opened, and closes it.

        Args:
            key: The key that was asked for.
            opened: What `open` answered.
            buffer: Where the payload goes, if it is long enough.

        Raises:
            Unusable: It cannot be served.
            OSError: The disk's reason.
        """
        fd, size = opened
        try:
            head = self._head(key, fd, size)
            facts = self.meaning.facts_of(head.label)
            fits = buffer is not None and len(buffer) >= head.payload
            payload = buffer[: head.payload] if buffer is not None and fits else memoryview(bytearray(head.payload))
            read_payload(self.files, fd, head, payload)
        finally:
            self.files.close(fd)
        return Found(key, head.label.group, facts, payload)

    def facts(self, key: str, opened: tuple[int, int]) -> Mapping[str, Value]:
        """The facts that a file tells, its payload unread; closes the file.

        Raises:
            Unusable: The label cannot be served.
            OSError: The disk's reason.
        """
        fd, size = opened
        try:
            return self.meaning.facts_of(self._head(key, fd, size).label)
        finally:
            self.files.close(fd)

    def _head(self, key: str, fd: int, size: int) -> Head:
        head = read_head(self.files, fd, size)
        head.authenticate(self.secret)
        if head.label.key != key:
            raise Unusable("wrong_fingerprint", "the file holds another key's segment")
        return head


def bytes_of(buffer: bytes | bytearray | memoryview) -> memoryview:
    """A buffer as plain bytes.

    Raises:
        UsageError: It is no buffer, or not contiguous.
    """
    try:
        return memoryview(buffer).cast("B")
    except TypeError as error:
        raise UsageError("the bytes cannot be used", got=error, expected="one contiguous buffer") from error
