"""Faults planted into a folder of pages, and a connector that trusts whatever lies there, for comparison."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hitproof.integrations.gate import PageSeal
from hitproof.integrations.gate.page_record import record_size
from hitproof.integrations.vllm.connector import HitproofConnector
from hitproof.integrations.vllm.page_plan import Page
from hitproof.integrations.vllm.page_runner import PageRunner
from tests.integrations.vllm.serving import core_of

__all__ = ["TrustingConnector", "as_other_layout", "cut", "pages_of", "put_in_place_of", "tear"]


class _TrustingRunner(PageRunner):
    """Takes the bytes of a page for what its name says, as a store without records does."""

    def _opened(self, page: Page) -> Any | None:
        blob = self._files.read(page.key)
        return None if blob is None else _split(blob)[1]


class TrustingConnector(HitproofConnector):
    """The connector without its judgement."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self._runner = _TrustingRunner(self._files, self._secret)


def _split(blob: bytes) -> tuple[bytes, bytes]:
    size = record_size(memoryview(blob))
    return blob[:size], blob[size:]


def pages_of(llm: Any, tokens: list[int], lora: Any = None) -> list[Page]:
    """The pages that a prompt would be served from, each with its key of now."""
    from vllm import SamplingParams
    from vllm.v1.request import Request

    core = core_of(llm)
    asked = SamplingParams(max_tokens=1)
    request = Request("looking", list(tokens), asked, None, lora_request=lora, block_hasher=core.request_block_hasher)
    planner = core.scheduler.connector._planner
    identity = planner._ledger.identities.of(request)
    length = (len(tokens) - 1) // 32 * 32
    return [planner._page(request, group, place, 0, identity) for group, place in planner._needed(length, 0)]


def _place(llm: Any, page: Page) -> Path:
    place: Path = core_of(llm).scheduler.connector._files.place(page.key)
    return place


def _rewrite(llm: Any, page: Page, change: Callable[[bytes], bytes]) -> None:
    place = _place(llm, page)
    place.write_bytes(change(place.read_bytes()))


def put_in_place_of(llm: Any, wanted: list[Page], given: list[Page]) -> None:
    """Under the names of some pages lie others: an index that lost a field, or a stray rename."""
    for want, other in zip(wanted, given, strict=True):
        _place(llm, want).parent.mkdir(exist_ok=True)
        shutil.copyfile(_place(llm, other), _place(llm, want))


def tear(llm: Any, page: Page) -> None:
    """The second half of the bytes is somebody else's, at the same size."""

    def torn(blob: bytes) -> bytes:
        record, payload = _split(blob)
        rows = torch.frombuffer(bytearray(payload), dtype=torch.float32)
        half = rows.numel() // 2
        rows[half:] = rows[half:].flip(0) * -1.5
        content: bytes = rows.numpy().tobytes()
        return record + content

    _rewrite(llm, page, torn)


def cut(llm: Any, page: Page) -> None:
    """The file ends too early."""
    _rewrite(llm, page, lambda blob: blob[: len(blob) * 2 // 3])


def as_other_layout(llm: Any, page: Page) -> None:
    """A server whose backend lays rows out by token wrote this page, and sealed it as its own."""
    planner = core_of(llm).scheduler.connector._planner
    facts = planner._facts
    contract = {**facts.contracts[page.group], "layout": "by token", "v_layout": "by token"}
    other = PageSeal(
        planner._ledger.gate.engine, facts.ids[page.group], identity=facts.usual, contract=contract, secret=None
    )

    def laid_out(blob: bytes) -> bytes:
        payload = _split(blob)[1]
        rows = torch.frombuffer(bytearray(payload), dtype=torch.float32).view(2, 32, 128)
        return other.wrap(rows.transpose(0, 1).contiguous().numpy().tobytes(), **page.asked())

    _rewrite(llm, page, laid_out)
