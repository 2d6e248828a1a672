"""A process that forks writers, each of which puts, replaces and deletes segments until it is killed.

Run with a store's folder as argument. A line on standard input starts a writer with that line as its seed. On standard
output stand the writer's process number, and then a line before and after each call: `doing` or `done`, the key, and
the digest of the payload, or `-` where the key is deleted.
"""

from __future__ import annotations

import hashlib
import os
import sys
from itertools import count
from random import Random

from hitproof.engine.store import Deleted, Receipt, Store
from tests.engine.store.cases import GROUP, facts, meaning, payload


def write(root: str, seed: str) -> None:
    """Puts and deletes without end."""
    draw = Random(seed)
    with Store(root, meaning()) as store:
        for turn in count():
            key = f"key{draw.randrange(12)}"
            if key in store and draw.random() < 0.3:
                _say("doing", key, "-")
                if isinstance(store.delete(key), Deleted):
                    _say("done", key, "-")
            else:
                content = payload(f"{seed} {turn}", draw.choice([0, 100, 5000, 300_000]))
                digest = hashlib.blake2b(content, digest_size=16).hexdigest()
                _say("doing", key, digest)
                if isinstance(store.put(key, GROUP, facts(), content), Receipt):
                    _say("done", key, digest)


def _say(*words: str) -> None:
    os.write(1, f"{' '.join(words)}\n".encode())


def main() -> None:
    """Forks a writer for each line; says `ended` once it was killed."""
    meaning()
    for line in sys.stdin:
        writer = os.fork()
        if writer == 0:
            write(sys.argv[1], line.strip())
        _say("writer", str(writer), "-")
        os.waitpid(writer, 0)
        _say("ended", "-", "-")


if __name__ == "__main__":
    main()
