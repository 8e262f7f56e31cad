import json

import pytest
from diffs.analyses.networks import LLAMA_3_8B, Part, gpt2, infos, llama
from diffs.analyses.small import decoder

from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.methods.networks import network
from difflens.diffs.story import diff
from difflens.models.anatomy.network import network_of, shapes
from difflens.models.anatomy.settings import settings


def known(parts=(), config=None, keys=None):
    return network_of(settings(config, keys or {}), shapes(infos(parts)))


def test_shapes_tell_widths_and_layers_but_never_heads():
    found = known(llama(LLAMA_3_8B))

    assert (found.layers, found.hidden, found.ffn, found.vocab) == (32, 4096, 14336, 128256)
    assert (found.heads, found.kv_heads, found.head_dim) == (None, None, None)
    assert found.basis["hidden"] == "shapes"
    assert not found.has_settings


def test_the_heads_of_keys_follow_from_their_width_once_the_heads_are_known():
    found = known(llama(LLAMA_3_8B), {"num_attention_heads": 32})

    assert (found.kv_heads, found.head_dim) == (8, 128)
    assert found.basis["kv_heads"] == "rows of k / head_dim"


def test_gpt2_is_read_from_its_own_keys():
    found = known(gpt2(), {"n_head": 12, "n_layer": 12, "n_embd": 768, "n_positions": 1024})

    assert (found.heads, found.kv_heads, found.head_dim, found.context) == (12, 12, 64, 1024)
    assert found.ffn == 3072


def test_gguf_says_it_in_keys_of_its_architecture():
    keys = {
        "general.architecture": "llama", "llama.block_count": "22",
        "llama.attention.head_count": "32", "llama.attention.head_count_kv": "4",
        "llama.embedding_length": "2048", "llama.context_length": "2048",
    }  # fmt: skip
    found = known(keys=keys)

    assert (found.family, found.layers, found.kv_heads, found.head_dim) == ("llama", 22, 4, 64)
    assert found.basis["heads"] == "GGUF: llama.attention.head_count"


@pytest.mark.parametrize(("said", "kv_heads"), [("[4, 4, 4]", 4), ("[4, 8, 4]", None)])
def test_a_number_for_every_layer_is_one_where_all_are_alike(said, kv_heads):
    keys = {
        "general.architecture": "x", "x.attention.head_count": "8",
        "x.attention.head_count_kv": said,
    }  # fmt: skip

    assert known(keys=keys).kv_heads == kv_heads


def test_the_language_part_of_a_larger_model_is_looked_into():
    found = known(config={"model_type": "llava", "text_config": {"num_attention_heads": 40}})

    assert (found.family, found.heads) == ("llava", 40)


def test_experts_are_counted_by_their_numbers_or_their_stack():
    numbered = [Part(f"layers.0.experts.{i}.w1.weight", (4, 4)) for i in range(6)]
    stacked = [Part("layers.0.mlp.experts.gate_up_proj", (6, 4, 4))]

    assert known(numbered).experts == known(stacked).experts == 6


@pytest.mark.parametrize(
    ("config", "tied"),
    [
        ({"tie_word_embeddings": True}, True),
        ({"tie_word_embeddings": False}, False),
        ({"architectures": ["GPT2LMHeadModel"]}, True),
        ({}, None),
    ],
)
def test_a_head_that_is_not_stored_is_tied_only_if_something_says_that_there_is_one(config, tied):
    assert known(gpt2(2), config).tied is tied


def test_a_stored_head_is_not_tied():
    assert known(llama(LLAMA_3_8B | {"num_hidden_layers": 1})).tied is False


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 8),
        ({"sliding_window": 4096, "sliding_window_pattern": 4}, 6),
        ({"sliding_window": 4096, "max_window_layers": 6}, 2),
        ({"sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]}, 1),
        ({"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 1}, None),
        ({"sliding_window": 4096}, None),
    ],
)
def test_windowed_layers_are_counted_as_the_settings_have_it(config, layers):
    assert known(config={"num_hidden_layers": 8} | config).windowed_layers == layers


def test_hostile_settings_say_nothing():
    config = {"num_attention_heads": -4, "hidden_size": "4096", "n_layer": True, "head_dim": 1e9}

    found = known(config=config)

    assert (found.heads, found.hidden, found.layers, found.head_dim) == (None, None, None, None)


def test_a_handed_config_wins_over_the_one_beside_the_weights(tmp_path):
    from safetensors.numpy import save_file

    for side in ("left", "right"):
        (tmp_path / side).mkdir()
        save_file(decoder(), tmp_path / side / "model.safetensors")
        (tmp_path / side / "config.json").write_text(json.dumps({"num_attention_heads": 4}))
    models = diff(tmp_path / "left", tmp_path / "right")

    handed = Evidence(left=Side(config={"num_attention_heads": 2}))

    assert network(models, handed, "left").heads == 2
    assert network(models, handed, "right").heads == 4
    assert network(models, handed, "right").basis["heads"] == "config.json: num_attention_heads"
