import pytest
from diffs.analyses.networks import LLAMA_2_7B, LLAMA_3_8B
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.records import TensorInfo
from difflens.diffs.methods import roofline
from difflens.models.anatomy.network import Network, Shapes, network_of
from difflens.models.anatomy.settings import settings


def known(config):
    return network_of(settings(config, {}), Shapes())


@pytest.mark.parametrize(("config", "published"), [(LLAMA_2_7B, 524_288), (LLAMA_3_8B, 131_072)])
def test_published_cache_sizes_follow_from_the_config_alone(config, published):
    assert roofline.cache_per_token(known(config)) == published


def test_latent_attention_keeps_its_latent_and_its_rotated_part():
    config = {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}

    assert roofline.cache_per_token(known(config)) == 61 * 576 * 2


def test_without_heads_the_cache_is_unknown():
    assert roofline.cache_per_token(known({"hidden_size": 4096, "num_hidden_layers": 32})) is None


def test_a_window_bounds_the_cache_of_the_layers_that_have_one():
    config = LLAMA_3_8B | {"sliding_window": 1000, "sliding_window_pattern": 2}

    half = roofline.cache(known(config), 4000, 1)

    assert half == 131_072 // 32 * (16 * 4000 + 16 * 1000)


def test_a_window_of_unknown_layers_leaves_the_cache_unknown_only_beyond_it():
    config = known(LLAMA_3_8B | {"sliding_window": 1000})

    assert roofline.cache(config, 4000, 1) is None
    assert roofline.cache(config, 500, 1) == 500 * 131_072


@given(tokens=st.integers(1, 10**6), batch=st.integers(1, 512))
def test_the_cache_grows_with_tokens_and_sequences_alike_up_to_the_positions(tokens, batch):
    filled = min(tokens, LLAMA_2_7B["max_position_embeddings"])

    assert roofline.cache(known(LLAMA_2_7B), tokens, batch) == filled * batch * 524_288


def test_training_keeps_what_korthikanti_counts():
    network = Network(layers=96, heads=96, hidden=12288)

    kept = roofline.training_activations(network, 2048, 1)

    assert kept["stored"] == 2048 * 12288 * 96 * (34 + 5 * 96 * 2048 // 12288)
    assert kept["flash_attention"] == 34 * 2048 * 12288 * 96
    assert kept["full_recomputation"] == 2 * 2048 * 12288 * 96


def test_adapters_are_on_matrices_and_not_on_tables():
    every = [
        TensorInfo("embed_tokens.weight", "F32", (100, 8)),
        TensorInfo("layers.0.q_proj.weight", "F32", (16, 8)),
        TensorInfo("layers.0.q_proj.bias", "F32", (16,)),
    ]

    assert roofline.adapter_parameters(every, 4) == 4 * (16 + 8)
