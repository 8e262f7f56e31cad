import numpy as np
import pytest

from difflens.core.records import TensorInfo
from difflens.diffs.analyses.param_efficiency_analysis import (
    random_effective_rank,
    random_stable_rank,
    sample,
    used,
)
from difflens.diffs.story import diff


def look(weight):
    model = {"a.weight": np.ascontiguousarray(weight, np.float32)}
    info = TensorInfo("a.weight", "F32", weight.shape)
    return used(diff(model, model), "left", info)


def effective_rank(weight):
    values = np.linalg.svd(weight, compute_uv=False)
    shares = values / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@pytest.mark.parametrize("shape", [(512, 512), (256, 1024), (1024, 128)])
def test_the_law_gives_the_effective_rank_of_random_matrices(shape):
    found = effective_rank(np.random.default_rng(0).normal(size=shape))

    assert random_effective_rank(*shape) == pytest.approx(found, rel=0.005)


def test_the_law_gives_the_published_values():
    assert random_effective_rank(768, 768) / 768 == pytest.approx(0.804, abs=0.0015)
    assert random_stable_rank(768, 768) == pytest.approx(192)
    assert random_stable_rank(256, 1024) == pytest.approx(113.8, abs=0.05)


@pytest.mark.parametrize("rank", [8, 16, 32])
def test_a_product_of_rank_r_uses_r_of_its_directions(rank):
    random = np.random.default_rng(0)
    weight = random.normal(size=(768, rank)) @ random.normal(size=(rank, 768))

    assert look(weight).utilization == pytest.approx(rank / (0.804 * 768), rel=0.05)


def test_a_random_matrix_is_used_whole():
    found = look(np.random.default_rng(0).normal(size=(512, 512)))

    assert found.utilization == pytest.approx(1, abs=0.01)
    assert found.stable_rank_ratio == pytest.approx(1, abs=0.06)


def test_zeros_and_repeated_rows_are_counted():
    weight = np.random.default_rng(0).normal(size=(64, 64))
    weight[:, :16] = 0
    weight[3] = weight[7] = weight[11]

    found = look(weight)

    assert (found.zero_share, found.duplicate_rows) == (0.25, 2)


def test_entropy_is_that_of_the_stored_codes_and_unknown_beyond_sixteen_bits():
    model = {"a.weight": np.tile(np.arange(16, dtype=np.float16), (64, 4))}
    info = TensorInfo("a.weight", "F16", (64, 64))

    assert used(diff(model, model), "left", info).entropy_bits == pytest.approx(4)
    assert look(np.ones((64, 64))).entropy_bits is None


def test_the_sample_is_spread_evenly_and_holds_no_table_of_words():
    shape = (32, 32)
    model = {f"layers.{i}.mlp.up_proj.weight": np.ones(shape, np.float32) for i in range(10)}
    model["embed_tokens.weight"] = np.ones(shape, np.float32)

    chosen = sample(diff(model, model), "left", 5)

    assert [info.name for info in chosen] == [
        f"layers.{i}.mlp.up_proj.weight" for i in range(0, 10, 2)
    ]
