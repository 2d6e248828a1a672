"""A counterexample that exists for one of several pieces alone is told with the pieces around it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.verification import verify

COVERED = "self.start <= needs.first and needs.to <= self.end"


@pytest.mark.parametrize(
    ("require", "pieces"),
    [
        ("(share.first > 0 or self.start <= needs.first) and needs.to <= self.end", ["full_before", "full"]),
        (f"(share.first > 0 and share.to < length) or ({COVERED})", ["full_before", "full", "full_behind"]),
    ],
    ids=["all but the first", "in the middle"],
)
def test_a_gap_that_only_a_later_piece_may_have_is_refuted(
    require: str, pieces: list[str], source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
) -> None:
    """The rule is broken where a piece is not the only one; the engine accepts the chain with the gap in it."""
    broken, _ = source.edited(("objects", "full_kv", "checks", "covers_prefix", "require"), require)
    result = verify(broken, [profiles["qwen3-next-80b-a3b"]], claims=["sound"], replayer=replayer, jobs=1).claims[0]
    assert "refuted" == result.verdict
    found = result.counterexample
    assert found is not None
    assert found.scenario is not None
    chain = [segment for segment in found.scenario.segments if segment.group == "full"]
    assert pieces == [segment.id for segment in chain]
    ends = [(segment.facts["start"], segment.facts["end"]) for segment in chain]
    assert any(one[1] != other[0] for one, other in pairwise(ends))
