"""Writes the digest of the axioms into `spec/proof.py`, where the running path finds it."""

from __future__ import annotations

import re
from pathlib import Path

from hitproof.verification.memory import axioms_digest

__all__ = ["main"]

TARGET = Path(__file__).parents[2] / "spec" / "proof.py"


def main() -> None:
    """Replace the digest; nothing else of the file changes."""
    text = TARGET.read_text("utf-8")
    changed, found = re.subn(r'(AXIOMS_DIGEST = )"[0-9a-f]{64}"', rf'\g<1>"{axioms_digest()}"', text)
    if found != 1:
        raise SystemExit(f"{TARGET} does not tell the digest of the axioms once")
    TARGET.write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
