"""The look-up finds what its plain twin finds, in the order of the twin, whatever has happened to the segments."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hitproof.engine.cache.look import look
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.soak.play import play
from hitproof.engine.soak.prompts import Asked
from hitproof.engine.soak.stage import Settings, Stage
from tests.engine.cache.plain_look import plain_find, plain_look


@pytest.mark.parametrize("profile", ["deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b"])
def test_the_look_up_agrees_with_its_plain_twin(profile: str, tmp_path: Path) -> None:
    """In a soak with faults, moves and deaths, for prompts that are new to the manager and for some that it knows."""
    draw, turns, pieces = Random(5), 0, 0
    known: dict[tuple[int, Asked], Prompt] = {}

    def compare(stage: Stage) -> bool:
        nonlocal turns, pieces
        turns += 1
        if turns % 8:
            return False
        asked = stage.crowd.ask(draw)
        prompt = known.setdefault((stage.lives, asked), stage.manager.prompt(asked.tokens, asked.facts))
        found, agreed = look(stage.core, prompt), plain_find(stage.core, prompt)
        assert stage.core.index.find(prompt) == (max(agreed.values(), default=0), agreed)
        assert {
            group: [(piece.slot.number, piece.agreed) for piece in found.pieces[group]] for group in stage.core.groups
        } == plain_look(stage.core, prompt)
        pieces += sum(map(len, found.pieces.values()))
        return False

    play(Settings(seed=11, profile=profile, prompts=8.0, rates={"killed_process": 0.02}), 1200, tmp_path, until=compare)
    assert pieces > 500
