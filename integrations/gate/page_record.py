"""The record that travels with a page: facts of its segment and the name it was put under, sealed or signed."""

from __future__ import annotations

import hashlib
import hmac
import struct

from hitproof.engine.store.answers import Unusable
from hitproof.engine.store.label import LARGEST_LABEL, Label

__all__ = ["HEAD", "read_record", "record_of", "record_size"]

MAGIC = b"HPPAGE\r\n"
SCHEMA = 1
HEAD = struct.Struct("<8sHHI")
"""Magic, schema, kind of code (0 digest, 1 keyed), length of the label."""
_CODE = 32
_PERSON = b"hitproof-page"


def record_of(label: Label, secret: bytes | None) -> bytes:
    """A label as bytes that tell whether they are whole, and with a secret, who wrote them."""
    text = label.encoded()
    content = HEAD.pack(MAGIC, SCHEMA, int(secret is not None), len(text)) + text
    return content + _code(content, secret)


def record_size(start: bytes | memoryview) -> int:
    """Bytes of the record that begins so.

    Raises:
        Unusable: No record begins so.
    """
    if len(start) < HEAD.size:
        raise Unusable("torn", "the record is shorter than its beginning")
    magic, schema, _, length = HEAD.unpack(start[: HEAD.size])
    if magic != MAGIC:
        raise Unusable("torn", "this is no record of a page")
    if schema != SCHEMA:
        raise Unusable("other_schema", f"schema {schema}, this version reads {SCHEMA}")
    if length > LARGEST_LABEL:
        raise Unusable("torn", "the record is too long")
    return HEAD.size + int(length) + _CODE


def read_record(record: bytes | memoryview, secret: bytes | None) -> Label:
    """The label of a record.

    Raises:
        Unusable: It is not whole, not of this schema, or not by the holder of the secret.
    """
    content = bytes(record)
    if len(content) != record_size(content):
        raise Unusable("torn", "the record has another length than it says")
    kind = HEAD.unpack(content[: HEAD.size])[2]
    if secret is not None and kind != 1:
        raise Unusable("unauthenticated", "the record has no authentication code")
    if secret is None and kind != 0:
        raise Unusable("unauthenticated", "the record has an authentication code, and no secret is set")
    if not hmac.compare_digest(_code(content[:-_CODE], secret), content[-_CODE:]):
        if secret is not None:
            raise Unusable("unauthenticated", "the authentication code is not of this secret")
        raise Unusable("torn", "the record is not what was sealed")
    return Label.decoded(content[HEAD.size : -_CODE], 2)


def _code(content: bytes, secret: bytes | None) -> bytes:
    return hashlib.blake2b(content, digest_size=_CODE, key=secret or b"", person=_PERSON).digest()
