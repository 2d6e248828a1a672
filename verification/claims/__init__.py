"""One file a claim; the claim's id is the file's name."""

from importlib import import_module

from hitproof.spec.proof import CLAIMS
from hitproof.verification.run import Claim

__all__ = ["ALL_CLAIMS"]

ALL_CLAIMS: dict[str, Claim] = {name: import_module(f"{__name__}.{name}").CLAIM for name in CLAIMS}
"""Every claim by its id, in the order in which they are told."""
