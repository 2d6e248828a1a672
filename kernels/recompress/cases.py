"""The ways in which this folder's kernels are launched, so that they can be compiled without a GPU."""

from __future__ import annotations

import torch

from hitproof.kernels.configs import CompileSpec
from hitproof.kernels.norms import Norm
from hitproof.kernels.numbers import V4_ROW, plain_row
from hitproof.kernels.recompress.launch import ENTRIES, ENTRIES_ODD, STATE, entry_meaning
from hitproof.kernels.recompress.reference import Compressor
from hitproof.kernels.recompress.sources import PROJECT, PROJECT_FP32
from hitproof.kernels.rotary import Rotary, frequencies

__all__ = ["specs"]

_SOURCE = {
    "source": "*u8",
    "source_table": "*i64",
    "source_blocks": "i32",
    "source_first": "i64",
    "source_token": "i64",
    "from_block": "i64",
    "from_row": "i32",
}
_STATE = {
    "state": "*u8",
    "state_table": "*i64",
    "state_blocks": "i32",
    "state_token": "i64",
    "state_block": "i64",
    "state_row": "i32",
}
_TARGET = {
    "target": "*u8",
    "target_table": "*i64",
    "target_blocks": "i32",
    "to_block": "i64",
    "to_row": "i32",
    "to_value": "i32",
    "row": "i64",
}
_PLACES = {"ROWS": 64, "SOURCE_ROWS": 16, "STATE_ROWS": 4}
_ALIGNED = ("source", "from_block", "from_row", "state", "state_block", "state_row", "target", "to_block", "bias")


def specs() -> list[CompileSpec]:
    """Both ratios of DeepSeek-V4 from projections, with and without a state; states; projections of each format."""
    return [*_entries(), *_states(), *_projections()]


def _entries() -> list[CompileSpec]:
    from hitproof.kernels.recompress.kernel import entries_kernel

    types = {**_SOURCE, **_STATE, **_TARGET, "entry": "i64", "bias": "*fp32", "gain": "*fp32", "eps": "fp32"}
    types |= {"cosines": "*fp32", "sines": "*fp32"}
    cases = (
        ("V4 entries of ratio 4", 4, V4_ROW, {"READ": (0, True, 1, False, False, 1), "UNIT": 4}),
        ("V4 entries of ratio 128", 128, V4_ROW, {"READ": (0, True, 1, False, False, 1), "UNIT": 4}),
        ("V4 entries behind a state", 4, V4_ROW, {"READ": (0, True, 1, True, True, 1), "UNIT": 4}),
        (
            "bf16 at odd bytes",
            4,
            plain_row("bf16", 512),
            {"READ": (1, False, 2, True, False, 4), "UNIT": 1},
        ),
    )
    return [
        CompileSpec(
            entries_kernel,
            name,
            types,
            {**_PLACES, **how, **entry_meaning(_compressor(ratio), form)},
            ENTRIES if how["UNIT"] == 4 else ENTRIES_ODD,
            _ALIGNED if how["UNIT"] == 4 else (),
        )
        for name, ratio, form, how in cases
    ]


def _states() -> list[CompileSpec]:
    from hitproof.kernels.recompress.kernel import state_kernel

    types = {
        **_SOURCE,
        **_STATE,
        **_TARGET,
        "token": "i64",
        "live": "i32",
        "count": "i32",
        "bias": "*fp32",
        "width": "i32",
    }
    even = {"READ": (0, True, 1, False, False, 1), "RATIO": 4, "UNIT": 4}
    odd = {"READ": (1, False, 2, True, False, 4), "RATIO": 128, "UNIT": 1}
    return [
        CompileSpec(state_kernel, "V4 state of ratio 4", types, {**_PLACES, **even}, STATE, (*_ALIGNED, "width")),
        CompileSpec(state_kernel, "state of ratio 128 at odd bytes", types, {**_PLACES, **odd}, STATE),
    ]


def _projections() -> list[CompileSpec]:
    from hitproof.kernels.recompress.kernel import project_kernel

    types = {**_SOURCE, "made": "*fp32", "count": "i32", "weight": "", "bias": "*fp32"}
    types |= {"inputs": "i32", "width": "i32", "begin": "i32"}
    del types["source_token"]
    aligned = ("source", "from_block", "from_row", "made", "weight", "inputs", "width", "begin")
    cases = (
        ("bf16 inputs and weights", "*bf16", {"CODE": 1, "ALIGNED": 1, "NEXT": 1, "NATIVE": 1}),
        ("fp16 inputs and weights", "*fp16", {"CODE": 2, "ALIGNED": 1, "NEXT": 1, "NATIVE": 1}),
        ("bf16 inputs, float32 weights", "*fp32", {"CODE": 1, "ALIGNED": 1, "NEXT": 1, "NATIVE": 0}),
        ("float32 inputs at odd bytes", "*fp32", {"CODE": 0, "ALIGNED": 0, "NEXT": 4, "NATIVE": 0}),
    )
    return [
        CompileSpec(
            project_kernel,
            name,
            {**types, "weight": weight},
            {"SOURCE_ROWS": 16, "BIAS": 0, **how},
            PROJECT if how["NATIVE"] else PROJECT_FP32,
            aligned if how["ALIGNED"] else (),
        )
        for name, weight, how in cases
    ]


def _compressor(ratio: int) -> Compressor:
    """DeepSeek-V4's sizes; what the numbers are is of no account."""
    return Compressor(
        torch.zeros((ratio, 512 * (2 if ratio == 4 else 1))),
        Norm(torch.ones(512), 1e-6),
        Rotary(frequencies(64, 160000.0), pairing="interleaved", place="trailing"),
        overlap=ratio == 4,
    )
