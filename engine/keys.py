"""Keys under which segments are filed and asked for, tier by tier, as the rulebook declares them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hitproof.spec.bound import BoundGroup, BoundKey
from hitproof.spec.condition import interpret, reads
from hitproof.spec.facts import Value, admit

__all__ = ["TokenDigest", "request_key", "segment_key", "token_digests"]

TokenDigest = Callable[[int], str | None]
"""Digest of so many leading tokens; None where there are fewer."""

FORMAT = "hitproof-key-1"
"""Grows when a key of the same fields would be another digest."""


def token_digests(tokens: Sequence[int]) -> TokenDigest:
    """Digests of the leading tokens of one prompt; a length that was asked for before is not worked out again.

    Args:
        tokens: Token ids, each of at least 0 and below 2**64.
    """
    known: dict[int, str] = {}

    def digest(count: int) -> str | None:
        if not 0 <= count <= len(tokens):
            return None
        if count not in known:
            content = hashlib.blake2b(digest_size=32)
            for token in tokens[:count]:
                content.update(token.to_bytes(8, "little"))
            known[count] = content.hexdigest()
        return known[count]

    return digest


def segment_key(group: BoundGroup, tier: str, segment: Any, tokens: TokenDigest) -> str | None:
    """The key under which a segment is found in a tier.

    Args:
        group: The segment's group.
        tier: A tier of the rulebook.
        segment: The segment's facts.
        tokens: Digests of the tokens that the segment was written for.

    Returns:
        A digest as hexadecimal text. None where nothing leads to the segment: it is not published, the tier has no
        keys, or a field of the key is unknown.
    """
    key = _of_tier(group, tier)
    if key is None or segment.published is not True or segment.end is None:
        return None
    fields = {fact: getattr(segment, fact) for fact in key.fields}
    begins = {fact: getattr(segment, fact) for fact in key.begins.values()}
    return _key(group, key, segment.end, fields, begins, tokens)


def request_key(group: BoundGroup, tier: str, request: Any, end: int, tokens: TokenDigest) -> str | None:
    """The key by which a request asks a tier for the segment of a group that ends at `end`.

    Args:
        group: The group.
        tier: A tier of the rulebook.
        request: The request's facts.
        end: Where the wanted segment ends, in tokens.
        tokens: Digests of the request's own tokens.

    Returns:
        A digest as hexadecimal text. None where the request has no key: the tier has none, a field is unknown, or the
        prompt is shorter than what the key names.
    """
    key = _of_tier(group, tier)
    if key is None:
        return None
    facts = request.as_dict("request.")
    fields: dict[str, Value] = {}
    for fact, node in key.fields.items():
        value = interpret(node, {path: facts.get(path) for path in reads(node)})
        fields[fact] = admit(group.facts[fact], value)
    begins = {fact: facts.get(f"request.{fact}") for fact in key.begins.values()}
    return _key(group, key, end, fields, begins, tokens)


def _of_tier(group: BoundGroup, tier: str) -> BoundKey | None:
    return next((key for key in group.keys if key.tier == tier), None)


def _key(
    group: BoundGroup,
    key: BoundKey,
    end: int,
    fields: Mapping[str, Value],
    begins: Mapping[str, Value],
    tokens: TokenDigest,
) -> str | None:
    named = interpret(key.tokens, {"length": end})
    prefix = tokens(named) if type(named) is int else None
    if prefix is None or type(named) is not int:
        return None
    parts: dict[str, Value] = {"group": group.id, "end": end, "tokens": prefix}
    for fact, value in fields.items():
        if fact in key.begins:
            start = begins[key.begins[fact]]
            if type(start) is not int:
                return None
            if start >= named:
                continue
            parts[f"begins.{fact}"] = start
        if value is None:
            return None
        parts[f"field.{fact}"] = value
    return hashlib.blake2b(b"".join(_tagged(parts)), digest_size=32).hexdigest()


def _tagged(parts: Mapping[str, Value]) -> Iterator[bytes]:
    """Every part with its name, type and length, so that no two lists of parts are one text."""
    for name, value in (("format", FORMAT), *sorted(parts.items())):
        for text in (name, type(value).__name__, str(value)):
            content = text.encode("utf-8", "surrogatepass")
            yield len(content).to_bytes(8, "little") + content
