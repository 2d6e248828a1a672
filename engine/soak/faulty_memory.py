"""A memory that loses, tears, misdirects and delays what it is asked to do, and tells the ledger each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from hitproof.engine.soak.ledger import Fault, Ledger, Place
from hitproof.spec.memory import Extent, Fence, HostRows, Memory, Payload, PoolShape

__all__ = ["FaultyMemory"]

_SLOW_S = 0.004


class FaultyMemory:
    """A `Memory` around another one.

    Args:
        memory: What really keeps the bytes.
        ledger: Is told of each fault, and of what happens to spoiled bytes.
        draw: Decides what fails.
        rates: Probability of each kind at each call that it can befall.
        pause: Lets so many seconds pass, for slow loads.
    """

    def __init__(
        self,
        memory: Memory,
        ledger: Ledger,
        draw: Random,
        rates: Mapping[str, float],
        pause: Callable[[float], None],
    ) -> None:
        self.memory, self.ledger = memory, ledger
        self._draw, self._rates, self._pause = draw, rates, pause
        self._odd: dict[Place, tuple[int, int, Fault]] = {}

    def groups(self) -> tuple[str, ...]:
        """As `Memory`."""
        return self.memory.groups()

    def shape(self, group: str) -> PoolShape:
        """As `Memory`."""
        return self.memory.shape(group)

    def address(self, group: str, block: int) -> int:
        """As `Memory`, and no multiple of the alignment where a load has left the bytes at an odd place."""
        shift = self.oddity(group, block)
        if shift:
            self.ledger.catch([self._odd[group, block][2]], self.ledger.moment)
        return self.memory.address(group, block) + shift

    def oddity(self, group: str, block: int) -> int:
        """Bytes by which a block's address is off, as long as it is not given out anew."""
        known = self._odd.get((group, block))
        return known[0] if known is not None and self.ledger.serial(group, block) == known[1] else 0

    def write(self, extent: Extent, first: int, payload: Payload) -> None:
        """As `Memory`; or not at all, or elsewhere."""
        if self._happens("lost_write"):
            self.ledger.inject("lost_write", self._rows(extent, first, payload))
        elif not (self._happens("wrong_object") and self._misdirect(extent, first, payload)):
            self.memory.write(extent, first, payload)

    def read(self, extent: Extent) -> bytes:
        """As `Memory`."""
        return self.memory.read(extent)

    def fingerprint(self, extent: Extent) -> str:
        """As `Memory`; whoever measures spoiled rows has noticed the fault."""
        measured = self.memory.fingerprint(extent)
        self.noticed(extent)
        return measured

    def noticed(self, extent: Extent) -> None:
        """Whoever measures these rows now has noticed the faults that spoiled them."""
        faults = [fault for fault in self.ledger.of(_places(extent)) if fault.kind != "odd_address"]
        if faults:
            self.ledger.catch(faults, self.ledger.moment)

    def made_of(self, sources: Iterable[Extent], target: Extent) -> None:
        """Rows were computed from others; what had spoiled these has spoiled them too."""
        for fault in self.ledger.of([place for source in sources for place in _places(source)]):
            self.ledger.spoil(fault, _places(target))

    def digest(self, group: str, payload: Payload) -> str:
        """As `Memory`."""
        return self.memory.digest(group, payload)

    def copy(self, source: Extent, target: Extent) -> None:
        """As `Memory`; or half of it."""
        self.memory.copy(source, target)
        self.ledger.follow(_places(source), _places(target))
        self._tear(target)

    def host(self, group: str, rows: int) -> HostRows:
        """As `Memory`."""
        made = self.memory.host(group, rows)
        self.ledger.rewritten([_host(made)])
        return made

    def save(self, source: Extent, host: HostRows, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`; or half of it, or it tells of places that failed."""
        failed = self.memory.save(source, host, places)
        self.ledger.follow(_places(source), [_host(host)])
        if places and self._happens("failed_load"):
            return (*failed, self._told(places))
        if host.nbytes and self._happens("torn_copy"):
            payload = self.memory.payload(host)
            payload[len(payload) // 2 :] = bytes(255 - byte for byte in payload[len(payload) // 2 :])
            self.ledger.inject("torn_copy", [_host(host)])
        return failed

    def load(self, host: HostRows, target: Extent, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`; or late, half of it, to an odd address, or it tells of places that failed."""
        if self._happens("slow_load"):
            self.ledger.catch([self.ledger.inject("slow_load")], "waited for")
            self._pause(_SLOW_S)
        failed = self.memory.load(host, target, places)
        self.ledger.follow([_host(host)], _places(target))
        if places and self._happens("failed_load"):
            place = self._told(places)
            self.memory.poison(target.group, [target.blocks[place]])
            return (*failed, place)
        self._tear(target)
        if target.blocks and self._happens("odd_address"):
            first = (target.group, target.blocks[0])
            shift = self._draw.choice((16, 48, 64))
            self._odd[first] = (shift, self.ledger.serial(*first), self.ledger.inject("odd_address", [first]))
        return failed

    def payload(self, host: HostRows) -> memoryview:
        """As `Memory`."""
        return self.memory.payload(host)

    def fill(self, host: HostRows, payload: Payload) -> None:
        """As `Memory`."""
        self.memory.fill(host, payload)
        self.ledger.rewritten([_host(host)])

    def poison(self, group: str, blocks: Sequence[int]) -> None:
        """As `Memory`."""
        self.memory.poison(group, blocks)

    def fence(self) -> Fence:
        """As `Memory`."""
        return self.memory.fence()

    def _happens(self, kind: str) -> bool:
        return self._draw.random() < self._rates.get(kind, 0.0)

    def _tear(self, target: Extent) -> None:
        if target.rows and self._happens("torn_copy"):
            last = target.blocks[self.shape(target.group).blocks_for(target.rows) - 1]
            self.memory.poison(target.group, [last])
            self.ledger.inject("torn_copy", [(target.group, last)])

    def _told(self, places: Sequence[int]) -> int:
        self.ledger.catch([self.ledger.inject("failed_load")], "places that failed were told")
        return self._draw.choice(list(places))

    def _misdirect(self, extent: Extent, first: int, payload: Payload) -> bool:
        """Write a row of the payload into a block that may be anybody's; False where somebody reads there."""
        group = self._draw.choice(self.groups())
        shape = self.shape(group)
        block = self._draw.randrange(shape.blocks)
        content = bytes(payload) * (shape.payload_bytes(1) // max(1, len(payload)) + 1)
        with self.ledger.lock:
            if not payload or self.ledger.spared([(group, block)]) or block in extent.blocks:
                return False
            self.memory.write(Extent(group, (block,), 1), 0, content[: shape.payload_bytes(1)])
            self.ledger.inject("wrong_object", [(group, block), *self._rows(extent, first, payload)])
        return True

    def _rows(self, extent: Extent, first: int, payload: Payload) -> list[Place]:
        """The blocks in which rows of a payload belong."""
        shape = self.shape(extent.group)
        last = first + len(payload) // shape.payload_bytes(1) - 1
        blocks = extent.blocks[first // shape.rows : last // shape.rows + 1] if last >= first else ()
        return [(extent.group, block) for block in blocks]


def _places(extent: Extent) -> Iterable[Place]:
    return [(extent.group, block) for block in extent.blocks]


def _host(host: HostRows) -> Place:
    return "host", id(host)
