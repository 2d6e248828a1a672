"""A server on a CPU around the real LMCache: two layers of attention with random weights, and their cache."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import Any

import torch
from lmcache.v1.cache_engine import LMCacheEngine, LMCacheEngineBuilder
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.gpu_connector.gpu_connectors import GPUConnectorInterface
from lmcache.v1.metadata import LMCacheMetadata

LAYERS, HEADS, WIDTH, CHUNK, WORDS = 2, 2, 8, 16, 64
HIDDEN = HEADS * WIDTH
PLUGIN = {
    "storage_plugin.hitproof.module_path": "hitproof.integrations.lmcache.storage",
    "storage_plugin.hitproof.class_name": "ValidatedStorage",
    "hitproof.weights": "seed 0",
    "hitproof.adapter": "none",
    "hitproof.salt": "none",
}


class Connector(GPUConnectorInterface):  # type: ignore[misc]
    """Copies chunks between LMCache's memory and the cache of one request, `kv` [2, L, N, D]."""

    def to_gpu(self, memory_obj: Any, start: int, end: int, **kwargs: Any) -> None:
        """From LMCache to the cache."""
        kwargs["kv"][:, :, start:end] = memory_obj.tensor

    def from_gpu(self, memory_obj: Any, start: int, end: int, **kwargs: Any) -> None:
        """From the cache to LMCache."""
        memory_obj.tensor.copy_(kwargs["kv"][:, :, start:end])

    def batched_to_gpu(self, memory_objs: Any = None, starts: Any = None, ends: Any = None, **kwargs: Any) -> None:
        """Several chunks."""
        for obj, start, end in zip(memory_objs, starts, ends, strict=True):
            self.to_gpu(obj, start, end, **kwargs)

    def batched_from_gpu(self, memory_objs: Any, starts: Any, ends: Any, **kwargs: Any) -> None:
        """Several chunks."""
        for obj, start, end in zip(memory_objs, starts, ends, strict=True):
            self.from_gpu(obj, start, end, **kwargs)

    def get_shape(self, num_tokens: int) -> torch.Size:
        """Shape of a chunk."""
        return torch.Size([2, LAYERS, num_tokens, HIDDEN])


class Model:
    """Causal attention, layer on layer; an adapter is another seed for the projections of keys and values."""

    def __init__(self, seed: int = 0, adapter: int = 0) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.words = torch.randn(WORDS, HIDDEN, generator=draw)
        self.places = torch.randn(512, HIDDEN, generator=draw)
        self.read = torch.randn(LAYERS, HIDDEN, HIDDEN, generator=draw) / HIDDEN**0.5
        draw = torch.Generator().manual_seed(1000 * seed + adapter)
        self.write = torch.randn(2, LAYERS, HIDDEN, HIDDEN, generator=draw) / HIDDEN**0.5
        self.out = torch.randn(HIDDEN, WORDS, generator=torch.Generator().manual_seed(seed + 7))

    def serve(self, tokens: torch.Tensor, kv: torch.Tensor, cached: int) -> torch.Tensor:
        """Logits of the last token, with the first `cached` rows of `kv` read and the rest written."""
        rows = self.words[tokens[cached:]] + self.places[cached : len(tokens)]
        for layer in range(LAYERS):
            for half in range(2):
                kv[half, layer, cached : len(tokens)] = rows @ self.write[half, layer]
            query = (rows @ self.read[layer]).view(-1, HEADS, WIDTH).transpose(0, 1)
            key, value = (kv[half, layer, : len(tokens)].view(-1, HEADS, WIDTH).transpose(0, 1) for half in range(2))
            scores = query @ key.transpose(1, 2) / WIDTH**0.5
            seen = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()[cached:]
            mixed = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ value
            rows = rows + mixed.transpose(0, 1).reshape(-1, HIDDEN)
        return rows[-1] @ self.out


class Server:
    """One LMCache engine and one model."""

    def __init__(self, name: str, extra: dict[str, Any], model: Model | None = None, **options: Any) -> None:
        self.name, self.model = name, model or Model()
        stated: dict[str, Any] = {"chunk_size": CHUNK, "local_cpu": False, "max_local_cpu_size": 0.02}
        if extra:
            stated |= {"storage_plugins": ["hitproof"], "extra_config": extra}
        dtype = options.pop("dtype", torch.float32)
        config = LMCacheEngineConfig.from_dict({**stated, **options})
        shape = (LAYERS, 2, CHUNK, HEADS, WIDTH)
        metadata = LMCacheMetadata("toy", 1, 1, 0, 0, dtype, shape, role="worker", chunk_size=CHUNK)
        self.engine: LMCacheEngine = LMCacheEngineBuilder.get_or_create(
            name, config, metadata, Connector(), lambda tensor, root: None, lambda value, root: value
        )
        self.engine.post_init()

    @property
    def plugin(self) -> Any:
        """The plugin, where it was loaded."""
        return self.engine.storage_manager.storage_backends.get("hitproof")

    def ask(self, tokens: torch.Tensor, tags: dict[str, str] | None = None) -> tuple[int, torch.Tensor]:
        """Serve a prompt: rows that come back from LMCache are read, the rest is computed; nothing is stored."""
        kv = torch.zeros(2, LAYERS, len(tokens), HIDDEN)
        # One token is always computed.
        mask = self.engine.retrieve(tokens[:-1], kv=kv, req_id="r", request_configs=_tags(tags))
        cached = int(mask.sum())
        return cached, self.model.serve(tokens, kv, cached)

    def fill(self, tokens: torch.Tensor, tags: dict[str, str] | None = None) -> torch.Tensor:
        """Serve a prompt from nothing and store its rows; its logits."""
        kv = torch.zeros(2, LAYERS, len(tokens), HIDDEN)
        logits = self.model.serve(tokens, kv, 0)
        whole = len(tokens) // CHUNK * CHUNK
        self.engine.store(tokens[:whole], kv=kv, req_id="r", request_configs=_tags(tags))
        self.settle()
        return logits

    def settle(self) -> None:
        """Wait until everything is written."""
        if self.plugin is not None:
            self.plugin.drain()

    def wait_for_files(self, folder: Path, count: int) -> None:
        """Wait until LMCache's own disk backend has written so many files and knows them."""
        disk = self.engine.storage_manager.storage_backends["LocalDiskBackend"]
        until = monotonic() + 30
        while len(disk.dict) < count:
            if monotonic() > until:
                raise TimeoutError(f"{len(disk.dict)} of {count} files in {folder}")
            sleep(0.01)

    def close(self) -> None:
        """Stop LMCache's threads."""
        LMCacheEngineBuilder.destroy(self.name)


def extra(folder: Path, **stated: Any) -> dict[str, Any]:
    """The plugin's settings."""
    return {**PLUGIN, "hitproof.folder": str(folder), **{f"hitproof.{name}": value for name, value in stated.items()}}


def prompt(seed: int, length: int = 4 * CHUNK + 5) -> torch.Tensor:
    """Random tokens."""
    return torch.randint(0, WORDS, (length,), generator=torch.Generator().manual_seed(seed))


def _tags(tags: dict[str, str] | None) -> dict[str, str] | None:
    return None if tags is None else {f"lmcache.tag.{name}": value for name, value in tags.items()}
