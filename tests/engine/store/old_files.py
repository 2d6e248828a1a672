"""Files and catalogues as version 1 wrote them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

from tests.engine.store.cases import GROUP, facts, meaning


def label_of(key: str, **changes: Any) -> dict[str, Any]:
    """A label of version 1: no sequence."""
    made = meaning().label(key, GROUP, facts(), 0)
    label = {
        "key": key,
        "group": GROUP,
        "object": made.object,
        "rulebook": made.rulebook,
        "semantics": made.semantics,
        "facts": {name: [one.type, one.value] for name, one in made.facts.items()},
    }
    return {**label, **changes}


def schema_1(key: str, payload: bytes, **changes: Any) -> bytes:
    """The bytes of a file of schema 1."""
    label = json.dumps(label_of(key, **changes), sort_keys=True, separators=(",", ":")).encode()
    content = b"HPSEG\r\n\x1a" + struct.pack("<HHIQ", 1, 0, len(label), len(payload)) + label + payload
    return content + hashlib.blake2b(content, digest_size=32).digest()


def name_1(key: str) -> str:
    """A file's name in schema 1."""
    digest = hashlib.blake2b(key.encode(), digest_size=32).hexdigest()
    return f"{digest[:2]}/{digest[2:4]}/{digest}.seg"


def write_schema_1(root: Path, held: dict[str, bytes], *, catalogue: bool = True) -> None:
    """A whole store of version 1."""
    (root / "quarantine").mkdir(parents=True, exist_ok=True)
    rows = []
    for key, payload in held.items():
        path = root / "segments" / name_1(key)
        path.parent.mkdir(parents=True)
        path.write_bytes(schema_1(key, payload))
        rows.append((key, GROUP, name_1(key), path.stat().st_size))
    if catalogue:
        database = sqlite3.connect(root / "catalogue.sqlite", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE segments (key TEXT PRIMARY KEY, grp TEXT, file TEXT, bytes INTEGER)")
        database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?)", rows)
        database.execute("PRAGMA user_version = 1")
        database.close()
