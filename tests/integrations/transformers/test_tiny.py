"""The tiny models are what they are said to be."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers.stable_topk import choosing_stably, stable_topk  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES, random_tokens, tiny_model  # noqa: E402
from hitproof.spec.errors import UsageError  # noqa: E402
from tests.integrations.transformers.live import logits, made, tokens_of  # noqa: E402

OBJECTS = {
    "deepseek-v3.2": {"full_kv", "routing_index"},
    "deepseek-v4": {"uncompressed_tail", "compressed_global", "routing_index", "compressor_state"},
    "gemma-3": {"full_kv", "uncompressed_tail"},
    "gpt-oss": {"full_kv", "uncompressed_tail"},
    "nemotron-h": {"full_kv", "recurrent_state"},
    "qwen3-next": {"full_kv", "recurrent_state"},
}


def test_every_name_makes_a_model() -> None:
    """Six kinds, and a typed refusal of anything else that names them."""
    assert tuple(sorted(OBJECTS)) == NAMES
    with pytest.raises(UsageError) as caught:
        tiny_model("gemma")
    assert "gemma-3" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
class TestEveryModel:
    """What the oracle relies on."""

    def test_the_cache_has_the_objects_of_its_kind(self, name: str) -> None:
        """Together they have every object with bytes that a live cache holds."""
        tiny, state = made(name)
        assert OBJECTS[name] == {tiny.profile.group(group).object for group in state.groups}

    def test_the_seed_decides_the_weights(self, name: str) -> None:
        """The same seed gives the same logits, another seed gives others."""
        tokens = tokens_of()[:, :20]
        first, again, other = (logits(tiny_model(name, seed), tokens, None) for seed in (0, 0, 1))
        assert torch.equal(first, again)
        assert not torch.allclose(first, other)

    def test_the_global_seed_is_left_alone(self, name: str) -> None:
        """Making a model draws nothing from the generator of others."""
        torch.manual_seed(5)
        wanted = torch.rand(3)
        torch.manual_seed(5)
        tiny_model(name)
        assert torch.equal(wanted, torch.rand(3))

    def test_answers_differ_from_token_to_token(self, name: str) -> None:
        """A model that always said the same would hide every fault."""
        answers = logits(made(name)[0], tokens_of()[:, :200], None)[0].argmax(-1)
        assert 30 <= len(set(answers.tolist()))

    def test_embeddings_are_untied(self, name: str) -> None:
        """What goes in says nothing of what comes out."""
        model = made(name)[0].model
        assert model.get_input_embeddings().weight.data_ptr() != model.get_output_embeddings().weight.data_ptr()

    def test_no_weight_is_blank(self, name: str) -> None:
        """No weight is constant: fresh norms are ones, fresh biases zeros, and would hide faults."""
        weights = {name: weight for name, weight in made(name)[0].model.named_parameters() if 1 < weight.numel()}
        assert not [name for name, weight in weights.items() if weight.std() == 0]


class TestStableTopK:
    """Ties are broken by place."""

    def test_the_first_of_equals_are_taken(self) -> None:
        """By function and by method, of the largest and of the smallest, along any dimension."""
        scores = torch.tensor([[1.0, 0.0, 1.0, 0.0, 2.0, 1.0]])
        with stable_topk():
            assert [[4, 0, 2]] == scores.topk(3).indices.tolist()
            assert [[4, 0, 2]] == torch.topk(scores, 3, dim=-1, sorted=False).indices.tolist()
            assert [[1, 3]] == scores.topk(2, largest=False).indices.tolist()
            assert [[2.0, 1.0, 1.0]] == scores.T.topk(3, dim=0).values.T.tolist()

    def test_it_agrees_with_the_library_where_nothing_is_equal(self) -> None:
        """The same values at the same places."""
        scores = torch.randperm(60, generator=torch.Generator().manual_seed(1)).view(3, 20).float()
        wanted = scores.topk(7)
        with stable_topk():
            got = scores.topk(7)
        assert torch.equal(wanted.values, got.values) and torch.equal(wanted.indices, got.indices)

    def test_nothing_is_changed_outside(self) -> None:
        """The library's own function is back afterwards."""
        original = torch.Tensor.topk
        with stable_topk():
            pass
        assert original is torch.Tensor.topk

    @pytest.mark.parametrize("name", ["deepseek-v3.2", "deepseek-v4"])
    def test_models_choose_stably_by_themselves(self, name: str) -> None:
        """Their logits are those of a run with the context open, and it chooses among more than it takes."""
        tiny = tiny_model(name)
        tokens = random_tokens(120, 4)
        with stable_topk():
            wanted = logits(tiny, tokens, None)
        assert torch.equal(wanted, logits(tiny, tokens, None))
        index = next(group for group in tiny.profile.groups if group.object == "routing_index")
        assert int(index.constants["top_k"]) < 120 // int(index.constants["ratio"])

    def test_only_indexers_are_touched(self) -> None:
        """A module without an index keeps its forward."""
        model = torch.nn.Sequential(torch.nn.Linear(2, 2))
        forward = model[0].forward
        assert choosing_stably(model)[0].forward == forward
