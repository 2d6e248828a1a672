"""Which bytes a group's rows are, held against the library's own tensors and the repairs' own formats."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers.state import StateMap, profile_of  # noqa: E402
from hitproof.kernels.blocks import Geometry, gather, pool_of  # noqa: E402
from hitproof.kernels.norms import Linear, Norm  # noqa: E402
from hitproof.kernels.numbers import decode  # noqa: E402
from hitproof.kernels.recompress import Compressor, live_rows, project, state_from_rows  # noqa: E402
from hitproof.kernels.recompress.pages import state_format, state_rows, write_state  # noqa: E402
from hitproof.kernels.rotary import Rotary  # noqa: E402
from hitproof.spec.errors import ProfileError  # noqa: E402
from hitproof.spec.profile import Profile  # noqa: E402
from tests.integrations.transformers.live import made, prefilled, tokens_of  # noqa: E402

LENGTH = 131


def numbers(name: str, group: str, start: int, end: int) -> Any:
    """float32 [layers, rows, values] of a group."""
    tiny, state = made(name)
    payload = state.rows(prefilled(name, LENGTH), group, start, end)
    layers = len(tiny.profile.group(group).layers)
    size = int(tiny.profile.group(group).constants.get("row_bytes", len(payload))) // layers // 4
    return torch.frombuffer(bytearray(payload), dtype=torch.float32).view(layers, -1, size)


def layers_of(name: str, group: str) -> list[Any]:
    """The library's own layers of a group, after the same tokens."""
    past = prefilled(name, LENGTH)
    return [past.layers[index] for index in made(name)[0].profile.group(group).layers]


@pytest.mark.parametrize(("name", "first"), [("gemma-3", 120), ("gpt-oss", 116)])
def test_a_row_has_all_heads_keys_and_then_all_heads_values(name: str, first: int) -> None:
    """Of full layers for every token, of windowed ones for the last W - 1."""
    for group, start in (("full", 0), ("window", first)):
        got = numbers(name, group, start, LENGTH).unflatten(-1, (2, 2, 16))
        for place, layer in enumerate(layers_of(name, group)):
            assert torch.equal(layer.keys[0], got[place, :, 0].transpose(0, 1))
            assert torch.equal(layer.values[0], got[place, :, 1].transpose(0, 1))


def test_a_latent_row_has_the_latent_and_then_the_rotary_key() -> None:
    """And the index has a key for each."""
    rows, keys = numbers("deepseek-v3.2", "full", 5, 90), numbers("deepseek-v3.2", "index", 5, 90)
    for place, layer in enumerate(layers_of("deepseek-v3.2", "full")):
        assert torch.equal(layer.keys[0, 0, 5:90], rows[place, :, :24])
        assert torch.equal(layer.values[0, 0, 5:90], rows[place, :, 24:])
        assert torch.equal(layer.indexer_keys[0, 5:90], keys[place])


