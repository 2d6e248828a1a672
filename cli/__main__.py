"""`python -m hitproof.cli`: the same as `hitproof`."""

from __future__ import annotations

import sys

from hitproof.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
