"""Entry point `vllm.general_plugins`: vLLM calls `register` in each of its processes before it builds an engine."""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any

from hitproof.integrations.gate import Verify
from hitproof.integrations.vllm.settings import verify_mode
from hitproof.integrations.vllm.versions import installed_version, require_supported

__all__ = ["attach", "register"]

_log = logging.getLogger("vllm.hitproof")
_MARK = "hitproof"


def register() -> None:
    """Gate every engine that this process builds, if the flag is set. May be called more than once.

    Raises:
        UsageError: The flag is set, and this version of vLLM is not supported, or the flag's value means nothing.
    """
    verify = verify_mode()
    if verify is None:
        return
    require_supported(installed_version())
    from vllm.lora.worker_manager import WorkerLoRAManager
    from vllm.v1.engine.core import EngineCore

    from hitproof.integrations.vllm.adapters import note_loads

    note_loads(WorkerLoRAManager)
    _count_offline()
    # The step of `__init__` right behind the scheduler's making. Where an engine has a process of its own, vLLM loads
    # plugins while `__init__` runs already, so that it is too late to wrap that.
    step = EngineCore._initialize_effective_attention_block_size
    if getattr(step, _MARK, False):
        return

    @wraps(step)
    def attaching(self: Any) -> None:
        step(self)
        attach(self, verify)

    setattr(attaching, _MARK, True)
    EngineCore._initialize_effective_attention_block_size = attaching


def _count_offline() -> None:
    """Let `LLM()` count too: vLLM itself loads stat loggers of plugins only where it serves asynchronously."""
    from vllm.v1.engine import llm_engine

    from hitproof.integrations.vllm.stat_logger import HitproofStatLogger

    managed = llm_engine.StatLoggerManager
    if getattr(managed, _MARK, False):
        return

    def managing(*args: Any, custom_stat_loggers: list[Any] | None = None, **kwargs: Any) -> Any:
        return managed(*args, custom_stat_loggers=[*(custom_stat_loggers or ()), HitproofStatLogger], **kwargs)

    setattr(managing, _MARK, True)
    llm_engine.StatLoggerManager = managing


def attach(core: Any, verify: Verify) -> None:
    """Gate one engine. Changes its core, scheduler, cache manager and pool; the core's `hitproof` is its ledger.

    Raises:
        HitproofError: Its model or its way of cutting the cache is not covered; nothing is served ungated then.
    """
    from hitproof.integrations.vllm.connector import HitproofConnector
    from hitproof.integrations.vllm.gated import GatedCore, GatedManager, GatedPool, GatedScheduler
    from hitproof.integrations.vllm.identity import Identities, attention_digest, checkpoint_digest
    from hitproof.integrations.vllm.layout import cache_groups, make_gate, refuse_unsupported
    from hitproof.integrations.vllm.ledger import Ledger
    from hitproof.integrations.vllm.workers import Workers

    config, scheduler = core.vllm_config, core.scheduler
    manager = scheduler.kv_cache_manager
    refuse_unsupported(config, scheduler.kv_cache_config, manager.coordinator)
    workers = Workers(core.model_executor.collective_rpc)
    model = config.model_config
    attention = attention_digest(model.hf_text_config.to_dict(), {"dtype": str(model.dtype)})
    identities = Identities(workers, attention, lambda: checkpoint_digest(model.model, model.revision))
    groups = cache_groups(scheduler.kv_cache_config, workers)
    gate = make_gate(config, scheduler.kv_cache_config, groups, workers, identities, verify)
    ledger = Ledger(gate, groups, identities)
    GatedPool(manager.block_pool, ledger)
    GatedManager(manager, ledger)
    GatedScheduler(scheduler, ledger)
    GatedCore(core, ledger)
    core.hitproof = ledger
    if isinstance(scheduler.connector, HitproofConnector):
        scheduler.connector.gated(ledger, groups, manager.coordinator)
    _log.info("hitproof gates the prefix cache: groups %s, blocks measured: %s", dict(gate.groups), verify)
