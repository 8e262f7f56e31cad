"""What the program of a forward pass shows of the parameters that it uses."""

import jax
import jax.numpy as jnp
import pytest

from difflens.training.hooks.jax import layers_of, read_pass

SQUARE, BATCH = jnp.ones((3, 3)), jnp.ones((2, 3))


def forward(params, batch):
    """Go through the layers in an order that is not that of the alphabet."""
    hidden = jax.nn.relu(batch @ params["zeroth"]["kernel"] + params["zeroth"]["bias"])
    hidden = hidden @ params["middle"]
    mean = hidden.mean(-1, keepdims=True)
    spread = jnp.sqrt(hidden.var(-1, keepdims=True) + 1e-5)
    hidden = jnp.tanh((hidden - mean) / spread * params["gain"])
    return jax.jit(lambda values: values @ params["last"])(hidden)


PARAMS = {
    "zeroth": {"kernel": SQUARE, "bias": jnp.ones(3)},
    "middle": SQUARE,
    "gain": jnp.ones(3),
    "last": SQUARE,
    "idle": SQUARE,
}


def test_layers_stand_in_the_order_in_which_the_pass_uses_them():
    layers = layers_of(PARAMS, read_pass(forward, PARAMS, BATCH))
    order = [each.name for each in sorted(layers, key=lambda each: each.depth)]

    assert order == ["zeroth.kernel", "zeroth.bias", "middle", "gain", "last", "idle"]


def test_each_layer_has_the_non_linearity_behind_it_also_past_a_norm():
    layers = {each.name: each for each in layers_of(PARAMS, read_pass(forward, PARAMS, BATCH))}

    assert {name: each.activation for name, each in layers.items()} == {
        "zeroth.kernel": "ReLU", "zeroth.bias": "ReLU", "middle": "Tanh", "gain": "Tanh",
        "last": "", "idle": "",
    }  # fmt: skip
    assert layers["middle"].kind == "Dense"


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (jax.nn.relu, "ReLU"), (lambda x: jnp.maximum(x, 0), "ReLU"), (jax.nn.gelu, "GELU"),
        (lambda x: jax.nn.gelu(x, approximate=False), "GELU"), (jax.nn.silu, "SiLU"),
        (lambda x: x * jax.nn.sigmoid(x), "SiLU"), (jax.nn.sigmoid, "Sigmoid"),
        (jax.nn.leaky_relu, "LeakyReLU"), (jax.nn.elu, "ELU"), (jnp.tanh, "Tanh"),
        (lambda x: jnp.maximum(x, 1.0), ""), (lambda x: x + 1, ""),
    ],
)  # fmt: skip
def test_non_linearities_are_known_however_they_are_written(function, name):
    passed = read_pass(lambda weight, batch: function(batch @ weight), SQUARE, BATCH)

    assert passed.activations.get(0, "") == name


@pytest.mark.parametrize(
    ("function", "final"),
    [
        (jax.nn.softmax, "Softmax"), (jax.nn.log_softmax, "LogSoftmax"),
        (lambda x: (e := jnp.exp(x)) / e.sum(-1, keepdims=True), "Softmax"),
        (lambda x: x / x.sum(-1, keepdims=True), ""), (jax.nn.sigmoid, "Sigmoid"),
        (lambda x: x, ""), (lambda x: jax.nn.softmax(x) * 2 - 1, ""),
    ],
)  # fmt: skip
def test_probabilities_at_the_end_are_known_as_such(function, final):
    passed = read_pass(lambda weight, batch: function(batch @ weight), SQUARE, BATCH)

    assert passed.final == final
    assert passed.output == (2, 3)


def test_recomputation_and_loops_do_not_stand_in_the_way():
    def looped(params, batch):
        state, _ = jax.lax.scan(
            lambda state, each: (jnp.tanh(each + state @ params["w"]), None),
            jnp.zeros(3), batch @ params["v"],
        )  # fmt: skip
        return jax.checkpoint(lambda values: jax.nn.relu(values @ params["u"]))(state)

    params = {"u": SQUARE, "v": SQUARE, "w": SQUARE}
    passed = read_pass(looped, params, BATCH)

    assert sorted(passed.depths, key=passed.depths.get) == [1, 2, 0]
    assert passed.activations == {0: "ReLU"}


def test_numbers_in_names_count_as_numbers_where_no_pass_was_read():
    tree = {f"layer{i}": jnp.ones(1) for i in (0, 2, 10)}
    order = [each.name for each in sorted(layers_of(tree), key=lambda each: each.depth)]

    assert order == ["layer0", "layer2", "layer10"]
