"""Stand-ins for rules that a proof did not say it reads: to read them all the same is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hitproof.spec.errors import InternalError

__all__ = ["SomeConstants", "Withheld"]


class Withheld:
    """Stands where a part said that it reads nothing; to read it all the same is a mistake of the claim."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *_: object) -> Any:
        raise InternalError(f"a proof reads {self._what}, which its part does not name")

    __iter__ = __len__ = __getitem__ = __contains__ = __bool__ = __call__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


class SomeConstants(Mapping[str, int | bool]):
    """Those constants of a group that a part may read; asking for another one that the group has is refused."""

    def __init__(self, values: Mapping[str, int | bool], allowed: frozenset[str]) -> None:
        self._values, self._allowed = values, allowed

    def __getitem__(self, name: str) -> int | bool:
        if name in self._values and name not in self._allowed:
            raise InternalError(f"a proof reads the constant '{name}', which its part does not name")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._values if name in self._allowed)

    def __len__(self) -> int:
        return sum(1 for _ in self)
