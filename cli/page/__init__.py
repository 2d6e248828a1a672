"""Pages of HTML about replays and about the oracle: style and pictures inside, no script, nothing fetched."""

from hitproof.cli.page.oracle import oracle_page
from hitproof.cli.page.policies import PolicyRow, policy_rows
from hitproof.cli.page.render import replay_page
from hitproof.cli.page.story import ReplayStory, StatedRate, StatedRetention, story_of

__all__ = [
    "PolicyRow",
    "ReplayStory",
    "StatedRate",
    "StatedRetention",
    "oracle_page",
    "policy_rows",
    "replay_page",
    "story_of",
]
