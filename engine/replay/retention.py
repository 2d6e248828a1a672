"""Which lengths keep the state that belongs to a length: windows, compressor states and recurrent states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from hitproof.spec.errors import UsageError

__all__ = ["MODES", "Mode", "Retention"]

Mode = Literal["full", "periodic", "zero", "until_reallocated"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Retention:
    """A policy over block boundaries; a boundary is counted in whole blocks from the start of the prompt.

    Attributes:
        mode: `full`: every boundary. `periodic`: every `period`-th boundary, and the last one of each request.
            `zero`: none. `until_reallocated`: the last one of each request, for as long as its block stays on
            the device. What `full` and `periodic` keep moves through the tiers with its block.
        period: Blocks from one kept boundary to the next in `periodic`.

    Raises:
        UsageError: The mode is not known, or the period is no whole number of at least 1.
    """

    mode: Mode
    period: int = 16

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError("the retention is not known", got=self.mode, expected=", ".join(MODES))
        if type(self.period) is not int or self.period < 1:
            raise UsageError(
                "the period cannot be used", got=self.period, expected="a whole number of blocks, at least 1"
            )

    @property
    def everywhere(self) -> bool:
        """Whether each whole block keeps the state at its end, so that nothing need be noted."""
        return self.mode == "full"

    @property
    def noted(self) -> bool:
        """Whether it is noted block by block what is kept."""
        return self.mode in ("periodic", "until_reallocated")

    @property
    def device_only(self) -> bool:
        """Whether what is kept is lost once its block leaves the device."""
        return self.mode == "until_reallocated"

    def boundaries(self, computed: int, last: int) -> Iterable[int]:
        """The boundaries that a request leaves to be noted.

        Args:
            computed: Blocks of the request that were reused; the boundaries beyond were computed by it.
            last: The request's last boundary; its state is at hand even where it was reused.
        """
        if not self.noted or not last:
            return ()
        if self.mode == "until_reallocated":
            return (last,)
        first = (computed // self.period + 1) * self.period
        return (*range(first, last, self.period), last)
