"""Cache managers as ranks: different evictions, private repairs, and nothing left behind by a turn that fails."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hitproof.engine.cache import CacheMember
from hitproof.engine.ranks import Joint, Ranks, Room
from hitproof.engine.ranks.agree import Offered
from hitproof.spec.memory import Extent
from tests.engine.cache.cases import Machine, prompt_tokens

TOKENS = prompt_tokens(512)
MORE = [*TOKENS, *prompt_tokens(88, seed=7)]
OTHER = [*TOKENS[:450], *prompt_tokens(88, seed=3)]


def turn(
    machines: Sequence[Machine], tokens: Sequence[int], at_most: int | None = None
) -> list[tuple[Joint, CacheMember]]:
    """One turn of managers as ranks, each in a thread of its own."""
    room = Room(len(machines))
    members = [machine.manager.member() for machine in machines]

    def part(rank: int) -> Joint:
        machine = machines[rank]
        ranks = Ranks(members[rank], room.seat(rank), machine.engine.judge.order, 60.0, 60.0)
        return ranks.agree(machine.prompt(tokens), 1, at_most)

    with ThreadPoolExecutor(len(machines)) as pool:
        return list(zip(pool.map(part, range(len(machines))), members, strict=True))


def forms(machine: Machine) -> set[str]:
    """Forms of all segments with rows on the path of the shared prompt."""
    return {slot.facts.form for slot in machine.manager.find(machine.prompt(TOKENS)) if slot.rows}


def free_blocks(machine: Machine) -> dict[str, int]:
    """Free blocks of each pool."""
    return {group: machine.manager.columns(group).free for group in machine.memory.groups()}


def pins(machine: Machine) -> int:
    """Pins of all segments."""
    return sum(slot.facts.pins for slot in machine.manager.find(machine.prompt(MORE)))


def disturb(machine: Machine) -> None:
    """Another epoch of one segment, as if somebody had changed it."""
    slot = next(slot for slot in machine.manager.find(machine.prompt(TOKENS)) if slot.rows)
    slot.facts.epoch += 1


def offered(machine: Machine, tokens: Sequence[int]) -> Offered:
    """What a machine offers."""
    return machine.manager.member().offers(machine.prompt(tokens), None)


def test_different_evictions_agree_on_one_length() -> None:
    """States were kept at other lengths on each rank; all resume at one that all kept, with the very bytes."""
    kept = ((128, 256, 384), (128, 256), (256, 384))
    machines = [Machine(verify="use") for _ in kept]
    for machine, boundaries in zip(machines, kept, strict=True):
        machine.fill(TOKENS, boundaries=boundaries)
    assert [{0, *boundaries} for boundaries in kept] == [set(offered(one, OTHER).lengths) for one in machines]
    for (joint, member), machine in zip(turn(machines, OTHER), machines, strict=True):
        assert (True, 256) == (joint.go, joint.length)
        assert member.hold is not None and member.hold.confirm()
        for group, found in machine.read(member.hold).items():
            assert set(found) <= {rows for (name, *_), rows in machine.written.items() if name == group}
        machine.check()
        member.hold.release()
        machine.check()
        assert 0 == pins(machine)


def test_a_rank_promotes_what_the_other_has_at_home() -> None:
    """One rank's prefix is in host memory; it is published at home by the commit, and both use all of it."""
    machines = [Machine(verify="use"), Machine(verify="use")]
    for machine in machines:
        machine.fill(TOKENS)
    machines[0].demote_all(TOKENS)
    assert {"demoted"} == forms(machines[0])
    for (joint, member), machine in zip(turn(machines, MORE), machines, strict=True):
        assert (True, 512) == (joint.go, joint.length)
        assert "demoted" not in forms(machine)
        assert member.hold is not None and 512 == member.hold.usable
        member.hold.release()
        machine.check()


def test_what_is_repaired_stays_private_until_the_commit() -> None:
    """Prepared and given up, a prefix is demoted as before; nothing is pinned, claimed or taken."""
    machine = Machine()
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    free = free_blocks(machine)
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths
    assert not isinstance(member.prepare(prompt, 512, lengths[512]), str)
    assert {"demoted"} == forms(machine) and 0 < pins(machine)
    assert "defer" == machine.ask(MORE).verdict
    member.abort()
    machine.check()
    assert ({"demoted"}, 0) == (forms(machine), pins(machine))
    assert free == free_blocks(machine)
    assert "repair" == machine.ask(MORE).verdict


