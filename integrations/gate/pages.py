"""Pages in slower storage: sealed with their facts on the way out, judged by the rulebook on the way back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hitproof.engine import Engine, request_key
from hitproof.engine.reasons import environment, first_failing
from hitproof.engine.state import FAR, Resolved
from hitproof.engine.store import Meaning
from hitproof.engine.store.answers import Unusable
from hitproof.integrations.gate.page_answers import Digest, PageOpened, PageRefused, Payload
from hitproof.integrations.gate.page_record import read_record, record_of, record_size
from hitproof.integrations.gate.statements import Statements
from hitproof.spec.decision import Reason
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["PAGE_LAYERS", "PageSeal"]

PAGE_LAYERS = frozenset({"identity", "block_integrity", "kernel_interface"})
"""Layers of checks that a page answers for before it has a place; the others are asked of the blocks it is put into."""

_POOL_EPOCH = 1


class PageSeal:
    """Seals and opens pages of one group. Holds nothing that changes, so threads may share it.

    Args:
        engine: Rules and model.
        group: The group's id in the profile.
        identity: Identity facts that hold unless a call states others; an unknown one refuses every page.
        contract: What the attention kernel reads.
        secret: Key of 1 to 64 bytes; with it only records of who has it are opened.

    Raises:
        UsageError: There is no such group or fact, or the secret cannot be used.
    """

    def __init__(
        self,
        engine: Engine,
        group: str,
        *,
        identity: Mapping[str, Value],
        contract: Mapping[str, Value],
        secret: bytes | None = None,
    ) -> None:
        compiled = next((one for one in engine.judge.groups if one.id == group), None)
        if compiled is None:
            raise UsageError("no such group", got=group, expected=", ".join(one.id for one in engine.bound.groups))
        if secret is not None and not 0 < len(secret) <= 64:
            raise UsageError("the secret cannot be used", got=f"{len(secret)} bytes", expected="1 to 64 bytes")
        self._engine, self._compiled, self._group = engine, compiled, compiled.bound
        self._meaning = Meaning(engine.bound)
        self._statements = Statements(engine, identity)
        self._contract = dict(contract)
        self._kernel = self._statements.kernel(contract)
        self._runtime = self._statements.runtime(_POOL_EPOCH)
        self._secret = secret
        self._judged = [(1 << bit, check) for bit, check in enumerate(self._group.checks) if check.layer in PAGE_LAYERS]

    def key(
        self, digest: Digest, *, end: int, identity: Mapping[str, Value] | None = None, tier: str = "disk"
    ) -> str | None:
        """The name under which a page is put and asked for in a tier: it carries all that the rulebook's key names.

        Args:
            digest: The framework's digest of all tokens up to `end`.
            end: Where the page ends, in tokens.
            identity: What differs from the usual.
            tier: A tier of the rulebook.

        Returns:
            A digest as hexadecimal text; None where a field of the key is unknown.
        """
        request = self._request(end, identity)
        text = _text(digest)
        # The framework's digest stands for the leading tokens; of those behind the end it tells nothing.
        return request_key(self._group, tier, request, end, lambda count: text if count == end else None)

    def seal(
        self,
        payload: Payload,
        *,
        start: int,
        end: int,
        digest: Digest,
        identity: Mapping[str, Value] | None = None,
        contract: Mapping[str, Value] | None = None,
    ) -> bytes:
        """The record of a page, to be kept with its bytes.

        Args:
            payload: The page's bytes.
            start, end: Its tokens; a state has those that it encodes.
            digest: The framework's digest of all tokens up to `end`.
            identity: What differs from the usual.
            contract: What differs from the contract of now, for bytes that are laid out otherwise.

        Raises:
            UsageError: A name is no fact, or a fact cannot be stored.
        """
        kernel = self._statements.kernel({**self._contract, **contract}) if contract else self._kernel
        facts = self._statements.template(self._group, self._request(end, identity), kernel, self._runtime)
        facts.start, facts.end, facts.marks = start, end, frozenset((end,))
        for name in ("position", "filed"):
            if name in self._group.facts:
                setattr(facts, name, end)
        facts.recorded = facts.measured = _fingerprint(payload)
        facts.bytes = memoryview(payload).nbytes
        stored = {name: getattr(facts, name) for name in self._group.facts}
        return record_of(self._meaning.label(_text(digest), self._group.id, stored, 0), self._secret)

    def open(
        self,
        record: bytes | memoryview,
        payload: Payload,
        *,
        start: int,
        end: int,
        digest: Digest,
        identity: Mapping[str, Value] | None = None,
    ) -> PageOpened | PageRefused:
        """Judge a page that came back, for a request that asked for these tokens.

        Args:
            record: What `seal` made.
            payload: The bytes that came with it; each is read.
            start, end: Tokens that are wanted.
            digest: By which they are wanted.
            identity: Of the request; what differs from the usual.
        """
        size = memoryview(payload).nbytes
        refused = self._judge(record, start, end, digest, identity, _fingerprint(payload), size)
        return PageOpened(payload) if refused is None else refused

    def peek(
        self,
        record: bytes | memoryview,
        *,
        start: int,
        end: int,
        digest: Digest,
        identity: Mapping[str, Value] | None = None,
    ) -> PageRefused | None:
        """What speaks against a page by its record alone; its bytes may still be bad."""
        return self._judge(record, start, end, digest, identity, None, None)

    def span(self, record: bytes | memoryview) -> tuple[int, int] | PageRefused:
        """Start and end of a page by its own record, for a medium that does not tell which tokens lie under a name."""
        try:
            facts = self._meaning.facts_of(read_record(record, self._secret))
        except Unusable as error:
            return PageRefused((f"page/{error.reason}",), detail=error.detail)
        start, end = facts["start"], facts["end"]
        if type(start) is not int or type(end) is not int:
            return PageRefused(("page/torn",), detail="the record tells no span")
        return start, end

    def wrap(self, payload: Payload, **asked: Any) -> bytes:
        """Record and bytes as one; arguments as of `seal`."""
        return self.seal(payload, **asked) + bytes(payload)

    def unwrap(self, blob: Payload, **asked: Any) -> PageOpened | PageRefused:
        """Opens what `wrap` made; arguments as of `open`. The payload is a view of the blob."""
        parts = self.split(blob)
        return parts if isinstance(parts, PageRefused) else self.open(*parts, **asked)

    def split(self, blob: Payload) -> tuple[memoryview, memoryview] | PageRefused:
        """Record and bytes of what `wrap` made, neither of them judged; the bytes may be cut off."""
        view = memoryview(blob).cast("B")
        try:
            size = record_size(view)
        except Unusable as error:
            return PageRefused((f"page/{error.reason}",), detail=error.detail)
        return view[:size], view[size:]

    def _request(self, end: int, identity: Mapping[str, Value] | None) -> Any:
        # One token is always computed, so a request that uses the page is longer than it.
        return self._statements.request(end + 1, 1, identity or {})

    def _judge(
        self,
        record: bytes | memoryview,
        start: int,
        end: int,
        digest: Digest,
        identity: Mapping[str, Value] | None,
        measured: str | None,
        size: int | None,
    ) -> PageRefused | None:
        try:
            label = read_record(record, self._secret)
            facts = dict(self._meaning.facts_of(label))
        except Unusable as error:
            return PageRefused((f"page/{error.reason}",), detail=error.detail)
        if label.group != self._group.id:
            return PageRefused(("page/other_group",), detail=f"a page of {label.group}, not of {self._group.id}")
        agrees = label.key == _text(digest) and (facts["start"], facts["end"]) == (start, end)
        # Without the bytes nothing speaks against them.
        facts["measured"] = facts["recorded"] if measured is None else measured
        facts["bytes"] = facts["bytes"] if size is None else size
        # It goes into a block of its own, which is mapped when it is written.
        facts |= {"form": self._group.home, "tier": "device", "bound_for": "device", "pool_epoch": _POOL_EPOCH}
        facts |= dict.fromkeys(("generation", "written_generation", "mapped_generation"), 1)
        facts |= {"pins": 0, "epoch": 1, "published": True, "matched": end if agrees else None}
        segment = self._engine.types.segment_of(self._group.id, facts)
        request = self._request(end, identity)
        unknown = tuple(f"door/{name}" for name in self._engine.bound.rulebook.door if getattr(request, name) is None)
        if unknown:
            return PageRefused(unknown, detail="a fact of the request is unknown without which no rule is asked")
        peers = (self._engine.judge.nobody, False) * len(self._compiled.roles)
        length = max(1, end - int(self._group.constants.get("lookahead", 0)))
        mask = self._compiled.judge(segment, request, self._runtime, self._kernel, length, 0, FAR, *peers)
        broken = [check for bit, check in self._judged if mask & bit]
        if not broken:
            return None
        kernels = {group.id: self._kernel for group in self._engine.bound.groups}
        state = Resolved(request, self._runtime, kernels, {}, end)
        roles = dict.fromkeys(self._compiled.roles, (self._engine.judge.nobody, False))
        env = environment(self._compiled, state, segment, length, (0, FAR), roles)
        reasons = []
        for check in broken:
            conjunct, values = first_failing(check.require, env)
            name = f"{self._group.id}/{check.id}"
            reasons.append(Reason(name, check.layer, conjunct, values, check.because, str(check.where)))
        return PageRefused(tuple(reason.rule for reason in reasons), tuple(reasons))


def _text(digest: Digest) -> str:
    """A digest as text; digests of two types are never one text."""
    if isinstance(digest, bytes):
        return f"bytes:{digest.hex()}"
    return f"{'int' if isinstance(digest, int) else 'text'}:{digest}"


def _fingerprint(payload: Payload) -> str:
    return hashlib.blake2b(payload, digest_size=16).hexdigest()
