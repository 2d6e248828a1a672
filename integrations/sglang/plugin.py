"""Entry point `sglang.srt.plugins`: SGLang calls `register` in each of its processes before it builds a cache."""

from __future__ import annotations

from typing import Any

from hitproof.integrations.sglang.identity import weights_changed
from hitproof.integrations.sglang.settings import BACKEND

__all__ = ["register"]

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_UPDATER = "sglang.srt.managers.scheduler_components.weight_updater.SchedulerWeightUpdaterManager"


def register() -> None:
    """Offer the radix-cache backend; without `--radix-cache-backend hitproof` nothing else happens.

    May be called more than once. The version is checked when the backend is built, so that whoever does not ask for it
    is not bothered.
    """
    from sglang.srt.mem_cache.registry import get_radix_cache_factory, register_radix_cache_backend
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    if get_radix_cache_factory(BACKEND) is not None:
        return
    register_radix_cache_backend(BACKEND, _build)
    # Both hooks do nothing for another backend's cache.
    HookRegistry.register(f"{_UPDATER}.record_weight_version_after_update", _weights_updated, HookType.BEFORE)
    HookRegistry.register(f"{_SCHEDULER}.get_internal_state", _add_state, HookType.AFTER)


def _build(context: Any) -> Any:
    from hitproof.integrations.sglang.build import build

    return build(context)


def _weights_updated(*_args: Any, **_kwargs: Any) -> None:
    weights_changed()


def _add_state(answer: Any, scheduler: Any, *_args: Any, **_kwargs: Any) -> Any:
    """Adds logical and effective hits to what `/server_info` tells of a scheduler."""
    tally = getattr(scheduler.tree_cache, "tally", None)
    if tally is not None:
        answer.internal_state["hitproof"] = tally.state()
    return answer
