"""Every repair keeps its declaration on its kernels too, and is launched in the ways that are compiled."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.configs import CompileSpec  # noqa: E402
from hitproof.kernels.launching import Launch, watched  # noqa: E402
from hitproof.kernels.registry import KERNELS  # noqa: E402
from hitproof.kernels.selftest import Trial, check_sources, check_trial, trials_of  # noqa: E402
from hitproof.kernels.targets import specs_of  # noqa: E402
from hitproof.rules import load_rulebook  # noqa: E402

REPAIRS = load_rulebook("mixed_attention").repairs


def pairwise(trials: Iterable[Trial]) -> list[Trial]:
    """The first trials that show each two of repair, format, layout and what the name begins with together."""
    seen: set[tuple[int, int, str, str]] = set()
    kept: list[Trial] = []
    for trial in trials:
        features = (trial.repair, trial.dtype, trial.layout, " ".join(trial.name.split()[:2]))
        pairs = {(i, j, features[i], features[j]) for i, j in combinations(range(len(features)), 2)}
        if not pairs <= seen:
            kept.append(trial)
        seen |= pairs
    return kept


SAMPLE = pairwise(trial for repair in KERNELS for trial in trials_of(repair))


@pytest.fixture(scope="module")
def launches() -> list[tuple[str, Launch]]:
    """What the trials of this module launched, by repair."""
    return []


@pytest.mark.parametrize("trial", SAMPLE, ids=lambda trial: f"{trial.repair}: {trial.name}")
def test_a_kernel_keeps_the_declaration(trial: Trial, launches: list[tuple[str, Launch]]) -> None:
    """Facts, rows and untouched bytes, judged as for the reference."""
    with watched() as seen:
        assert [] == check_trial(trial, REPAIRS[trial.repair], "interpret")
    assert seen
    launches += [(trial.repair, one) for one in seen]


@pytest.mark.parametrize("repair", KERNELS)
def test_a_kernel_runs_from_what_it_consumes(repair: str) -> None:
    """What is declared suffices, and without any one of it the source is lost and nothing is written."""
    assert [] == check_sources(trials_of(repair)[0], REPAIRS[repair], "interpret")


def fits(seen: Launch, spec: CompileSpec) -> bool:
    """Whether a launch has the arguments of a case that is compiled; whole numbers may be of any width."""
    types = {name: "int" if kind in ("i32", "i64") else kind for name, kind in spec.types.items()}
    absent = {name for name, value in spec.constants.items() if value is None}
    given = {name: kind for name, kind in seen.types.items() if name not in absent}
    config = next(iter(spec.configs.values()))
    names = {*spec.constants, *config.tiles} - absent
    return (spec.kernel.__name__, types, names) == (seen.kernel, given, set(seen.constants))


def test_every_launch_is_one_that_is_compiled(launches: list[tuple[str, Launch]]) -> None:
    """What the trials launch has the arguments, by name and type, of a case in `specs()`."""
    if not launches:
        pytest.skip("the trials of this module were not run")
    specs = {repair: specs_of(repair) for repair in KERNELS}
    unknown = {
        (repair, one.kernel, tuple(one.types.items()))
        for repair, one in launches
        if not any(fits(one, spec) for found in specs.values() for spec in found)
    }
    assert set() == unknown
