"""A claim is worth what it refutes: each broken rulebook is found, with its place, and the engine replays it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.resolve import resolve
from hitproof.rules.scenarios import dump_scenario, load_scenario
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import CLAIMS, MutantResult
from hitproof.verification import MUTANTS, Mutant, run_mutant


@pytest.fixture(scope="module")
def asked(
    source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
) -> Callable[[Mutant], MutantResult]:
    """Each mutant's result, worked out once."""
    results: dict[str, MutantResult] = {}

    def ask(mutant: Mutant) -> MutantResult:
        if mutant.id not in results:
            results[mutant.id] = run_mutant(mutant, source, profiles[mutant.profile], replayer)
        return results[mutant.id]

    return ask


class TestMutants:
    """One deliberate edit each."""

    def test_every_claim_has_a_mutant(self) -> None:
        """No claim goes without."""
        assert set(CLAIMS) == {mutant.claim for mutant in MUTANTS}

    @pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
    def test_is_refuted_with_place_and_replays(
        self,
        mutant: Mutant,
        source: RuleSource,
        asked: Callable[[Mutant], MutantResult],
        replayer: EngineReplayer,
        tmp_path: Path,
    ) -> None:
        """The claim falls; file and line are told; the counterexample survives a round through a file and replays."""
        result = asked(mutant)
        assert result.killed, result.result.detail
        found = result.result.counterexample
        assert found is not None
        assert found.replayed
        for place in (result.place, found.place):
            file, line, column = place.rsplit(":", 2)
            assert Path(file).is_file()
            assert int(line) > 0
            assert int(column) > 0
        assert found.scenario is not None
        path = tmp_path / "counterexample.yaml"
        path.write_text(dump_scenario(found.scenario), encoding="utf-8")
        broken, _ = mutant.of(source)
        again = replayer.replay(resolve(broken, lenient=True), load_scenario(path))
        assert again.passed, again.differences

    @pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
    def test_the_sound_rulebook_does_not_do_what_the_mutant_does(
        self,
        mutant: Mutant,
        source: RuleSource,
        asked: Callable[[Mutant], MutantResult],
        replayer: EngineReplayer,
    ) -> None:
        """The same story ends otherwise under the rules as they are."""
        result = asked(mutant)
        found = result.result.counterexample
        assert found is not None
        assert found.scenario is not None
        assert not replayer.replay(resolve(source), found.scenario).passed