def test_v4_keeps_one_row_for_keys_and_values_and_entries_by_ratio() -> None:
    """The window in every layer, entries and index keys where a layer compresses."""
    window = numbers("deepseek-v4", "window", 120, LENGTH)
    for place, layer in enumerate(layers_of("deepseek-v4", "window")):
        assert torch.equal(layer.keys[0, 0], window[place]) and torch.equal(layer.values[0, 0], window[place])
    for group, name, ratio in (("csa_entries", "compressor", 4), ("csa_index", "indexer", 4)):
        got = numbers("deepseek-v4", group, 9, 102)
        for place, layer in enumerate(layers_of("deepseek-v4", group)):
            assert torch.equal(layer.compressed_kv[name][0, 9 // ratio : 102 // ratio], got[place])
    hca = layers_of("deepseek-v4", "hca_entries")[0]
    assert torch.equal(hca.compressed_kv["compressor"][0], numbers("deepseek-v4", "hca_entries", 0, LENGTH)[0])


@pytest.mark.parametrize("length", [3, 4, 6, 127, 128, 131])
def test_a_compressor_state_is_as_the_repair_writes_it(length: int) -> None:
    """Made by `recompress` from the layers' inputs and written as it writes pages: the same live rows, none besides."""
    tiny, state = made("deepseek-v4")
    norms: dict[int, Any] = {}
    layers = tiny.model.model.layers
    hooks = [
        layer.input_layernorm.register_forward_hook(lambda _m, _a, out, at=at: norms.__setitem__(at, out[0].detach()))
        for at, layer in enumerate(layers)
    ]
    past = prefilled("deepseek-v4", length)
    for hook in hooks:
        hook.remove()
    for group, name in (("csa_state", ""), ("csa_index_state", "indexer"), ("hca_state", "")):
        members = tiny.profile.group(group).layers
        payload = state.rows(past, group, 0, length)
        for place, at in enumerate(members):
            module = layers[at].self_attn.compressor
            module = module.indexer if name else module
            own = Compressor(
                module.position_bias.detach(),
                Norm(module.kv_norm.weight.detach(), module.kv_norm.variance_epsilon),
                Rotary(module.rotary_emb.compress_inv_freq, pairing="interleaved", place="trailing"),
                overlap=group != "hca_state",
            )
            live = live_rows(length, own.ratio, own.overlap)
            weights = (Linear(module.kv_proj.weight.detach()), Linear(module.gate_proj.weight.detach()))
            rows = norms[at][length - live :]
            form = state_format(own)
            pool, table = pool_of(Geometry(state_rows(own), 1, form.cell_bytes), 1), torch.zeros(1, dtype=torch.int64)
            write_state(pool, table, state_from_rows(*project(rows, *weights), own, length - live), own)
            wanted = decode(gather(pool, table, state_rows(own))[:, 0], form)
            got = torch.frombuffer(bytearray(payload), dtype=torch.float32).view(len(members), -1, wanted.shape[1])[
                place
            ]
            old = live - length % own.ratio
            # Of the rows before the unfinished entry the library keeps the series that is read, and no other.
            for half in (slice(0, own.size), slice(own.width, own.width + own.size)):
                torch.testing.assert_close(got[:old, half], wanted[:old, half], rtol=0, atol=2e-6)
            torch.testing.assert_close(got[old:live], wanted[old:live], rtol=0, atol=2e-6)
            assert torch.equal(got[live:], wanted[live:])


@pytest.mark.parametrize(("name", "taps"), [("qwen3-next", 4), ("nemotron-h", 4)])
def test_a_recurrent_row_has_the_state_and_then_the_convolutions_last_inputs(name: str, taps: int) -> None:
    """The input that the library keeps in addition is in no row."""
    got = numbers(name, "linear", LENGTH, LENGTH).flatten(1)
    for place, layer in enumerate(layers_of(name, "linear")):
        state, inputs = layer.recurrent_states[0][0], layer.conv_states[0][0]
        assert torch.equal(state.flatten(), got[place, : state.numel()])
        assert torch.equal(inputs[:, 1 - taps :].T.flatten(), got[place, state.numel() :])


class TestRefusals:
    """A profile that is not that of the model's tensors."""

    @pytest.mark.parametrize("name", ["deepseek-v3.2", "deepseek-v4", "gemma-3", "nemotron-h"])
    def test_another_element_type_is_refused(self, name: str) -> None:
        """Rows of two bytes an element are not those of a float32 model."""
        model = made(name)[0].model
        with pytest.raises(ProfileError):
            StateMap(model, profile_of(model.config, dtype=torch.bfloat16))

    @pytest.mark.parametrize("group", ["csa_entries", "csa_index", "csa_state"])
    def test_a_group_with_other_rows_is_refused_by_its_name(self, group: str) -> None:
        """Whichever it is."""
        tiny = made("deepseek-v4")[0]
        groups = []
        for one in tiny.profile.groups:
            constants = {**one.constants}
            if one.id == group:
                constants["row_bytes"] = 2 * int(constants["row_bytes"])
            groups.append(one.model_copy(update={"constants": constants}))
        other: Profile = tiny.profile.model_copy(update={"groups": tuple(groups)})
        with pytest.raises(ProfileError) as caught:
            StateMap(tiny.model, other)
        assert group == caught.value.rule


def test_the_tokens_are_long_enough() -> None:
    """Every test here asks for tokens that there are."""
    assert LENGTH < tokens_of().shape[1]
