"""What a tensor is, by name and shape."""

import pytest

from difflens.weights.kinds import kind_of


@pytest.mark.parametrize(
    ("name", "shape", "word"),
    [
        ("model.layers.0.mlp.up_proj.weight", (8, 4), "linear"),
        ("conv1.weight", (8, 4, 3, 3), "convolution"),
        ("layer_norm.weight", (8,), "norm"),
        ("h.0.ln_1.weight", (8,), "norm"),
        ("bn1.bias", (8,), "norm"),
        ("fc.bias", (8,), "bias"),
        ("dense/bias", (8,), "bias"),
        ("wte.weight", (100, 8), "embedding"),
        ("token_embd.weight", (100, 8), "embedding"),
        ("bn1.running_mean", (8,), "buffer"),
        ("layers.0.rotary_emb.inv_freq", (8,), "buffer"),
        ("alpha", (), "vector"),
        ("0", (3, 4), "linear"),
    ],
)
def test_the_kind_is_told_by_name_and_shape(name, shape, word):
    assert kind_of(name, shape).word == word


def test_fans_are_those_of_the_layout():
    assert kind_of("fc.weight", (10, 20))[1:] == (20, 10, 0)
    assert kind_of("dense/kernel:0", (20, 10))[1:] == (20, 10, 1)
    assert kind_of("conv.weight", (16, 3, 5, 5))[1:3] == (75, 400)
    assert kind_of("conv2d/kernel", (5, 5, 3, 16))[1:] == (75, 400, 3)
