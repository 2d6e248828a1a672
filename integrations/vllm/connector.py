"""A connector of vLLM whose pages lie in a shared folder and are judged before they reach the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorTransferResults,
    SupportsHMA,
)
from vllm.v1.core.kv_cache_utils import resolve_block_hashes
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from hitproof.integrations.vllm.layout import CacheGroup, contracts
from hitproof.integrations.vllm.ledger import Ledger
from hitproof.integrations.vllm.page_files import PageFiles
from hitproof.integrations.vllm.page_plan import PageFacts, PagePlan, seals_of
from hitproof.integrations.vllm.page_planner import PagePlanner
from hitproof.integrations.vllm.page_runner import PageRunner
from hitproof.integrations.vllm.page_stats import PageMetrics, PageStats
from hitproof.integrations.vllm.settings import FLAG, verify_mode
from hitproof.spec.errors import UsageError

__all__ = ["HitproofConnector"]


class _Plan(KVConnectorMetadata):
    """A step's plan, as vLLM carries it to the workers."""

    def __init__(self, plan: PagePlan) -> None:
        self.plan = plan


class HitproofConnector(KVConnectorBase_V1, SupportsHMA):
    """Pages in `kv_connector_extra_config["folder"]`; with `secret_file`, only those sealed with its key are opened.

    Loads run between steps. A refused page fails its request's load, which vLLM then computes; block-wise errors are
    not used, because vLLM refuses them for models with several cache groups.

    Raises:
        UsageError: The flag is off, no folder is given, or failed loads would fail their requests.
    """

    _cache_hit_source = CacheHitSource.DISK

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        if verify_mode() is None:
            raise UsageError("HitproofConnector works only with the gate", got="off", expected=f"{FLAG}=1")
        transfer = vllm_config.kv_transfer_config
        folder = transfer.get_from_extra_config("folder", None)
        if not folder:
            raise UsageError("the connector has no folder", expected='kv_connector_extra_config={"folder": ...}')
        if transfer.kv_load_failure_policy != "recompute":
            raise UsageError(
                "a refused page would fail its request",
                got=f"kv_load_failure_policy={transfer.kv_load_failure_policy}",
                expected="recompute",
            )
        if vllm_config.parallel_config.tensor_parallel_size != 1:
            raise UsageError("the connector covers one worker an engine", expected="tensor_parallel_size=1")
        secret_file = transfer.get_from_extra_config("secret_file", None)
        self._secret = Path(secret_file).read_bytes().strip() if secret_file else None
        self._files = PageFiles(Path(folder))
        self._planner: PagePlanner | None = None
        self._runner = PageRunner(self._files, self._secret)

    def gated(self, ledger: Ledger, groups: list[CacheGroup], coordinator: Any) -> None:
        """The engine's gate is there; called once, before the first request.

        Args:
            ledger: The engine's ledger.
            groups: Its groups.
            coordinator: vLLM's coordinator.
        """
        usual = ledger.identities.usual()
        facts = PageFacts(
            profile=ledger.gate.engine.bound.profile.model_dump(),
            ids=dict(ledger.gate.groups),
            layers={group.name: group.layers for group in groups},
            contracts=contracts(self._vllm_config, groups, usual["weights"]),
            usual=usual,
        )
        managers = coordinator.single_type_managers
        unit = coordinator.block_pool.hash_block_size
        self._planner = PagePlanner(
            self._files,
            seals_of(facts, self._secret, ledger.gate.engine),
            facts,
            ledger,
            groups,
            skipped=lambda group, length: int(managers[group].get_num_skipped_tokens(length)),
            hashes=lambda request, tokens: resolve_block_hashes(request.block_hashes, unit, tokens),
        )

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        """Tokens of pages beyond the local hit; they are loaded between steps."""
        found = self._planning.found(request, num_computed_tokens)
        return found, found > 0

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Note which blocks the pages go into."""
        if num_external_tokens > 0:
            self._planning.allocated(request, blocks.get_block_ids(), num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        """The step's plan."""
        return _Plan(self._planning.plan(scheduler_output))

    def update_connector_output(self, connector_output: Any) -> None:
        """Note which loads were refused."""
        self._planning.failed(set(connector_output.failed_recving or ()))

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """Nothing is pending: pages are saved in the step that writes them."""
        return self.request_finished_all_groups(request, (block_ids,))

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        """Nothing is pending: pages are saved in the step that writes them."""
        self._planning.gone(request.request_id)
        return False, None

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """Keep the caches of the layers."""
        self._runner.register(kv_caches)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Load the step's pages."""
        self._runner.load(self._plan())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Loads have ended when the step begins."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Blocks are saved whole, after the step."""

    def wait_for_save(self) -> None:
        """Save the step's pages."""
        self._runner.save(self._plan())

    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        """Loads that ended, and those that were refused."""
        done, failed = self._runner.results()
        return KVConnectorTransferResults(finished_recving=done, failed_recving=failed)

    def get_kv_connector_stats(self) -> PageStats | None:
        """What this worker's loads came to since the last step."""
        counts = self._runner.counts()
        return PageStats.of(counts) if counts else None

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> PageStats:
        """Counts that came from a worker."""
        return PageStats.of(data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: list[str], per_engine_labelvalues: dict[int, list[Any]]
    ) -> PageMetrics:
        """The series of these counts."""
        return PageMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    @property
    def _planning(self) -> PagePlanner:
        if self._planner is None:
            raise UsageError("the engine has no gate", got="HitproofConnector alone", expected=f"{FLAG}=1")
        return self._planner

    def _plan(self) -> PagePlan:
        metadata: Any = self._get_connector_metadata()
        plan: PagePlan = metadata.plan
        return plan