def test_a_rank_that_cannot_promote_aborts_all() -> None:
    """Its host copy is not what was written, so it says no, and the other rank's copies are not published either."""
    machines = [Machine(), Machine()]
    for machine in machines:
        machine.fill(TOKENS)
    machines[1].damage("csa_entries")
    for machine in machines:
        machine.demote_all(TOKENS)
    joints = turn(machines, MORE)
    assert [(False, (1,))] * 2 == [(joint.go, joint.ranks) for joint, _ in joints]
    assert [None, None] == [member.hold for _, member in joints]
    for machine in machines:
        machine.check()
        assert 0 == pins(machine)
    assert {"demoted"} == forms(machines[0])
    assert ["repair", "recompute"] == [machine.ask(MORE).verdict for machine in machines]


def test_a_rank_whose_transfers_break_off_gives_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrived before is given up too, and nobody has to wait for what it had claimed."""
    machine = Machine()
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    free, load = free_blocks(machine), machine.memory.load
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths
    arrived: list[str] = []

    def breaking(host: Any, target: Extent, places: Sequence[int]) -> tuple[int, ...]:
        if len(arrived) > 1:
            return tuple(places)
        arrived.append(target.group)
        return load(host, target, places)

    monkeypatch.setattr(machine.memory, "load", breaking)
    assert isinstance(member.prepare(prompt, 512, lengths[512]), str)
    monkeypatch.undo()
    assert 2 == len(arrived)
    assert (free, 0) == (free_blocks(machine), pins(machine))
    machine.check()
    assert "repair" == machine.ask(MORE).verdict


def test_a_rank_under_which_everything_moves_gives_everything_back() -> None:
    """Where others interfere until no attempt is left, copies and claims of the last one are given up as well."""
    machine = Machine()
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    free, points = free_blocks(machine), machine.points
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths

    def disturb_a_later_repair(point: str) -> None:
        latest = points[::-1].index("again") if "again" in points else len(points)
        if point == "run" and "load" in points[len(points) - latest :]:
            disturb(machine)

    machine.at = disturb_a_later_repair
    assert "cannot be held" in str(member.prepare(prompt, 512, lengths[512]))
    machine.at = None
    assert (free, 0) == (free_blocks(machine), pins(machine))
    machine.check()
    assert "repair" == machine.ask(MORE).verdict


@pytest.mark.parametrize("group", ["csa_entries", "window"])
def test_an_eviction_after_the_offer_is_noticed(group: str) -> None:
    """What was offered is gone when it is to be leased; the rank says no and holds nothing."""
    machine = Machine()
    machine.fill(TOKENS)
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths
    for slot in machine.slots(group):
        assert machine.manager.evict(slot)
    assert isinstance(member.prepare(prompt, 512, lengths[512]), str)
    machine.check()
    assert 0 == pins(machine)


def test_another_epoch_after_the_offer_is_noticed() -> None:
    """The length could still be held, but not by what was offered; a new offer can be prepared."""
    machine = Machine()
    machine.fill(TOKENS)
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths
    machine.slots("csa_entries")[0].facts.epoch += 1
    assert isinstance(member.prepare(prompt, 512, lengths[512]), str)
    assert 0 == pins(machine)
    lengths = member.offers(prompt, None).lengths
    assert not isinstance(member.prepare(prompt, 512, lengths[512]), str)
    member.abort()


def test_what_moves_after_preparing_is_not_committed() -> None:
    """A stale page table between vote and commit makes the rank say no."""
    machine = Machine()
    machine.fill(TOKENS)
    member, prompt = machine.manager.member(), machine.prompt(MORE)
    lengths = member.offers(prompt, None).lengths
    assert not isinstance(member.prepare(prompt, 512, lengths[512]), str)
    slot = machine.slots("csa_entries")[0]
    slot.facts.epoch += 1
    assert not member.commit()
    member.abort()
    machine.check()
    assert 0 == pins(machine)


def test_computing_everything_has_a_hold_to_write_by() -> None:
    """Where nothing is reused, all agree on that, and write what they compute."""
    machines = [Machine(), Machine()]
    machines[0].fill(TOKENS)
    for (joint, member), machine in zip(turn(machines, MORE), machines, strict=True):
        assert (True, 0) == (joint.go, joint.length)
        assert member.hold is not None
        writing = machine.manager.begin(member.hold.prompt, member.hold)
        assert writing is not None
        writing.abort()
        member.hold.release()
        machine.check()


def test_other_requests_of_the_same_prompt_are_other_subjects() -> None:
    """Ranks that were asked with other tokens or another tenant's salt do not agree."""
    machine = Machine()
    machine.fill(TOKENS)
    member = machine.manager.member()
    subjects = {
        member.offers(machine.prompt(tokens, **facts), None).subject
        for tokens, facts in ((MORE, {}), (OTHER, {}), (MORE, {"salt": "tenant-2"}))
    }
    assert 3 == len(subjects)
    assert member.offers(machine.prompt(MORE), None).subject in subjects
