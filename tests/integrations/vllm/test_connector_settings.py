"""What the connector refuses when an engine starts, before anything is served."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hitproof.spec.errors import UsageError

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed: make integration-vllm")


def config(folder: Path | None, policy: str = "recompute", ranks: int = 1) -> Any:
    """The parts of vLLM's configuration that the connector reads."""
    extra = {} if folder is None else {"folder": str(folder)}
    transfer = SimpleNamespace(get_from_extra_config=extra.get, kv_load_failure_policy=policy)
    return SimpleNamespace(
        kv_transfer_config=transfer, parallel_config=SimpleNamespace(tensor_parallel_size=ranks), cache_config=None
    )


def made(settings: Any) -> Any:
    """A connector of the scheduler."""
    from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole

    from hitproof.integrations.vllm.connector import HitproofConnector

    return HitproofConnector(settings, KVConnectorRole.SCHEDULER, None)


def test_it_does_not_serve_without_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate knows whose pages are asked for; the error names the flag."""
    monkeypatch.delenv("HITPROOF_VLLM", raising=False)
    with pytest.raises(UsageError, match="HITPROOF_VLLM"):
        made(config(tmp_path))


@pytest.mark.parametrize(
    ("policy", "ranks", "named", "expected"),
    [
        ("recompute", 1, False, "folder"),
        ("fail", 1, True, "kv_load_failure_policy"),
        ("recompute", 2, True, "tensor_parallel_size"),
    ],
)
def test_settings_that_would_lose_requests_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, ranks: int, named: bool, expected: str
) -> None:
    """No folder, refused pages that would fail requests, and workers that it does not cover."""
    monkeypatch.setenv("HITPROOF_VLLM", "1")
    with pytest.raises(UsageError, match=expected):
        made(config(tmp_path if named else None, policy, ranks))


def test_a_request_before_the_gate_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside of another connector nobody hands it the gate, and then it serves nothing."""
    monkeypatch.setenv("HITPROOF_VLLM", "1")
    with pytest.raises(UsageError, match="no gate"):
        made(config(tmp_path)).get_num_new_matched_tokens(SimpleNamespace(request_id="a"), 0)
