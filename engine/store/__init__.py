"""The disk tier: bytes of segments under their keys, whole and verified after a kill at any moment."""

from hitproof.engine.store.answers import Deleted, Entry, Found, NotStored, Opened, Receipt, Refused, Sizes
from hitproof.engine.store.files import Files
from hitproof.engine.store.meaning import Meaning, Migration
from hitproof.engine.store.store import Store

__all__ = [
    "Deleted",
    "Entry",
    "Files",
    "Found",
    "Meaning",
    "Migration",
    "NotStored",
    "Opened",
    "Receipt",
    "Refused",
    "Sizes",
    "Store",
]
