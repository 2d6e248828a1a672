"""Copies that a recovery publishes are found by whom their rows belong to, and by nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.spec.repair import RepairJob, RepairOutcome
from tests.engine.cache.cases import Machine, prompt_tokens

FIRST = prompt_tokens(600)
SECOND = [*FIRST[:300], *prompt_tokens(300, seed=5)]


def mended(folder: Path) -> Machine:
    """A machine where a window of the first prompt came back from the host and was rolled for the second one."""
    machine = Machine("gemma-3-27b", blocks=1024, folder=folder)
    assert machine.fill(FIRST, boundaries=(256,)) == ""
    assert machine.demote_all(FIRST) == 2
    assert machine.ask(SECOND, window_version="2").usable == 256
    assert [(job.request.repair, job.request.facts["end"]) for job in machine.jobs] == [("window_roll", 600)]
    return machine


def test_rows_that_the_prompt_does_not_share_are_not_filed_under_it(tmp_path: Path) -> None:
    """The copy has all 600 rows of the first prompt, and the second one finds the 256 that are its own."""
    machine = mended(tmp_path)
    assert machine.fill(SECOND, window_version="2") == ""
    more = machine.prompt([*SECOND, *prompt_tokens(9, seed=8)], window_version="2")
    answer = machine.manager.acquire(more)
    assert answer.usable == 600
    assert answer.hold is not None
    window = answer.hold.tables["window"]
    assert [(held.facts.start, held.facts.end) for held in window] == [(0, 256), (256, 600)]
    own = next(rows for (group, start, *_), rows in machine.written.items() if (group, start) == ("window", 256))
    assert machine.memory.read(window[1].extent) == own
    answer.hold.release()
    machine.check()


@pytest.mark.parametrize("tier", ["host", "disk"])
def test_such_a_copy_is_not_stored_under_a_key_of_its_whole_length(tmp_path: Path, tier: str) -> None:
    """On disk, under the second prompt's key, its rows would be taken for that prompt's by the next process."""
    machine = mended(tmp_path)
    (copy,) = [slot for slot in machine.slots("window") if slot.facts.end == 600]
    assert copy.disk_key is None
    assert machine.manager.demote(copy, tier) == (tier == "host")
    machine.check()


class Rebuilding(Machine):
    """A machine whose framework makes entries and index keys anew, bit for bit as they were."""

    def compute(self, job: RepairJob) -> RepairOutcome:
        """Entries and keys as they were written; all else as ever."""
        request = job.request
        if request.repair not in ("recompress", "index_rebuild"):
            return super().compute(job)
        self.jobs.append(job)
        span = (request.group, request.wanted["start"], request.wanted["end"])
        self.memory.write(job.target, 0, next(rows for place, rows in self.written.items() if place[:3] == span))
        return RepairOutcome("done", {"start": span[1], "end": span[2]})


def test_entries_that_are_made_where_none_were_held_are_told_from_those_before() -> None:
    """Their bytes are the same and their place is another one, so the index is led to it before it is read."""
    machine = Rebuilding()
    assert machine.fill(FIRST, inputs=True) == ""
    (entries,) = machine.slots("csa_entries")
    assert machine.manager.evict(entries)
    answer = machine.ask([*FIRST, *prompt_tokens(9, seed=3)])
    assert ("rebuild", 600) == (answer.verdict, answer.usable)
    assert ["recompress", "index_rebuild"] == [job.request.repair for job in machine.jobs]
    (again,), (index,) = machine.slots("csa_entries"), machine.slots("csa_index")
    assert again.facts.generation == index.facts.kv_generation
    assert machine.ask([*FIRST, *prompt_tokens(9, seed=3)]).verdict == "reuse"
    machine.check()
