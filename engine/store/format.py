"""The file of a segment: preamble, label, seal, authentication code, payload, as `docs/store.md` lays them out."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from hitproof.engine.store.answers import Unusable
from hitproof.engine.store.files import Files
from hitproof.engine.store.label import LARGEST_LABEL, Label

__all__ = ["CODE", "Head", "MAGIC", "SCHEMA", "START", "head_of", "read_head", "read_payload"]

MAGIC = b"HPSEG\r\n\x1a"
SCHEMA = 2
START = struct.Struct("<8sHHIQ")
"""What every schema begins with: magic, schema, kind of code, length of the label, length of the payload."""
CODE = 32
"""Bytes of every digest and code."""
_PERSON = b"hitproof-segment"


@dataclass(frozen=True, slots=True)
class Head:
    """Everything of a file but its payload.

    Args:
        sealed: The bytes that the seal and the code are of.
        code: The authentication code; None where there is none.
        at: Where the payload begins.
        payload: Length of the payload.
        digest: Digest of the payload.
    """

    label: Label
    sealed: bytes
    code: bytes | None
    at: int
    payload: int
    digest: bytes

    def authenticate(self, key: bytes | None) -> None:
        """Nothing where no key is set or the code is the key's.

        Raises:
            Unusable: There is no code, or another.
        """
        if key is None:
            return
        if self.code is None:
            raise Unusable("unauthenticated", "the file has no authentication code")
        if not hmac.compare_digest(self.code, _code(key, self.sealed)):
            raise Unusable("unauthenticated", "the authentication code is not of this key")


def head_of(label: Label, payload: memoryview, key: bytes | None) -> bytes:
    """What stands in a file before the payload."""
    text = label.encoded()
    start = START.pack(MAGIC, SCHEMA, int(key is not None), len(text), len(payload))
    # The payload's digest is part of what is sealed, so seal and code speak for the payload too.
    sealed = start + _digest(payload) + text
    return sealed + _digest(sealed) + (b"" if key is None else _code(key, sealed))


def read_head(files: Files, fd: int, size: int) -> Head:
    """Reads and checks everything before the payload; the code is not looked at.

    Args:
        files: The disk.
        fd: The file, at its beginning; then at the payload.
        size: The file's size.

    Raises:
        Unusable: It is no whole file of this schema, or not what was sealed.
        OSError: The disk's reason.
    """
    start = _take(files, fd, START.size)
    magic, schema, kind, label_length, payload = START.unpack(start)
    if magic != MAGIC:
        raise Unusable("torn", "the file does not begin as a segment does")
    if schema != SCHEMA:
        raise Unusable("other_schema", f"schema {schema}, this version reads {SCHEMA}")
    if label_length > LARGEST_LABEL or kind > 1:
        raise Unusable("torn", "the preamble is out of range")
    at = START.size + CODE + label_length + CODE + CODE * kind
    if size != at + payload:
        raise Unusable("torn", f"the file has {size} bytes, its preamble says {at + payload}")
    rest = _take(files, fd, at - START.size)
    sealed = start + rest[: CODE + label_length]
    seal = rest[len(sealed) - START.size :][:CODE]
    if seal != _digest(sealed):
        raise Unusable("wrong_fingerprint", "the label is not what was sealed")
    label = Label.decoded(rest[CODE : CODE + label_length], SCHEMA)
    return Head(label, sealed, rest[-CODE:] if kind else None, at, payload, rest[:CODE])


def read_payload(files: Files, fd: int, head: Head, into: memoryview) -> None:
    """Reads the payload and compares it with its digest.

    Args:
        files: The disk.
        fd: The file, at its payload.
        head: What stands before it.
        into: Exactly as many bytes as the payload has.

    Raises:
        Unusable: It is short, or not what was sealed.
        OSError: The disk's reason.
    """
    got = files.read_all(fd, into)
    if got < len(into):
        raise Unusable("torn", f"the payload has {got} of {len(into)} bytes")
    if _digest(into) != head.digest:
        raise Unusable("wrong_fingerprint", "the payload is not what was sealed")


def _take(files: Files, fd: int, count: int) -> bytes:
    buffer = bytearray(count)
    if files.read_all(fd, memoryview(buffer)) < count:
        raise Unusable("torn", "the file ends before its payload")
    return bytes(buffer)


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=CODE).digest()


def _code(key: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CODE, key=key, person=_PERSON).digest()
