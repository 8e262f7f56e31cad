import pytest
from diffs.analyses.networks import (
    LLAMA_3_8B,
    Part,
    alexnet,
    bert,
    gpt2,
    infos,
    linear,
    llama,
    resnet,
    vit,
)

from difflens.models.anatomy.family import family
from difflens.models.anatomy.network import Network

SMALL = LLAMA_3_8B | {"num_hidden_layers": 1}


def lstm():
    yield Part("lstm.weight_ih_l0", (64, 8))
    yield Part("lstm.weight_hh_l0", (64, 16))


def gru():
    yield Part("rnn.weight_hh_l0", (48, 16))


def mamba():
    yield Part("backbone.layers.0.mixer.A_log", (32, 16))
    yield Part("backbone.layers.0.mixer.conv1d.weight", (32, 1, 4))
    yield Part("backbone.layers.0.mixer.dt_proj.weight", (32, 4))


def mixture():
    for part in llama(SMALL):
        if ".mlp." not in part.name:
            yield part
    yield Part("model.layers.0.mlp.gate.weight", (8, 64))
    yield Part("model.layers.0.mlp.experts.0.up_proj.weight", (64, 64))


def both():
    yield from resnet((2, 2, 2, 2), bottleneck=False)
    for part in "qkv":
        yield Part(f"attention.{part}_proj.weight", (64, 64))
    yield Part("attention.out_proj.weight", (64, 64))


def perceptron():
    yield from linear("net.0", 32, 8)
    yield from linear("net.2", 4, 32)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (llama(SMALL), "decoder transformer"),
        (gpt2(2), "decoder transformer"),
        (bert(2), "transformer"),
        (vit(16, layers=2), "vision transformer"),
        (resnet((2, 2, 2, 2), bottleneck=False), "cnn"),
        (alexnet(), "cnn"),
        (lstm(), "lstm"),
        (gru(), "gru"),
        (mamba(), "ssm"),
        (mixture(), "moe decoder transformer"),
        (both(), "hybrid"),
        (perceptron(), "mlp"),
        ([Part("a", (3,))], "unknown"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_rules_tell_what_a_model_is(parts, name):
    assert family(Network(), infos(parts)).name == name


def test_settings_win_over_rules():
    found = family(Network(family="qwen2"), infos(llama(SMALL)))

    assert (found.name, found.basis) == ("qwen2", "config")


def test_the_shares_of_the_parameters_add_up():
    shares = family(Network(), infos(both())).shares

    assert sum(shares.values()) == pytest.approx(1)
    assert shares["convolution"] > shares["attention"] > 0
