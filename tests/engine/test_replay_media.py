"""A replayed prompt is text: no rule that guards pictures stands in its way."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.replay import replay
from hitproof.engine.trace import TraceRequest
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook

BLOCKS = 60
UNIT = 512


def twice() -> list[TraceRequest]:
    """One prompt of 30,720 tokens that comes back; longer than the 25,575 tokens of the warm-up."""
    fields: dict[str, Any] = {
        "input_tokens": BLOCKS * UNIT,
        "output_tokens": 1,
        "hash_ids": tuple(range(BLOCKS)),
        "block_tokens": UNIT,
    }
    return [TraceRequest(timestamp_ms=at, **fields) for at in (0, 1)]


@pytest.mark.parametrize(("request_facts", "recovered"), [(None, True), ({"media_from": 0}, False)])
def test_windows_are_warmed_up_unless_a_picture_may_be_cut(request_facts: Any, recovered: bool) -> None:
    """Without media the windows come back by a warm-up; with a picture at the start nothing does."""
    bound = bind_rulebook(load_rulebook("mixed_attention"), load_profile("gemma-4-26b-a4b"))
    report = replay(twice(), bound, capacity=None, retention="zero", request=request_facts)
    assert recovered is (report.rates["recovered_rate"]["blocks"] > 0)
