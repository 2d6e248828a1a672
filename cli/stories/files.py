"""Counterexamples as files: each as a scenario, a sequence diagram and a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hitproof.cli.stories.itf import itf
from hitproof.cli.stories.sequence import sequence_diagram
from hitproof.spec.proof import ClaimResult, Counterexample, VerifyReport

if TYPE_CHECKING:
    from hitproof.spec.rulebook import Rulebook

__all__ = ["write_stories"]


def write_stories(report: VerifyReport, rulebook: Rulebook, folder: Path) -> dict[str, Path]:
    """Write every counterexample that has a story into a folder; the files of one differ in their endings.

    `.yaml` is the scenario, which `hitproof test` replays. Where the engine has replayed it, `.mmd` is a sequence
    diagram and `.itf.json` a trace of its states.

    Returns:
        The scenario's file, by profile, claim and number, as in `gemma-3-27b sound 1`.

    Raises:
        MissingFileError: A file cannot be written.
    """
    from hitproof.cli.output import make_folder, write_file
    from hitproof.engine.watching import steps_seen
    from hitproof.rules.bind import bind_rulebook
    from hitproof.rules.scenarios import dump_scenario, scenario_profile

    make_folder(folder)
    written: dict[str, Path] = {}
    for result, number, found in _stories(report):
        if found.scenario is None:
            continue
        name = f"{result.profile}-{result.id}" + (f"-{number}" if number > 1 else "")
        path = written[f"{result.profile} {result.id} {number}"] = folder / f"{name}.yaml"
        write_file(path, dump_scenario(found.scenario))
        if found.replayed:
            steps = steps_seen(bind_rulebook(rulebook, scenario_profile(found.scenario)), found.scenario)
            write_file(folder / f"{name}.mmd", sequence_diagram(found, steps))
            write_file(folder / f"{name}.itf.json", json.dumps(itf(found, steps), indent=1))
    return written


def _stories(report: VerifyReport) -> Iterator[tuple[ClaimResult, int, Counterexample]]:
    for result in report.claims:
        if result.counterexample is not None:
            for number, found in enumerate((result.counterexample, *result.more), start=1):
                yield result, number, found
