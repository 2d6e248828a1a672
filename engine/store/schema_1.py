"""Files of schema 1, and the step from them to the present one."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hitproof.engine.store.answers import Unusable
from hitproof.engine.store.files import Files
from hitproof.engine.store.format import CODE, MAGIC, START
from hitproof.engine.store.label import LARGEST_LABEL, Label

__all__ = ["upgrade"]

_SCHEMA = 1


def upgrade(files: Files, fd: int, size: int, sequence: int) -> tuple[Label, memoryview]:
    """A whole file of schema 1 as label and payload of the present schema; the disk is not changed.

    Schema 1 has one digest at the end, over everything before it, so that nothing can be said of a label without
    reading the payload; no sequence; and no authentication code, the kind of code is always 0.

    Args:
        files: The disk.
        fd: The file, at its beginning.
        size: The file's size.
        sequence: The sequence that the label is to have.

    Raises:
        Unusable: It is no whole file of schema 1, or not what was written.
        OSError: The disk's reason.
    """
    if size < START.size + CODE:
        raise Unusable("torn", "the file is shorter than any segment")
    content = memoryview(bytearray(size))
    if files.read_all(fd, content) < size:
        raise Unusable("torn", "the file became shorter while it was read")
    magic, schema, kind, label_length, payload = START.unpack(content[: START.size])
    if magic != MAGIC:
        raise Unusable("torn", "the file does not begin as a segment does")
    if schema != _SCHEMA or kind != 0:
        raise Unusable("other_schema", f"schema {schema}, kind of code {kind}")
    at = START.size + label_length
    if label_length > LARGEST_LABEL or size != at + payload + CODE:
        raise Unusable("torn", f"the file has {size} bytes, its preamble says {at + payload + CODE}")
    if hashlib.blake2b(content[:-CODE], digest_size=CODE).digest() != bytes(content[-CODE:]):
        raise Unusable("wrong_fingerprint", "the file is not what was written")
    label = Label.decoded(bytes(content[START.size : at]), _SCHEMA)
    return replace(label, sequence=sequence), content[at:-CODE]
