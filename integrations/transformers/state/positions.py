"""How many tokens the recurrent states of each cache have seen: the library keeps no such count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["Positions", "positions_of"]


class Positions:
    """Counts the tokens of every forward pass of a model, by the cache that they went through.

    `crop` takes rows of attention layers away and leaves recurrent states as they are, so the length that a cache tells
    is that of its rows alone. It is not believed: a state that was there before anybody counted is of no known length.
    """

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Any, int | None] = WeakKeyDictionary()

    def watch(self, model: Any) -> None:
        """Count the passes of a model from now on."""
        model.base_model.register_forward_pre_hook(self._before, with_kwargs=True)
        model.base_model.register_forward_hook(self._after, with_kwargs=True)

    def of(self, cache: Any) -> int:
        """Tokens that the states of a cache have seen; 0 where there is no state, or none of known length."""
        return self._seen.get(cache) or 0 if _begun(cache) else 0

    def put(self, cache: Any, length: int) -> None:
        """Say of what length the states are that were put into a cache."""
        self._seen[cache] = length

    def _before(self, _module: Any, _given: Sequence[Any], named: Mapping[str, Any]) -> None:
        cache = _cache_in(named)
        if cache is not None and not _begun(cache):
            self._seen[cache] = 0

    def _after(self, _module: Any, _given: Sequence[Any], named: Mapping[str, Any], made: Any) -> None:
        cache = _cache_in(named)
        if cache is None and (cache := getattr(made, "cache", None)) is not None:
            self._seen[cache] = 0
        if cache is not None and (before := self._seen.get(cache)) is not None:
            self._seen[cache] = before + int(made[0].shape[1])


def positions_of(model: Any) -> Positions:
    """The one count of a model, whoever asks; counting begins with the first one who does."""
    if model not in _COUNTS:
        _COUNTS[model] = Positions()
        _COUNTS[model].watch(model)
    return _COUNTS[model]


_COUNTS: WeakKeyDictionary[Any, Positions] = WeakKeyDictionary()


def _cache_in(named: Mapping[str, Any]) -> Any:
    """The cache that a pass was given, under its name or its older one."""
    cache = named.get("cache")
    return named.get("past_key_values") if cache is None else cache


def _begun(cache: Any) -> bool:
    """Whether a recurrent layer of the cache has a state."""
    return any(any(layer.has_previous_state.values()) for layer in cache.layers if hasattr(layer, "has_previous_state"))
