"""The real manager under every schedule of some steps, and under random threads, against the verifier's relation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("z3", reason="the transition relation is that of the verifier, which needs z3")

from hitproof.verification.acceptance import Acceptor
from tests.agreement.interleavings.broken import BROKEN
from tests.agreement.interleavings.explore import explore
from tests.agreement.interleavings.soaked import soaked
from tests.agreement.interleavings.world import CASTS, FIRST, engine

STEPS = 5
"""Steps of a schedule here; `python -m tests.agreement.interleavings --steps 12` plays more."""

CAUGHT = 9
"""Steps within which every broken engine must be caught."""

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def judge() -> Acceptor:
    """The relation of the small model, whose terms are made once."""
    return Acceptor(engine().bound)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("cast", CASTS, ids=", ".join)
def test_every_step_of_every_schedule_is_one_of_the_relation(
    judge: Acceptor, cast: tuple[str, ...], first: str, record_property: Record
) -> None:
    """After each step the manager is in the state that the relation says, and readers read what was checked."""
    found = explore(first, STEPS, cast, acceptor=judge)
    assert not found.failure, found.schedule
    assert found.edges == found.runs - 1 and len(found.states) > STEPS
    record_property(f"{', '.join(cast)} from {first}", f"{len(found.states)} states, {found.edges} edges")


def test_two_requests_come_through_all_their_phases(judge: Acceptor) -> None:
    """Twelve steps of the two requests alone reach every phase, both reading at once among them."""
    found = explore("home", 12, ("reader", "sender"), acceptor=judge)
    assert not found.failure, found.schedule
    phases = [dict(state.phases) for state in found.states]
    reached = {phase for state in phases for phase in state.values()}
    assert reached >= {"", "checked", "confirmed", "using", "releasing", "completed", "released"}
    assert {"reader": "using", "sender": "releasing"} in phases
    assert {"reader": "released", "sender": "released"} in phases


def test_a_copy_is_published_while_others_look(judge: Acceptor) -> None:
    """A request that mends what is demoted gets to its publication, and to the use of what it has published."""
    found = explore("demoted", 11, ("reader", "promote B"), acceptor=judge)
    assert not found.failure, found.schedule
    points = {point for state in found.states for point in dict(state.points).values()}
    assert points >= {"look", "claim", "allocate", "load", "publish", "confirm", "use", "promote_end"}
    assert any(dict(state.phases)["reader"] == "using" for state in found.states)


@pytest.mark.parametrize("name", BROKEN)
def test_an_engine_that_lacks_something_is_caught(judge: Acceptor, name: str, record_property: Record) -> None:
    """Without what it lacks some schedule fails, and with it none of the same length does."""
    broken = BROKEN[name]
    with broken.planted():
        found = explore(broken.first, CAUGHT, broken.cast, acceptor=judge, broken=broken.manager)
    assert found.failure, f"nobody notices that {broken.what} is missing"
    whole = explore(broken.first, len(found.schedule), broken.cast, acceptor=judge)
    assert not whole.failure, whole.schedule
    record_property(f"without {broken.what}", found.failure)


@pytest.mark.parametrize("profile", ["gemma-3-27b", "deepseek-v4-flash"])
def test_the_log_of_a_soak_is_accepted(profile: str, record_property: Record) -> None:
    """Sixteen threads for a moment: every event and every call of a lease is a step of the relation."""
    result = soaked(profile, 0.7)
    assert not result.refusal and not result.failure
    assert set(result.kinds) >= {"allocate", "commit", "take", "confirm", "release"}
    record_property(f"log of a soak of {profile}", f"{result.accepted} steps accepted")


@pytest.mark.parametrize("name", ["no lock", "no epoch", "no pin", "pins given back twice"])
def test_the_log_of_a_soak_of_a_broken_engine_is_refused(name: str) -> None:
    """Threads alone show it too: the log is not the relation's."""
    broken = BROKEN[name]
    with broken.planted():
        result = soaked("gemma-3-27b", 0.3, broken)
    assert result.refusal
