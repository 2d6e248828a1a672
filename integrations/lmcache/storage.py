"""The storage plugin: chunks go out with a record of whose they are, and come back only if the rules accept them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from lmcache.logging import init_logger
from lmcache.utils import CacheEngineKey
from lmcache.v1.memory_management import MemoryObj
from lmcache.v1.storage_backend.abstract_backend import StoragePluginInterface

from hitproof.integrations.gate import PageOpened, PageRefused
from hitproof.integrations.lmcache.chunks import ChunkPages
from hitproof.integrations.lmcache.folder import PageFolder
from hitproof.integrations.lmcache.settings import read_settings
from hitproof.integrations.lmcache.tally import Tally
from hitproof.integrations.lmcache.versions import check_version
from hitproof.spec.errors import UsageError

__all__ = ["ValidatedStorage"]

logger = init_logger(__name__)

RECORD = 8192
"""Bytes that are read to judge a record alone; records are shorter."""


class ValidatedStorage(StoragePluginInterface):
    """Keeps chunks in a folder, and judges each one when it comes back.

    LMCache logs an error of the constructor and goes on without the plugin; then nothing comes from its folder.

    Args:
        dst_device, config, metadata, local_cpu_backend, loop: As LMCache hands them to every plugin.

    Raises:
        UsageError: LMCache's version, its configuration or the settings cannot be served.
    """

    def __init__(
        self,
        dst_device: str = "cpu",
        config: Any = None,
        metadata: Any = None,
        local_cpu_backend: Any = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        version = check_version()
        super().__init__(dst_device, config, metadata, local_cpu_backend, loop)
        if config is None or metadata is None or local_cpu_backend is None:
            raise UsageError("the plugin serves workers with a CPU buffer", expected="max_local_cpu_size above 0")
        if config.use_layerwise or config.enable_blending:
            raise UsageError(
                "layer-wise and blended chunks are not judged", expected="use_layerwise and enable_blending off"
            )
        settings = read_settings(config.extra_config)
        self._chunks = ChunkPages(metadata, config.chunk_size, settings, version)
        self._fmt = self._chunks.fmt
        self._folder = PageFolder(settings.folder / self._chunks.worker, settings.capacity)
        self._writers = ThreadPoolExecutor(1, thread_name_prefix="hitproof-write")
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="hitproof-read")
        self._lock = Lock()
        self._writing: set[CacheEngineKey] = set()
        self.tally = Tally(self._chunks.engine.bound)

    def __str__(self) -> str:
        return type(self).__name__

    def contains(self, key: CacheEngineKey, pin: bool = False) -> bool:
        """Whether a page lies under the key whose record is the key's own. Its bytes are read by `get_blocking`."""
        name = self._chunks.name(key)
        if name is None or name not in self._folder:
            return False
        start = self._folder.read(name, RECORD)
        if start is None:
            return False
        refused = self._chunks.peek(key, start)
        if refused is not None:
            self._refuse(key, name, self._chunks.tokens(start), refused)
            return False
        return self._folder.pin(name) if pin else True

    async def batched_async_contains(self, lookup_id: str, keys: list[CacheEngineKey], pin: bool = False) -> int:
        """How many leading keys are contained."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self.batched_contains, keys, pin)

    def exists_in_put_tasks(self, key: CacheEngineKey) -> bool:
        """Whether the key is being written."""
        with self._lock:
            return key in self._writing

    def batched_submit_put_task(
        self,
        keys: Sequence[CacheEngineKey],
        objs: list[MemoryObj],
        transfer_spec: Any = None,
        on_complete_callback: Callable[[CacheEngineKey], None] | None = None,
    ) -> list[Future[None]]:
        """Write chunks beside other work; those that lie there or are being written are left out."""
        futures = []
        for key, obj in zip(keys, objs, strict=True):
            name = self._chunks.name(key)
            # A page that this request would refuse is set aside by the question, and written anew.
            if name is None or self.contains(key):
                continue
            with self._lock:
                if key in self._writing:
                    continue
                self._writing.add(key)
            obj.ref_count_up()
            futures.append(self._writers.submit(self._write, key, name, obj, on_complete_callback))
        return futures

    def get_blocking(self, key: CacheEngineKey) -> MemoryObj | None:
        """The chunk, if the rules accept it; None is a miss to LMCache."""
        name = self._chunks.name(key)
        content = None if name is None or name not in self._folder else self._folder.read(name)
        if name is None or content is None:
            return None
        tokens, answer = self._chunks.open(key, content)
        if isinstance(answer, PageRefused):
            self._refuse(key, name, tokens, answer)
            return None
        obj = self._filled(tokens, answer)
        if obj is not None:
            self.tally.used(tokens)
        return obj

    def batched_get_blocking(self, keys: list[CacheEngineKey]) -> list[MemoryObj | None]:
        """The chunks, read side by side; None for each that is missing or refused."""
        return list(self._readers.map(self.get_blocking, keys))

    async def batched_get_non_blocking(
        self, lookup_id: str, keys: list[CacheEngineKey], transfer_spec: Any = None
    ) -> list[MemoryObj]:
        """The leading chunks up to the first that is missing or refused, pinned."""
        loop = asyncio.get_running_loop()
        found: list[MemoryObj] = []
        for key in keys:
            obj = await loop.run_in_executor(self._readers, self.get_blocking, key)
            if obj is None:
                break
            obj.pin()
            found.append(obj)
        return found

    def pin(self, key: CacheEngineKey) -> bool:
        """Keep the chunk from being evicted once more."""
        name = self._chunks.name(key)
        return name is not None and self._folder.pin(name)

    def unpin(self, key: CacheEngineKey) -> bool:
        """Take back one pin."""
        name = self._chunks.name(key)
        return name is not None and self._folder.unpin(name)

    def remove(self, key: CacheEngineKey, force: bool = True) -> bool:
        """Give the chunk up."""
        name = self._chunks.name(key)
        return name is not None and self._folder.remove(name)

    def touch_cache(self) -> None:
        """Reading a page has already told that it was used."""

    def get_allocator_backend(self) -> Any:
        """Where memory for chunks comes from."""
        return self.local_cpu_backend

    def drain(self) -> None:
        """Wait until what was put so far is written."""
        self._writers.submit(int).result()

    def close(self) -> None:
        """Finish what is being written."""
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)

    def _write(
        self, key: CacheEngineKey, name: str, obj: MemoryObj, done: Callable[[CacheEngineKey], None] | None
    ) -> None:
        try:
            payload = memoryview(obj.byte_array)
            kept = self._folder.put(name, self._chunks.record(key, obj, payload), payload)
        finally:
            obj.ref_count_down()
            with self._lock:
                self._writing.discard(key)
        if not kept:
            logger.warning("hitproof: no room for %s", key.to_string())
        elif done is not None:
            try:
                done(key)
            except Exception as error:
                logger.warning("hitproof: the callback of %s failed: %s", key.to_string(), error)

    def _filled(self, tokens: int, answer: PageOpened) -> MemoryObj | None:
        """Memory of LMCache with the page's bytes; None where there is none left, or it has another size."""
        shapes, dtypes = self.metadata.get_shapes(tokens), self.metadata.get_dtypes()
        obj: MemoryObj | None = self.local_cpu_backend.allocate(shapes, dtypes, self._fmt)
        if obj is None:
            return None
        into = memoryview(obj.byte_array).cast("B")
        payload = memoryview(answer.payload).cast("B")
        if into.nbytes != payload.nbytes:
            logger.warning("hitproof: a page of %d bytes does not fit in %d", payload.nbytes, into.nbytes)
            obj.ref_count_down()
            return None
        into[:] = payload
        return obj

    def _refuse(self, key: CacheEngineKey, name: str, tokens: int, answer: PageRefused) -> None:
        """Count it, tell why, and set the page aside."""
        self.tally.refused(tokens, answer)
        self._folder.refuse(name)
        logger.warning("hitproof: refused %s: %s %s", key.to_string(), ", ".join(answer.failed), answer.detail)
