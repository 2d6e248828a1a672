"""Stores two chunks through LMCache's storage manager, spoils one on the disk, and asks for both again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.event_manager import EventManager
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.storage_manager import StorageManager

folder = Path(tempfile.mkdtemp())
config = LMCacheEngineConfig.from_dict(
    {
        "chunk_size": 16,
        "local_cpu": False,
        "max_local_cpu_size": 0.02,
        "storage_plugins": ["hitproof"],
        "extra_config": {
            "storage_plugin.hitproof.module_path": "hitproof.integrations.lmcache.storage",
            "storage_plugin.hitproof.class_name": "ValidatedStorage",
            "hitproof.folder": str(folder),
            "hitproof.weights": "digest of the checkpoint",
            "hitproof.adapter": "none",
            "hitproof.salt": "none",
        },
    }
)
metadata = LMCacheMetadata("toy", 1, 1, 0, 0, torch.float32, (2, 2, 16, 2, 8), role="worker", chunk_size=16)
manager = StorageManager(config, metadata, EventManager())
plugin = manager.storage_backends["hitproof"]
keys = [CacheEngineKey("toy", 1, 0, chunk, torch.float32) for chunk in (1, 2)]
chunks = [manager.allocate(metadata.get_shapes(16), metadata.get_dtypes()) for _ in keys]
for number, chunk in enumerate(chunks):
    chunk.tensor.fill_(number + 1)
manager.batched_put(keys, chunks)
plugin.drain()

page = max(folder.rglob("*.page"), key=lambda path: path.stat().st_mtime_ns)
content = bytearray(page.read_bytes())
content[-1] ^= 1
page.write_bytes(content)
for key, chunk in zip(keys, manager.batched_get(keys, "hitproof"), strict=True):
    print(f"chunk {key.chunk_hash}: {'refused' if chunk is None else chunk.tensor.unique().tolist()}")
tokens = plugin.tally.counters.series("tokens")
print(f"logical {tokens[('logical',)]} tokens, effective {tokens[('effective',)]}")
manager.close()
