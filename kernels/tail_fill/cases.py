"""The ways in which this folder's kernel is launched, so that it can be compiled without a GPU."""

from __future__ import annotations

import torch

from hitproof.kernels.configs import CompileSpec
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.numbers import ROUNDING, plain_row
from hitproof.kernels.rotary import Rotary, frequencies
from hitproof.kernels.tail_fill.launch import MadeRows, configs_for, meaning

__all__ = ["specs"]


def specs() -> list[CompileSpec]:
    """Keys of which all numbers turn, a latent and its rotary part, values with a bias; every format of inputs."""
    from hitproof.kernels.tail_fill.kernel import fill_kernel

    types = {"source": "*u8", "source_table": "*i64", "source_blocks": "i32", "source_first": "i32"}
    types |= {"from_block": "i64", "from_row": "i32"}
    types |= {"target": "*u8", "target_table": "*i64", "target_blocks": "i32", "target_first": "i32"}
    types |= {"to_block": "i64", "to_row": "i32", "to_head": "i32", "to_value": "i32", "count": "i32"}
    types |= {"input_gain": "*fp32", "input_eps": "fp32", "weight": "", "bias": ""}
    types |= {"head_gain": "*fp32", "head_eps": "fp32", "cosines": "*fp32", "sines": "*fp32", "inputs": "i32"}
    aligned = ("source", "from_block", "from_row", "target", "to_block", "weight", "inputs")
    before = Norm(torch.ones(1), 1e-6, rounds_first=True)
    none = Linear(torch.empty(0))
    keys = MadeRows(none, Norm(torch.ones(256), 1e-6, plus_one=True), Rotary(frequencies(256, 1e4)), False)
    turning = Rotary(frequencies(64, 1e4), pairing="interleaved_to_half", place="trailing")
    latents = MadeRows(none, Norm(torch.ones(512), 1e-6, rounds_first=True), turning, False)
    values = MadeRows(Linear(torch.empty(0), torch.empty(0)), None, None, False)
    cases = (
        ("keys of 256", keys, "bf16", 256, 1),
        ("latents of 576", latents, "bf16", 576, 1),
        ("values of 128, at odd bytes", values, "fp16", 128, 0),
        ("keys of 256, at odd bytes", keys, "fp32", 256, 0),
        ("latents of 576, at odd bytes", latents, "fp32", 576, 0),
    )
    found = []
    for name, rows, dtype, size, even in cases:
        next_ = 1 if even else ROUNDING[dtype].bytes
        place = {
            "ROWS": 64,
            "SOURCE_ROWS": 64,
            "ALIGNED": even,
            "NEXT": next_,
            "NATIVE": int(dtype != "fp32"),
            "UNIT": 4 * even or 1,
        }
        form = plain_row(dtype, size)
        typed = {**types, "weight": f"*{dtype}", "bias": f"*{dtype}"}
        found.append(
            CompileSpec(
                fill_kernel,
                f"{name}, {dtype}",
                typed,
                place | meaning(form, before, rows, form),
                configs_for(size, form),
                aligned if even else (),
            )
        )
    return found
