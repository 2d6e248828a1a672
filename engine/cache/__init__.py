"""The state-aware cache manager (article section 4): what is held where, looked up, recovered, leased and written."""

from hitproof.engine.cache.hold import Answer, Held, Hold
from hitproof.engine.cache.manager import CacheManager
from hitproof.engine.cache.measuring import VERIFY, Verify
from hitproof.engine.cache.member import CacheMember
from hitproof.engine.cache.plain_memory import PlainMemory
from hitproof.engine.cache.points import POINTS, At
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Entry, Slot
from hitproof.engine.cache.writing import Writing

__all__ = [
    "Answer",
    "At",
    "CacheManager",
    "CacheMember",
    "Entry",
    "Held",
    "Hold",
    "POINTS",
    "PlainMemory",
    "Prompt",
    "Slot",
    "VERIFY",
    "Verify",
    "Writing",
]
