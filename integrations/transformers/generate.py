"""`generate()` behind a prefix cache: each prompt of a batch finds its own prefix, and what it adds is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hitproof.integrations.transformers.stable_topk import stable_topk
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

if TYPE_CHECKING:
    from hitproof.integrations.transformers.prefix_cache import PrefixCache

__all__ = ["generate"]

_OURS = ("cache", "past_key_values", "use_cache", "return_dict_in_generate", "assistant_model", "inputs_embeds")
"""Options that the cache sets itself, or that bring another cache or no tokens."""


def generate(
    cache: PrefixCache,
    input_ids: Any,
    attention_mask: Any,
    *,
    facts: Mapping[str, Value] | None,
    keep: bool,
    options: Mapping[str, Any],
) -> Any:
    """As `PrefixCache.generate`.

    A prompt is looked up, and computed up to its last token, by itself. Prompts of one length then go on together in
    one batch, so that no row is padded and no state has seen a padding token.
    """
    _must_serve(cache.model, options)
    prompts = _prompts(input_ids, attention_mask)
    by_length: dict[int, list[int]] = {}
    for place, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(place)
    answers: dict[int, Sequence[int]] = {}
    for places in by_length.values():
        group = [prompts[place] for place in places]
        for place, answer in zip(places, _together(cache, group, facts, options, keep=keep), strict=True):
            answers[place] = answer
    return _padded(cache.model, input_ids, [answers[place] for place in range(len(prompts))])


def _together(
    cache: PrefixCache,
    prompts: Sequence[Sequence[int]],
    facts: Mapping[str, Value] | None,
    options: Mapping[str, Any],
    *,
    keep: bool,
) -> list[Sequence[int]]:
    """The new tokens of prompts of one length."""
    length = len(prompts[0])
    pasts = [
        cache.prefill(prompt, facts=facts, keep=keep, until=length - 1).past if length > 1 else cache.state.fresh()
        for prompt in prompts
    ]
    past = pasts[0] if len(pasts) == 1 else cache.state.stack(pasts)
    given = torch.tensor([list(prompt) for prompt in prompts], device=cache.model.device)
    with torch.no_grad(), stable_topk():
        ids = cache.model.generate(given, attention_mask=torch.ones_like(given), cache=past, **options)
    found: list[Sequence[int]] = []
    for row, tokens in enumerate(ids.tolist()):
        answer = _until_end(cache.model, tokens[length:], options)
        # A row that ended early has seen padding since, which is nobody's prompt.
        if keep and len(answer) == len(tokens) - length:
            cache.keep(tokens[:-1], past, facts=facts, row=row)
        found.append(answer)
    return found


def _must_serve(model: Any, options: Mapping[str, Any]) -> None:
    ours = [name for name in _OURS if options.get(name) is not None]
    if ours:
        raise UsageError("the prefix cache sets this itself", got=ours[0])
    config = options.get("generation_config") or model.generation_config
    for name in ("num_beams", "num_return_sequences"):
        if (options.get(name) or getattr(config, name, None) or 1) > 1:
            raise UsageError("a row of the batch goes on as one row", got=name, expected=f"{name} of 1")


def _prompts(input_ids: Any, attention_mask: Any) -> list[list[int]]:
    """The tokens of each row, without its padding."""
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    if mask.shape != input_ids.shape or input_ids.dim() != 2:
        raise UsageError(
            "the mask does not fit the tokens", got=f"{list(mask.shape)} and {list(input_ids.shape)}", expected="[B, N]"
        )
    found = []
    for row, (tokens, shown) in enumerate(zip(input_ids.tolist(), mask.tolist(), strict=True)):
        count = sum(1 for one in shown if one)
        if not count or not all(shown[len(shown) - count :]):
            raise UsageError("a prompt is padded on the left alone, and has tokens", got=f"row {row}")
        found.append(tokens[len(tokens) - count :])
    return found


def _until_end(model: Any, tokens: Sequence[int], options: Mapping[str, Any]) -> Sequence[int]:
    """An answer up to its end, with the token that ends it."""
    ends = set(_ends(model, options))
    for place, token in enumerate(tokens):
        if token in ends:
            return tokens[: place + 1]
    return tokens


def _ends(model: Any, options: Mapping[str, Any]) -> Iterable[int]:
    config = options.get("generation_config") or model.generation_config
    given = options.get("eos_token_id", config.eos_token_id)
    if given is None:
        return ()
    return (int(given),) if isinstance(given, int) else tuple(int(one) for one in given)


def _padded(model: Any, input_ids: Any, answers: Sequence[Sequence[int]]) -> Any:
    pad = model.generation_config.pad_token_id
    width = max(len(answer) for answer in answers)
    rows = [[*answer, *[pad or 0] * (width - len(answer))] for answer in answers]
    return torch.cat([input_ids, torch.tensor(rows, dtype=input_ids.dtype, device=input_ids.device)], dim=1)
