"""The prefill of one transformer block, timed by torch and scaled up to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hitproof.engine.calibrate.sampling import Stopwatch, rate_of
from hitproof.spec.errors import UsageError
from hitproof.spec.rates import Rate

__all__ = ["Block", "measure_prefill"]

HEAD_WIDTH = 128


@dataclass(frozen=True, slots=True)
class Block:
    """A dense block: attention with as many key heads as query heads, and a feed-forward part four times as wide.

    Attributes:
        hidden: Its width, a multiple of 128.
        tokens: Tokens of one run.
        dtype: Name of the number format in torch.
        device: Name of the device in torch.
    """

    hidden: int
    tokens: int
    dtype: str
    device: str

    @property
    def parameters(self) -> int:
        """4 hidden^2 of attention and 8 hidden^2 of the feed-forward part."""
        return 12 * self.hidden**2


ON_CPU = Block(hidden=1024, tokens=512, dtype="float32", device="cpu")
ON_CUDA = Block(hidden=4096, tokens=4096, dtype="bfloat16", device="cuda")


def measure_prefill(
    watch: Stopwatch, torch: Any, *, layers: int, active_parameters: int, block: Block | None = None
) -> dict[str, Rate]:
    """Prefill and projection rates of a model, from one block.

    The work of a token is taken to be two operations for each parameter that takes part in it. So the time of a
    token in the block is multiplied by `active_parameters` over the block's parameters, and the time of its key and
    value projection by the parameters of one layer over the block's.

    Args:
        watch: Times the block.
        torch: The library; None where it is not installed.
        layers: Layers of the model.
        active_parameters: Parameters of the model that take part in one token.
        block: What is run, else one that suits the device.

    Raises:
        UsageError: torch is not installed.
    """
    if torch is None:
        raise UsageError(
            "measuring the prefill needs torch",
            got="no torch",
            expected="torch, or a rate that is given",
            hint="pip install 'hitproof[kernels]', or pass --prefill-us-per-token",
        )
    block = block or (ON_CUDA if torch.cuda.is_available() else ON_CPU)
    forward, project = _works(torch, block)
    whole = active_parameters / block.parameters
    layer = whole / layers
    shown = f"{block.tokens} tokens, width {block.hidden}, {block.dtype} on {block.device}"
    with torch.inference_mode():
        return {
            "prefill_us_per_token": rate_of(
                watch.time(forward),
                block.tokens / whole,
                "us/tokens",
                f"one dense block of {block.parameters:,} parameters, {shown}; times {whole:.4g}, "
                f"for {active_parameters:,} active parameters",
                "scaled",
            ),
            "layer_us_per_token": rate_of(
                watch.time(project),
                block.tokens / layer,
                "us/(layers*tokens)",
                f"the key and value projection of that block, {shown}; times {layer:.4g}, "
                f"for one of {layers} layers of {active_parameters:,} active parameters",
                "scaled",
            ),
        }


def _works(torch: Any, block: Block) -> tuple[Callable[[], object], Callable[[], object]]:
    """The forward pass of the block, and its key and value projection alone."""
    like = {"dtype": getattr(torch, block.dtype), "device": block.device}
    wide, heads = block.hidden, block.hidden // HEAD_WIDTH
    torch.manual_seed(0)

    def matrix(rows: int, columns: int) -> Any:
        return torch.randn(rows, columns, **like) * columns**-0.5

    x = torch.randn(block.tokens, wide, **like)
    query, keys, out = matrix(wide, wide), matrix(2 * wide, wide), matrix(wide, wide)
    up, down = matrix(4 * wide, wide), matrix(wide, 4 * wide)
    functions = torch.nn.functional
    wait = torch.cuda.synchronize if block.device == "cuda" else lambda: None

    def split(rows: Any) -> Any:
        return rows.view(block.tokens, heads, HEAD_WIDTH).transpose(0, 1).unsqueeze(0)

    def forward() -> None:
        normed = functions.layer_norm(x, (wide,))
        k, v = functions.linear(normed, keys).chunk(2, dim=-1)
        q = functions.linear(normed, query)
        mixed = functions.scaled_dot_product_attention(
            split(q), split(k.contiguous()), split(v.contiguous()), is_causal=True
        )
        read = x + functions.linear(mixed.squeeze(0).transpose(0, 1).reshape(block.tokens, wide), out)
        read + functions.linear(functions.gelu(functions.linear(functions.layer_norm(read, (wide,)), up)), down)
        wait()

    def project() -> None:
        functions.linear(x, keys)
        wait()

    return forward, project
