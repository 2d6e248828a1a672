"""The digest of index keys: their bytes, and what their bytes mean."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from hitproof.spec.errors import TensorError

__all__ = ["KeyConfig", "key_digest"]


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """What keys stand for.

    Args:
        start, end: Tokens that they cover, whole entries.
        ratio: Tokens a key; 1 where every token has its own.
        encoding: Name of the row format in which they are stored.
        rotation: `none`, or the name of the orthogonal matrix by which they were turned.

    Raises:
        TensorError: The span is not of whole entries.
    """

    start: int
    end: int
    ratio: int
    encoding: str
    rotation: str = "none"

    def __post_init__(self) -> None:
        spans = 0 <= self.start <= self.end and self.ratio >= 1
        if not spans or self.start % self.ratio or self.end % self.ratio:
            raise TensorError(
                "index keys cover whole entries",
                got=(self.start, self.end),
                expected=f"multiples of {self.ratio}, in order",
            )


def key_digest(fingerprint: str, config: KeyConfig) -> str:
    """One name for these bytes with this meaning, 16 hexadecimal digits.

    The same bytes under another span, ratio, encoding or rotation are other keys, and must not pass for these. A
    digest tells what is damaged or mixed up; it is no proof against whoever wants to be mistaken.

    Args:
        fingerprint: Of the keys' rows in token order, as `checksum` makes it.
        config: What the rows stand for.
    """
    parts = (fingerprint, config.start, config.end, config.ratio, config.encoding, config.rotation)
    digest = blake2b(digest_size=8)
    for part in parts:
        text = str(part).encode()
        # With lengths, so that no two lists of parts read alike.
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()
