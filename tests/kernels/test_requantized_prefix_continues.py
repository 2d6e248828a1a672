"""A prefix whose rows changed their number format: exact where the values fit, else as far off as rounding lets them.

How far logits may be off is worked out from the table of roundings and not from the repair: every value is moved by a
random share of what one rounding may change, and the logits of the repaired rows may be no further off than those of
the worst of these draws. Distances are root mean squares, since DeepSeek-V4 selects entries, and where rounding tips a
selection a single logit tells nothing. States of its compressors stay float32, as its own cache keeps them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache as once
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.kernels.numbers import ROUNDING, Part, RowFormat, plain_row  # noqa: E402
from hitproof.kernels.requantize import static_scales  # noqa: E402
from hitproof.kernels.selftest.trial import allowed_error  # noqa: E402
from tests.kernels.whole_cache import (  # noqa: E402
    Group,
    Rows,
    measured,
    mended,
    plain,
    prefix_of,
    read,
    room,
    store,
)

MODELS = ["gemma3", "gpt_oss", "v4"]
SCALES = ["in the row", "powers of two", "apart"]
FORMATS = ["fp8_e4m3", "fp8_e5m2"]
DRAWS = 8


def changed(groups: list[Group], dtype: str, scales: str = "none") -> list[Group]:
    """All groups but states in another format, a request each."""
    return [group if group.kind == "state" else _changed(group, dtype, scales) for group in groups]


def _changed(group: Group, dtype: str, scales: str) -> Group:
    form, apart = form_of(group, dtype, scales), None
    held = group.held
    if scales == "apart":
        # One number a head that suits all layers of the segment, as a kernel has them that is compiled with them.
        of_layers = [static_scales(pool, held.table, held.count, held.form, dtype) for pool in held.layers]
        apart = torch.stack(of_layers).amax(dim=0)
    copy, done = mended("requantize", group, room(held, plain, form, apart), {})
    assert "approximate" == done.assigned["exactness"]
    assert ("encoding of the copy", "scales of the copy") == (
        done.assigned["encoding"],
        done.assigned["scale_version"],
    )
    assert measured(copy) == done.measured["measured"] == done.measured["recorded"]
    return copy


def form_of(group: Group, dtype: str, scales: str) -> RowFormat:
    """How the group's rows look in a format."""
    size = group.held.form.values
    if scales in ("none", "apart"):
        return plain_row(dtype, size)
    if scales == "in the row":
        return RowFormat((Part(dtype, size),), "fp32", size)
    if group.kind == "entries":
        # As DeepSeek-V4 stores them: the rotary part stays bfloat16, and a byte is left over.
        return RowFormat((Part(dtype, size - 8), Part("bf16", 8)), "e8m0", 8, 1)
    return RowFormat((Part(dtype, size),), "e8m0", 8)


@once
def stored_as_bf16(model: str) -> tuple[list[Group], Any]:
    """The prefix as a cache of bfloat16 rows, and the logits behind it."""
    groups = changed(store(prefix_of(model).rows), "bf16")
    return groups, prefix_of(model).continued(read(groups))


def distance(model: str, rows: Rows, other: Any) -> float:
    """Root mean square of the differences of logits, as a share of the cold spread; of unrelated logits about 1.4."""
    prefix = prefix_of(model)
    return float((prefix.continued(rows) - other).square().mean().sqrt() / prefix.cold.std())


def rounding(group: Group, values: Any, dtype: str, scales: str) -> Any:
    """How far each value of a group [L, T, H, V] may be off once it was rounded to the format, by the table."""
    form, largest = form_of(group, dtype, scales), ROUNDING[dtype].largest
    if form.scales == "e8m0":
        # The next power of two is less than twice as large as the exact scale.
        exact = values[..., : form.small].unflatten(-1, (-1, form.group)).abs().amax(-1) / largest
        small = allowed_error(values[..., : form.small], dtype, (2 * exact).repeat_interleave(form.group, -1))
        return torch.cat([small, allowed_error(values[..., form.small :], "bf16")], dim=-1)
    over = (-1,) if form.scales == "fp32" else (0, 1, 3)
    return allowed_error(values, dtype, values.abs().amax(dim=over, keepdim=True) / largest)


@once
def worst_of_draws(model: str, dtype: str, scales: str) -> float:
    """The largest distance when every value moves by a random share of what rounding may change."""
    groups, untouched = stored_as_bf16(model)
    rows, worst = read(groups), 0.0
    for seed in range(DRAWS):
        draw, moved = torch.Generator().manual_seed(seed), dict(rows)
        for group in groups:
            if group.kind != "state":
                values = torch.stack([rows[place] for place in group.places])
                share = 2 * torch.rand(values.shape, generator=draw) - 1
                values = values + share * rounding(group, values, dtype, scales)
                moved.update(zip(group.places, values, strict=True))
        worst = max(worst, distance(model, moved, untouched))
    return worst


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_a_prefix_in_eight_bits_answers_within_its_rounding(model: str, dtype: str, scales: str) -> None:
    """From bfloat16 to fp8 and back, logits are off by no more than rounding of that format can account for."""
    groups, untouched = stored_as_bf16(model)
    back = changed(changed(groups, dtype, scales), "bf16")
    assert 0 < distance(model, read(back), untouched) < worst_of_draws(model, dtype, scales)


@pytest.mark.parametrize("model", MODELS)
def test_a_prefix_in_wider_numbers_answers_the_same(model: str) -> None:
    """From bfloat16 to float32 no value changes and no logit."""
    groups, untouched = stored_as_bf16(model)
    wide = changed(groups, "fp32")
    assert {"fp32"} == {group.held.form.parts[0].dtype for group in wide}
    assert torch.equal(untouched, prefix_of(model).continued(read(wide)))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_eight_bits_with_scales_of_two_are_widened_exactly(model: str, dtype: str) -> None:
    """A value of fp8 times a power of two is a bfloat16, so reading the copy of the copy gives the same logits."""
    small = changed(stored_as_bf16(model)[0], dtype, "powers of two")
    wide = changed(small, "bf16")
    assert torch.equal(prefix_of(model).continued(read(small)), prefix_of(model).continued(read(wide)))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_eight_bits_read_without_their_scales_answer_otherwise(model: str, dtype: str) -> None:
    """Control: the bytes are right and their fingerprint too, but without the scales they are other numbers."""
    groups, untouched = stored_as_bf16(model)
    small = changed(groups, dtype, "apart")
    blind = [replace(group, held=replace(group.held, scale=None)) for group in small]
    assert [measured(group) for group in small] == [measured(group) for group in blind]
    assert distance(model, read(blind), untouched) > worst_of_draws(model, dtype, "apart")
