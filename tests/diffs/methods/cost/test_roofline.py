import pytest
from diffs.analyses.networks import LLAMA_2_7B, infos, llama
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.records import TensorInfo
from difflens.diffs.methods.roofline import (
    Machine,
    Work,
    bound,
    decode,
    distinct_experts,
    prefill,
    seconds,
)
from difflens.diffs.methods.weights import weights
from difflens.models.anatomy.network import network_of, shapes
from difflens.models.anatomy.settings import settings

LLAMA = infos(llama(LLAMA_2_7B), "F16")
NETWORK = network_of(settings(LLAMA_2_7B, {}), shapes(LLAMA))
TABLE = 32000 * 4096  # the embedding, of which a token reads one row
NORMS = 65 * 4096


def test_a_token_reads_all_weights_but_the_table_of_words_and_the_cache():
    work = decode(NETWORK, weights(LLAMA), 1000, 1, 16)

    assert work.bytes == 2 * (6_738_415_616 - TABLE) + 1000 * 524_288
    matrices = 6_738_415_616 - TABLE - NORMS
    assert work.flops == 2 * matrices + 4 * 32 * 4096 * 1000


def test_a_table_that_is_the_head_too_is_read():
    tied = [info for info in LLAMA if info.name != "lm_head.weight"]
    config = LLAMA_2_7B | {"tie_word_embeddings": True}

    untied = decode(NETWORK, weights(LLAMA), 0, 1, 16)
    shared = decode(network_of(settings(config, {}), shapes(tied)), weights(tied), 0, 1, 16)

    assert shared == untied


def test_reading_a_prompt_multiplies_every_token_and_half_of_all_pairs():
    flops = prefill(NETWORK, weights(LLAMA), 2048)

    matrices = 6_738_415_616 - TABLE - NORMS
    assert flops == 2 * matrices * 2048 + 4 * 32 * 4096 * 2048**2 / 2


def test_a_mixture_reads_only_the_experts_that_are_hit():
    every = [TensorInfo("layers.0.mlp.experts.w1", "F16", (8, 16, 4))]
    config = {"num_local_experts": 8, "num_experts_per_tok": 2}
    network = network_of(settings(config, {}), shapes(every))

    one, many = (decode(network, weights(every), 0, batch, 16) for batch in (1, 1000))

    assert one.bytes == 2 * 16 * 4 * 2
    assert one.flops == 2 * 16 * 4 * 2
    assert many.bytes == pytest.approx(8 * 16 * 4 * 2)


def test_without_the_routing_the_work_of_a_mixture_is_unknown():
    every = [TensorInfo("layers.0.mlp.experts.w1", "F16", (8, 16, 4))]

    assert decode(network_of(settings({}, {}), shapes(every)), weights(every), 0, 1, 16) is None


@given(experts=st.integers(1, 256), chosen=st.integers(1, 256), batch=st.integers(1, 10_000))
def test_distinct_experts_are_between_those_of_one_token_and_all(experts, chosen, batch):
    chosen = min(chosen, experts)

    hit = distinct_experts(experts, chosen, batch)

    assert chosen - 1e-9 <= hit <= experts + 1e-9


@given(
    flops=st.floats(1, 1e18),
    size=st.floats(1, 1e15),
    peak=st.floats(1e6, 1e16),
    bandwidth=st.floats(1e6, 1e13),
)
def test_the_time_is_the_longer_of_the_two_and_the_bound_says_which(flops, size, peak, bandwidth):
    work, machine = Work(flops, size), Machine(bandwidth, peak)

    time = seconds(work, machine)

    assert time == max(flops / peak, size / bandwidth)
    assert time == (flops / peak if bound(work, machine) == "compute" else size / bandwidth)


def test_no_machine_gives_no_time():
    assert seconds(Work(1.0, 1.0), Machine()) is None
    assert bound(Work(1.0, 1.0), Machine(bandwidth_bytes=1.0)) is None
