"""Which lengths keep the state that belongs to a length: windows, compressor states and recurrent states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hitproof.spec.condition import Literal, Node, bind, python_true
from hitproof.spec.errors import UsageError
from hitproof.spec.policy import RetentionRule

__all__ = ["Retention"]


class Retention:
    """A retention rule over block boundaries; a boundary is counted in whole blocks from the start of the prompt.

    Attributes:
        name: Id of the rule.
        everywhere: Each whole block keeps the state at its end, so that nothing need be noted.
        nowhere: No block does.
        device_only: What is kept is lost once its block leaves the device.

    Args:
        rules: The rulebook's retention rules.
        name: Id of one of them.
        period: Blocks from one kept boundary to the next, for a rule that reads `period`.

    Raises:
        UsageError: There is no such rule, or the period is no whole number of at least 1.
    """

    __slots__ = ("_chosen", "device_only", "everywhere", "name", "nowhere", "period")

    def __init__(self, rules: Mapping[str, RetentionRule], name: str, period: int = 16) -> None:
        if name not in rules:
            raise UsageError("the retention is not known", got=name, expected=", ".join(rules) or "none is declared")
        if type(period) is not int or period < 1:
            raise UsageError("the period cannot be used", got=period, expected="a whole number of blocks, at least 1")
        rule = rules[name]
        keep = bind(rule.keep, {"period": period}, where=rule.where, rule=rule.id)
        self.name, self.period = name, period
        self.everywhere = isinstance(keep, Literal) and keep.value is True
        self.nowhere = isinstance(keep, Literal) and keep.value is False
        self.device_only = rule.follows == "device"
        self._chosen = _chooser(keep)

    @property
    def noted(self) -> bool:
        """Whether it is noted block by block what is kept."""
        return not self.everywhere and not self.nowhere

    def boundaries(self, computed: int, last: int) -> Iterable[int]:
        """The boundaries that a request leaves to be noted.

        Args:
            computed: Blocks of the request that were reused; the boundaries beyond were computed by it.
            last: The request's last boundary; its state is at hand even where it was reused.
        """
        if not self.noted or not last:
            return ()
        return self._chosen(min(computed + 1, last), last)


def _chooser(keep: Node) -> Callable[[int, int], list[int]]:
    """The boundaries from the first to the last of a request that a condition keeps."""
    text = python_true(keep, lambda path: (path, False), trusted=True)
    space: dict[str, Callable[[int, int], list[int]]] = {}
    lines = f"def chosen(first, last):\n    return [boundary for boundary in range(first, last + 1) if {text}]"
    exec(compile(lines, "<retention>", "exec"), space)  # the text is made from a checked tree, never from a file
    return space["chosen"]
