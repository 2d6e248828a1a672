"""A prefix cache for a transformers model: every reuse is validated by the rulebook, and recovered by its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

from hitproof.engine import Engine, load
from hitproof.engine.cache import Answer, CacheManager
from hitproof.engine.store import Meaning, Store
from hitproof.integrations.transformers.compute import ModelCompute
from hitproof.integrations.transformers.generate import generate
from hitproof.integrations.transformers.identity import kernel_contract, request_identity, weights_digest
from hitproof.integrations.transformers.inputs import keeping_inputs
from hitproof.integrations.transformers.live import installed
from hitproof.integrations.transformers.running import run
from hitproof.integrations.transformers.served import Found, Served
from hitproof.integrations.transformers.snapshot import Piece, Snapshots, written
from hitproof.integrations.transformers.state import StateMap, profile_of
from hitproof.kernels.memory import TorchMemory
from hitproof.spec.errors import ProfileError, UsageError
from hitproof.spec.facts import Value
from hitproof.spec.profile import Profile

__all__ = ["PrefixCache"]

_ROUNDS = 4
"""How often a hit whose bytes turned out to be damaged is asked for anew; what was damaged is set apart each time."""


class PrefixCache:
    """Keeps every layer's real state of prompts in a cache manager, and continues from it where the rules allow.

    Args:
        model: A causal language model of transformers, in evaluation mode.
        profile: Its cache groups; derived from `model.config` where left out.
        engine: A rulebook that was loaded for this profile, be it another one or one whose proofs were asked for; the
            shipped one is loaded where left out.
        unit: The hash unit, in tokens.
        blocks: Blocks of every group's pool.
        host_bytes: Host memory for segments that left the pools.
        disk: Folder of the tier below; None for none.
        layer_inputs: Whether the layers' inputs are kept, for repairs to begin from.
        verify: When bytes are measured, beside at their commit: `use`, `tier_crossing` or `sampled`.
        identity: Facts of all requests, such as `salt`, `adapter` or `weights`; what is left out is read off the model.
        runtime: Rates and limits of this machine; the rulebook's examples where left out.
        settings: Further arguments of `CacheManager`, such as `policy` and `observer`.

    Raises:
        UsageError: The model is in training mode, or the engine is another profile's.
        ProfileError: The profile is not the model's, or has no group for kept inputs that shall be kept.

    Attributes:
        engine: The rulebook, bound to the model.
        state: Which tensors of a live cache are which group's rows.
        memory: The pools.
        compute: Runs repairs.
        manager: The cache manager.
        identity: Facts of all requests; a call's own facts come first.
    """

    def __init__(
        self,
        model: Any,
        profile: Profile | None = None,
        *,
        engine: Engine | None = None,
        unit: int = 8,
        blocks: int = 512,
        host_bytes: int = 1 << 28,
        disk: str | None = None,
        layer_inputs: bool = False,
        verify: Literal["tier_crossing", "use", "sampled"] = "use",
        identity: Mapping[str, Value] | None = None,
        runtime: Mapping[str, Value] | None = None,
        **settings: Any,
    ) -> None:
        if model.training:
            raise UsageError("a model in training mode computes other rows each time", expected="model.eval()")
        self.model = model
        self._inputs = ""
        if engine is None:
            engine = load(profile_of(model.config, dtype=model.dtype) if profile is None else profile)
        elif profile not in (None, engine.bound.profile):
            raise UsageError("the rulebook was loaded for another profile", got=engine.bound.profile.profile)
        self.engine, self.profile = engine, engine.bound.profile
        if layer_inputs:
            self._inputs = next((group.id for group in self.profile.groups if group.object == "layer_inputs"), "")
            if not self._inputs:
                raise ProfileError("the profile has no group for kept inputs", expected="a group of layer_inputs")
        self.state = StateMap(model, self.profile)
        self.memory = TorchMemory(self.engine.bound, blocks, model.device.type)
        self.compute = ModelCompute(model, self.engine, self.state, self.memory)
        self._store = None if disk is None else Store(disk, Meaning(self.engine.bound))
        self.identity: dict[str, Value] = {**request_identity(model), **(identity or {})}
        self.manager = CacheManager(
            self.engine,
            self.memory,
            self.compute,
            unit=unit,
            host_bytes=host_bytes,
            disk=self._store,
            runtime=runtime,
            kernels=kernel_contract(model),
            verify=verify,
            **settings,
        )

    def identify(self) -> str:
        """Read the model's weights anew after they were changed; state of the earlier ones is found by nobody then.

        Returns:
            Their digest.
        """
        digest = weights_digest(self.model)
        self.identity["weights"] = digest
        return digest

    def close(self) -> None:
        """Close the store, so that another process can open it; the cache is not to be used any more."""
        if self._store is not None:
            self._store.close()

    def find(self, tokens: Sequence[int], *, facts: Mapping[str, Value] | None = None) -> Found:
        """Look up, validate, recover by plan, copy into a live cache, and confirm that what was copied was checked.

        Args:
            tokens: Token ids of the prompt.
            facts: Facts of the request that differ from `identity`.

        Returns:
            With a lease that the caller releases once nothing is written any more; with an empty live cache where
            nothing may be reused.
        """
        prompt = self.manager.prompt(tokens, {**self.identity, **(facts or {})})
        logical = 0
        for _ in range(_ROUNDS):
            answer = self.manager.acquire(prompt, postpones=False)
            logical = max(logical, 0 if answer.decision is None else answer.decision.logical)
            if answer.hold is None:
                return Found(self.state.fresh(), 0, logical, answer, prompt, None)
            try:
                past = installed(self.state, self.memory, self.engine.judge.groups, answer.hold)
                confirmed = answer.hold.confirm()
            except BaseException:
                answer.hold.release()
                raise
            if confirmed:
                return Found(past, answer.usable, logical, answer, prompt, answer.hold)
            answer.hold.release()
            self.manager.housekeep()
        why = f"what was found was damaged {_ROUNDS} times"
        return Found(self.state.fresh(), 0, logical, Answer("defer", 0, answer.decision, None, why), prompt, None)

    def prefill(
        self,
        tokens: Sequence[int],
        *,
        facts: Mapping[str, Value] | None = None,
        boundaries: Iterable[int] = (),
        keep: bool = True,
        until: int | None = None,
    ) -> Served:
        """Compute a prompt behind what may be reused of it.

        Args:
            tokens: Token ids of the prompt.
            facts: Facts of the request that differ from `identity`.
            boundaries: Further lengths at which another prompt shall be able to resume; the pass stops there. Those
                that are reused or lie beyond the prompt count for nothing.
            keep: Whether what is computed is stored.
            until: Tokens after which to stop; all where left out.

        Raises:
            UsageError: There are no so many tokens.
        """
        end = len(tokens) if until is None else until
        if not 0 < end <= len(tokens):
            raise UsageError("a prompt is computed up to one of its tokens", got=end, expected=f"1 to {len(tokens)}")
        found = self.find(tokens, facts=facts)
        try:
            if found.usable >= end:
                return Served.behind(found, (), "everything is stored")
            stops = sorted({*(stop for stop in boundaries if found.usable < stop < end), end})
            return self._computed(tokens, found, stops, keep=keep)
        finally:
            found.release()

    def keep(
        self,
        tokens: Sequence[int],
        past: Any,
        *,
        facts: Mapping[str, Value] | None = None,
        at: int | None = None,
        row: int = 0,
    ) -> str:
        """Store what a live cache truly has of a prompt.

        A window that has slid on lacks rows, and a state stands at one position alone: what the cache does not have is
        not written, and a later look-up finds a gap there, for a plan to recover or to stop before.

        Args:
            tokens: The tokens that the cache has seen, or more.
            past: A live cache of the model.
            facts: Facts of the request that differ from `identity`.
            at: Leading tokens that are stored; all where left out.
            row: Row of the batch.

        Returns:
            Why nothing was stored; empty where something was.

        Raises:
            UsageError: There are no so many tokens.
        """
        end = len(tokens) if at is None else at
        if not 0 < end <= len(tokens):
            raise UsageError("what is stored ends at one of the tokens", got=end, expected=f"1 to {len(tokens)}")
        prompt = self.manager.prompt(tokens[:end], {**self.identity, **(facts or {})})
        answer = self.manager.acquire(prompt, postpones=False)
        if answer.hold is None:
            return answer.why
        try:
            taken = Snapshots(self.state, self.engine.judge.groups, answer.usable)
            taken.take(past, end, last=True, row=row)
            return written(self.manager, prompt, answer.hold, taken.pieces())
        finally:
            answer.hold.release()

    def generate(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        *,
        facts: Mapping[str, Value] | None = None,
        keep: bool = True,
        **options: Any,
    ) -> Any:
        """As `model.generate`, behind what may be reused of each prompt of the batch.

        Args:
            input_ids: [B, N] token ids; shorter prompts are padded on the left.
            attention_mask: [B, N], 0 where padded; all 1 where left out.
            facts: Facts of the requests that differ from `identity`.
            keep: Whether prompts and answers are stored.
            options: As for `model.generate`.

        Returns:
            [B, N + new] token ids, shorter answers padded on the right.

        Raises:
            UsageError: The mask is no padding on the left, or an option cannot be served behind a cache.
        """
        return generate(self, input_ids, attention_mask, facts=facts, keep=keep, options=options)

    def _computed(self, tokens: Sequence[int], found: Found, stops: Sequence[int], *, keep: bool) -> Served:
        """Run the rest of a prompt from stop to stop, and store what it adds."""
        taken = Snapshots(self.state, self.engine.judge.groups, found.usable)
        parts, at = [], found.usable
        with keeping_inputs(self.model, at) if keep and self._inputs else nullcontext() as inputs:
            for stop in stops:
                parts.append(run(self.model, tokens[at:stop], found.past))
                at = stop
                if keep:
                    taken.take(found.past, stop, last=stop == stops[-1])
        if inputs is not None:
            payload = inputs.payload()
            taken.add(Piece(self._inputs, inputs.start, inputs.end, payload))
            self.compute.ran.note(self.memory.digest(self._inputs, payload), found.prompt.request.as_dict())
        why = "nothing was to be kept"
        if keep:
            hold = found.hold
            why = found.answer.why if hold is None else written(self.manager, found.prompt, hold, taken.pieces())
        return Served.behind(found, parts, why)
