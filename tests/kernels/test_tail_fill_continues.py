"""A model continues from what a cache holds: with its young end filled from kept inputs it answers as a cold run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import DynamicCache  # noqa: E402

from hitproof.kernels.checksum.bind import measure  # noqa: E402
from hitproof.kernels.jobs import Held, Job, RepairFault  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from tests.kernels.stored_prefix import (  # noqa: E402
    cache_of,
    cache_rows,
    error_in_logits,
    held_rows,
    numbers,
    request,
    room_for,
)
from tests.kernels.tiny_models import WINDOW, cache_path, keeping_inputs, logits, random_tokens, tiny  # noqa: E402

PREFIX, SUFFIX = 130, 24
# Shares of the logits' spread: what is valid differs by less than the one, and every fault by far more than the other.
SAME, OTHER = 1e-5, 1e-2


class Stored:
    """What is left of a prefix of 130 tokens whose youngest rows are gone: rows up to an earlier length, and inputs.

    The rows are those that the cache held `missing` tokens earlier, which is all that a window has then. Inputs are
    kept for the last window. Everything lies in blocks; the model's own cache is thrown away.
    """

    def __init__(self, name: str, seed: int, missing: int) -> None:
        self.name, self.model, self.held_to = name, tiny(name, seed=seed), PREFIX - missing
        self.tokens = random_tokens(PREFIX + SUFFIX, seed)
        cache = DynamicCache(config=self.model.config)
        with keeping_inputs(self.model) as kept:
            logits(self.model, self.tokens[:, : self.held_to], cache)
            self.kinds = {
                kind: [i for i, layer in enumerate(cache.layers) if layer.is_sliding == (kind == "window")]
                for kind in ("window", "full")
            }
            self.rows = {kind: self._store(cache, layers) for kind, layers in self.kinds.items() if layers}
            logits(self.model, self.tokens[:, self.held_to : PREFIX], cache)
        first = PREFIX - WINDOW
        self.inputs: dict[str, Held | None] = {
            kind: held_rows([torch.cat(kept[i])[first:PREFIX, None] for i in layers], first)
            for kind, layers in self.kinds.items()
            if layers
        }

    def _store(self, cache: Any, layers: list[int]) -> Held:
        rows = cache_rows(cache, layers)
        return held_rows(rows, self.held_to - rows[0].shape[0])

    def filled(self) -> dict[str, Held]:
        """Every group after `tail_fill`, made from blocks alone."""
        return {kind: self._filled(kind) for kind in self.rows}

    def _filled(self, kind: str) -> Held:
        own, layers = self.rows[kind], self.kinds[kind]
        first = PREFIX - WINDOW + 1 if kind == "window" else 0
        heads = own.layers[0].geometry.heads
        copy = room_for(first, PREFIX - first, len(own.layers), own.form, heads, seed=7)
        facts = {"start": own.start, "end": self.held_to, "write_sequence": 3}
        job = Job(
            own,
            copy,
            {"layer_inputs": self.inputs[kind]},
            {"paths": tuple(cache_path(self.name, self.model, layer) for layer in layers)},
        )
        done = run_repair(request("tail_fill", PREFIX, first, PREFIX, facts), job)
        assert (PREFIX, PREFIX) == (done.measured["end"], done.measured["position"])
        assert measure(copy) == done.measured["measured"] == done.measured["recorded"]
        assert (
            sum(pool.geometry.heads for pool in copy.layers) * (PREFIX - first) * own.form.cell_bytes
            == (done.measured["bytes"])
        )
        assert (4, 4, first) == tuple(done.assigned[n] for n in ("write_sequence", "committed_sequence", "start"))
        return copy

    def continued(self, rows: dict[str, Held]) -> Any:
        """Logits of the suffix in one shot, behind the youngest rows of each group, however old those are."""
        by_layer = {}
        for kind, held in rows.items():
            end = held.start + held.count
            first = max(held.start, end - WINDOW + 1) if kind == "window" else held.start
            for place, layer in enumerate(self.kinds[kind]):
                by_layer[layer] = (numbers(held, 2 * place, first, end), numbers(held, 2 * place + 1, first, end))
        return logits(self.model, self.tokens[:, PREFIX:], cache_of(self.model, PREFIX, by_layer))

    def cold(self) -> Any:
        """Logits of the suffix when everything is computed."""
        return logits(self.model, self.tokens, DynamicCache(config=self.model.config))[PREFIX:]


@pytest.mark.parametrize("missing", [1, 9, WINDOW - 1])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_a_filled_prefix_answers_as_a_cold_run(name: str, seed: int, missing: int) -> None:
    """With the young end of all layers filled, the logits of the suffix are those of a run from the first token."""
    stored = Stored(name, seed, missing)
    filled, cold = stored.filled(), stored.cold()
    assert error_in_logits(stored.continued(filled), cold) < SAME


@pytest.mark.parametrize("missing", [1, 9, WINDOW - 1])
@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_an_unfilled_window_answers_otherwise(name: str, missing: int) -> None:
    """Control: where the windows alone are left as they were found, the logits are far from those of a cold run."""
    stored = Stored(name, 0, missing)
    rows = {**stored.filled(), "window": stored.rows["window"]}
    assert error_in_logits(stored.continued(rows), stored.cold()) > OTHER


@pytest.mark.parametrize("layer", [0, 4])
@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_inputs_of_another_layer_answer_otherwise(name: str, layer: int) -> None:
    """Control: with the inputs of one layer taken for another's, the repair runs and the logits tell."""
    stored = Stored(name, 0, 9)
    inputs, place = stored.inputs["window"], stored.kinds["window"].index(layer)
    assert inputs is not None
    swapped = list(inputs.layers)
    swapped[place] = inputs.layers[place - 1]
    stored.inputs["window"] = replace(inputs, layers=tuple(swapped))
    assert error_in_logits(stored.continued(stored.filled()), stored.cold()) > OTHER


@pytest.mark.parametrize("kept", ["nothing", "too late", "too early", "a layer too few"])
def test_a_repair_without_kept_inputs_has_no_source(kept: str) -> None:
    """Inputs that are gone, and inputs of other tokens or layers, are a lost source and make no rows."""
    stored = Stored("gemma3", 0, 9)
    whole = stored.inputs["window"]
    assert whole is not None
    left = {
        "nothing": None,
        "too late": replace(whole, count=8, start=PREFIX - 8),
        "too early": replace(whole, count=whole.count - 1),
        "a layer too few": replace(whole, layers=whole.layers[1:]),
    }
    stored.inputs["window"] = left[kept]
    with pytest.raises(RepairFault) as fault:
        stored.filled()
    assert "source_lost" == fault.value.status
