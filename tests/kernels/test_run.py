"""Kernels under the engine: a recovery runs them on real bytes, and believes what was measured of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hitproof.engine.recovery import Recovered, Recovery  # noqa: E402
from hitproof.engine.scenario import ScenarioRun  # noqa: E402
from hitproof.kernels.blocks import Geometry  # noqa: E402
from hitproof.kernels.checksum.bind import measure  # noqa: E402
from hitproof.kernels.jobs import Held, Job  # noqa: E402
from hitproof.kernels.numbers import encode, plain_row  # noqa: E402
from hitproof.kernels.promote import Manifest  # noqa: E402
from hitproof.kernels.run import KernelRunner  # noqa: E402
from hitproof.kernels.selftest.trial import empty_copy, held_rows  # noqa: E402
from hitproof.rules.bind import bind_rulebook  # noqa: E402
from hitproof.rules.resolve import load_rulebook  # noqa: E402
from hitproof.rules.scenarios import load_scenario, scenario_files, scenario_profile  # noqa: E402
from hitproof.spec.repair import RepairOutcome, RepairRequest  # noqa: E402

FORM, HEADS, LAYERS, TOKENS = plain_row("bf16", 64), 2, 2, 256
BLOCKS = Geometry(16, HEADS, FORM.cell_bytes)


class Host:
    """A prefix of 256 tokens in host memory, at an odd byte, and the engine's segment that stands for it."""

    def __init__(self) -> None:
        path = next(path for path in scenario_files("mixed_attention") if path.stem == "prefix-back-from-host")
        scenario = load_scenario(path)
        self.bound = bind_rulebook(load_rulebook("mixed_attention"), scenario_profile(scenario))
        self.story = ScenarioRun(self.bound, scenario)
        values = torch.randn((TOKENS, LAYERS, HEADS, 64), generator=torch.Generator().manual_seed(3))
        self.staging = held_rows(encode(values, FORM), replace(BLOCKS, offset=7, stride=BLOCKS.stride + 1), FORM)
        self.target = empty_copy(BLOCKS, FORM, TOKENS, layers=LAYERS)
        self.manifest = Manifest(TOKENS, torch.ones(self.staging.table.numel(), dtype=torch.bool))
        self.segment = self.story.segments["kv"]
        self.segment.recorded = measure(self.staging)
        self.requests: list[RepairRequest] = []
        self.outcomes: list[RepairOutcome] = []
        self.held: Held | None = self.staging

    def find(self, request: RepairRequest) -> Job:
        """The rows that a request is about."""
        self.requests.append(request)
        return Job(self.held, self.target, {"demoted_prefix": self.manifest})

    def recover(self) -> Recovered:
        """The decision carried out by the kernels."""
        runner = KernelRunner(self.find)

        def run(request: RepairRequest) -> RepairOutcome:
            self.outcomes.append(runner(request))
            return self.outcomes[-1]

        return Recovery(self.story.engine).run(self.story.state(), run)


def test_a_prefix_comes_back_and_is_used() -> None:
    """The copy that is handed over has the address and the fingerprint that were measured of the new blocks."""
    host = Host()
    ended = host.recover()
    assert ("repair", 256) == (ended.verdict, ended.usable)
    copy: Any = ended.copies["kv", 0]
    assert host.target.address == copy.address
    assert measure(host.target) == copy.measured == copy.recorded
    assert ["promote"] == [request.repair for request in host.requests]


def test_a_flipped_bit_in_staging_is_not_used() -> None:
    """The copy's fingerprint is another, so the engine quarantines it and computes the prompt."""
    host = Host()
    pool = host.staging.layers[1]
    pool.buffer[int(pool.geometry.address(int(host.staging.table[9]), 5))] ^= 4
    ended = host.recover()
    assert "recompute" == ended.verdict
    assert {} == ended.copies
    assert ["promote_from_host"] == [step.option for step in ended.quarantined]
    assert ("failed", {}) == (host.outcomes[0].status, dict(host.outcomes[0].measured))
    assert host.segment.recorded in host.outcomes[0].detail


def test_a_broken_transfer_is_tried_again() -> None:
    """Blocks that have not arrived are an outcome of their own, and nothing is written."""
    host = Host()
    host.manifest.arrived[3] = False
    before = [pool.buffer.clone() for pool in host.target.layers]
    ended = host.recover()
    assert {"transfer_failed"} == {outcome.status for outcome in host.outcomes}
    assert len(host.outcomes) > 1
    assert "recompute" == ended.verdict
    assert all(torch.equal(old, pool.buffer) for old, pool in zip(before, host.target.layers, strict=True))


def test_rows_that_are_gone_are_a_lost_source() -> None:
    """Nothing to read is no error and no failure."""
    host = Host()
    host.held = None
    assert "recompute" == host.recover().verdict
    assert ["source_lost"] == [outcome.status for outcome in host.outcomes]


@pytest.mark.parametrize("spoil", ["manifest", "tags", "layout", "layers", "rows", "blocks"])
def test_what_does_not_fit_has_failed(spoil: str) -> None:
    """A manifest of other rows, a copy that nobody describes, and blocks of another shape or number are outcomes."""
    host = Host()
    if spoil == "manifest":
        host.manifest = Manifest(TOKENS + 1, host.manifest.arrived)
    elif spoil == "tags":
        host.target = replace(host.target, tags={})
    elif spoil == "layers":
        host.target = empty_copy(BLOCKS, FORM, TOKENS, layers=1)
    elif spoil == "rows":
        host.target = empty_copy(BLOCKS, FORM, TOKENS - 1, layers=LAYERS)
    elif spoil == "blocks":
        host.target = replace(host.target, table=host.target.table[:-1])
    else:
        host.target = empty_copy(replace(BLOCKS, layout="head_major", pitch=0), FORM, TOKENS, layers=LAYERS)
    assert "recompute" == host.recover().verdict
    assert {"failed"} == {outcome.status for outcome in host.outcomes}
    assert all(outcome.detail for outcome in host.outcomes)
    assert [{}] == [dict(outcome.measured) for outcome in host.outcomes]
