"""Chunks of LMCache as pages: what their keys tell of them, under which names they lie, and how they are judged."""

from __future__ import annotations

from typing import Any

import torch
from lmcache.utils import CacheEngineKey
from lmcache.v1.memory_management import MemoryFormat, MemoryObj

from hitproof.engine import load
from hitproof.integrations.gate import PageOpened, PageRefused, PageSeal
from hitproof.integrations.lmcache.model import GROUP, ChunkShape, chunk_profile, layout_digest
from hitproof.integrations.lmcache.settings import Settings
from hitproof.spec.errors import UsageError

__all__ = ["ChunkPages"]

IN_THE_HASH = "in the chunk hash"
"""LMCache puts digests of media in place of their tokens before it hashes, so a key names them already."""


class ChunkPages:
    """Judges chunks of one worker.

    A key does not tell where in its prompt a chunk begins; its hash covers all tokens before it. So a page's span
    counts from the chunk's own first token, and its place is told by the hash alone.

    Args:
        metadata: LMCache's own.
        chunk_tokens: Tokens of a whole chunk.
        settings: Whose the pages are.
        version: LMCache's version; another one may lay out chunks otherwise.

    Raises:
        UsageError: The number format has scales, and nobody states their version.
    """

    def __init__(self, metadata: Any, chunk_tokens: int, settings: Settings, version: str) -> None:
        dtypes = metadata.get_dtypes()
        shape = ChunkShape(
            tuple(tuple(one) for one in metadata.get_shapes(1)),
            tuple(one.itemsize for one in dtypes),
            metadata.kv_shape[0],
        )
        scales = settings.stated.get("scale_version")
        if min(shape.itemsizes) == 1 and scales is None:
            raise UsageError("keys and values have scales, and nobody states which", expected="hitproof.scale_version")
        self.engine = load(chunk_profile(metadata.model_name, shape), settings.rulebook)
        self.fmt = MemoryFormat.KV_MLA_FMT if metadata.use_mla else MemoryFormat.KV_2LTD
        self.worker = f"{metadata.worker_id}-of-{metadata.world_size}"
        self._settings, self._chunk_tokens = settings, chunk_tokens
        usual = {name: value for name, value in settings.stated.items() if name != "scale_version"}
        usual.setdefault("attention_config", layout_digest(metadata.model_name, shape, metadata.use_mla))
        usual.setdefault("media", IN_THE_HASH)
        contract = {
            **_told_by(self.fmt, dtypes),
            "version": f"lmcache {version}",
            "scale_version": scales or "none",
            "shard": self.worker,
        }
        self._pages = PageSeal(self.engine, GROUP, identity=usual, contract=contract, secret=settings.secret)

    def name(self, key: CacheEngineKey) -> str | None:
        """Name of the file of a key; None where the request does not tell all that a key must name."""
        digest, identity = key.to_string(), self._identity(key)
        return self._pages.key(digest, end=self._chunk_tokens, identity=identity, tier="disk")

    def record(self, key: CacheEngineKey, obj: MemoryObj, payload: memoryview) -> bytes:
        """The record of a chunk, under the layout that its memory really has."""
        tokens = obj.metadata.shape[obj.metadata.fmt.token_dim()]
        dtypes = obj.metadata.dtypes or [obj.metadata.dtype]
        return self._pages.seal(
            payload,
            start=0,
            end=tokens,
            digest=key.to_string(),
            identity=self._identity(key),
            contract=_told_by(obj.metadata.fmt, dtypes),
        )

    def tokens(self, start: bytes) -> int:
        """Tokens of the chunk whose file begins so; 0 where its record cannot be read."""
        parts = self._pages.split(start)
        span = parts if isinstance(parts, PageRefused) else self._pages.span(parts[0])
        return 0 if isinstance(span, PageRefused) else span[1]

    def peek(self, key: CacheEngineKey, start: bytes) -> PageRefused | None:
        """What speaks against a chunk by the beginning of its file."""
        parts = self._pages.split(start)
        if isinstance(parts, PageRefused):
            return parts
        asked = {"start": 0, "end": self.tokens(start), "digest": key.to_string(), "identity": self._identity(key)}
        return self._pages.peek(parts[0], **asked)

    def open(self, key: CacheEngineKey, content: bytes) -> tuple[int, PageOpened | PageRefused]:
        """Tokens of a chunk by its own record, and whether it may be used."""
        parts = self._pages.split(content)
        if isinstance(parts, PageRefused):
            return 0, parts
        tokens = self.tokens(content)
        asked = {"start": 0, "end": tokens, "digest": key.to_string(), "identity": self._identity(key)}
        return tokens, self._pages.open(*parts, **asked)

    def _identity(self, key: CacheEngineKey) -> dict[str, str]:
        return self._settings.identity({str(name): str(value) for name, value in key.tags or ()})


def _told_by(fmt: MemoryFormat, dtypes: list[torch.dtype]) -> dict[str, str]:
    """Facts of an interface that a chunk's memory tells."""
    encoding = ", ".join(str(one).removeprefix("torch.") for one in dtypes)
    return {"layout": fmt.name, "v_layout": fmt.name, "encoding": encoding}
