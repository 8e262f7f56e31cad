import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged, reordered

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

HEADS = Side(config={"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32})


def aligned(left, right, evidence=None, policy=None):
    return analyse("align", diff(left, right), evidence or Evidence(), policy or Policy())


def relu_net(seed=0, inputs=64, units=256, outputs=10):
    """Make two layers with a ReLU between them."""
    random = np.random.default_rng(seed)
    shapes = {"fc1.weight": (units, inputs), "fc1.bias": (units,), "fc2.weight": (outputs, units)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def shuffled(net, seed=1):
    """Put its hidden units in another order."""
    order = np.random.default_rng(seed).permutation(len(net["fc1.bias"]))
    return {
        "fc1.weight": net["fc1.weight"][order],
        "fc1.bias": net["fc1.bias"][order],
        "fc2.weight": net["fc2.weight"][:, order],
    }


def noisy(model, sigma, seed=2):
    random = np.random.default_rng(seed)
    return {
        name: (value + sigma * random.normal(size=value.shape)).astype(value.dtype)
        for name, value in model.items()
    }


def test_g3_reordered_hidden_units_are_put_back_exactly():
    net = relu_net()

    found = aligned(net, shuffled(net)).fields

    assert found["relative_l2_before"] == pytest.approx(1.405, abs=0.02)
    assert found["relative_l2_after"] == 0
    assert found["units"] == 256


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_all_256_units_are_found_again_under_noise(sigma):
    net = relu_net()

    found = aligned(net, noisy(shuffled(net), sigma)).fields

    # A single unit in a wrong place would add about 2 / 256 of the norm.
    assert found["relative_l2_after"] == pytest.approx(sigma, rel=0.01)


def test_units_in_place_stay_in_place_and_nothing_is_found():
    net = relu_net()

    envelope = aligned(net, noisy(net, 0.1))

    assert envelope.fields["fixed_points"] == 1
    assert envelope.fields["objective_gain"] == 0
    assert envelope.findings == ()


def test_a_reordering_is_a_finding_with_its_numbers():
    net = relu_net()

    (finding,) = aligned(net, shuffled(net)).findings

    assert finding.evidence["relative_l2_after"] == 0
    assert finding.evidence["moved"] > 200


def test_the_feed_forward_layers_of_a_decoder_are_put_back():
    model = decoder(dtype=ml_dtypes.bfloat16, width=32)

    found = aligned(model, reordered(model)).fields

    assert found["relative_l2_after"] == 0
    assert [each["kind"] for each in found["groups"]] == ["mlp"] * 3


def test_kv_groups_and_the_heads_within_them_are_put_back():
    random = np.random.default_rng(3)
    place = "model.layers.0.self_attn"
    shapes = {"q": (32, 32), "k": (16, 32), "v": (16, 32), "o": (32, 32)}
    left = {
        f"{place}.{part}_proj.weight": random.normal(size=shape).astype(np.float32)
        for part, shape in shapes.items()
    }
    heads, groups = np.array([3, 2, 0, 1]), np.array([1, 0])  # heads 2, 3 belong to group 1
    rows = (heads[:, None] * 8 + np.arange(8)).ravel()
    pairs = (groups[:, None] * 8 + np.arange(8)).ravel()
    right = {
        f"{place}.q_proj.weight": left[f"{place}.q_proj.weight"][rows],
        f"{place}.k_proj.weight": left[f"{place}.k_proj.weight"][pairs],
        f"{place}.v_proj.weight": left[f"{place}.v_proj.weight"][pairs],
        f"{place}.o_proj.weight": left[f"{place}.o_proj.weight"][:, rows],
    }

    found = aligned(left, right, Evidence(left=HEADS, right=HEADS)).fields

    assert found["relative_l2_after"] == 0
    assert found["groups"][0]["kind"] == "heads"


def test_heads_are_not_tried_where_their_number_is_unknown():
    model = decoder(width=32)

    envelope = aligned(model, changed(model, nudged, "q_proj.weight"))

    assert envelope.status == "not_applicable"
    assert envelope.fields["groups"] is None


def test_channels_of_a_convolution_move_with_their_batch_norm():
    random = np.random.default_rng(4)
    shapes = {
        "conv1.weight": (16, 3, 3, 3), "bn1.weight": (16,), "bn1.bias": (16,),
        "conv2.weight": (8, 16, 3, 3), "conv3.weight": (8, 8, 3, 3),
    }  # fmt: skip
    left = {k: random.normal(size=shape).astype(np.float32) for k, shape in shapes.items()}
    first, second = random.permutation(16), random.permutation(8)
    right = {
        "conv1.weight": left["conv1.weight"][first],
        "bn1.weight": left["bn1.weight"][first],
        "bn1.bias": left["bn1.bias"][first],
        "conv2.weight": left["conv2.weight"][second][:, first],
        "conv3.weight": left["conv3.weight"][:, second],
    }

    found = aligned(left, right).fields

    assert found["relative_l2_after"] == 0
    assert found["units"] == 24


def test_hidden_units_of_an_lstm_move_over_all_four_gates():
    random = np.random.default_rng(5)
    shapes = {
        "lstm.weight_ih_l0": (128, 12), "lstm.weight_hh_l0": (128, 32), "lstm.bias_ih_l0": (128,),
        "out.weight": (5, 32),
    }  # fmt: skip
    left = {k: random.normal(size=shape).astype(np.float32) for k, shape in shapes.items()}
    order = random.permutation(32)
    rows = (np.arange(4)[:, None] * 32 + order).ravel()
    right = {
        "lstm.weight_ih_l0": left["lstm.weight_ih_l0"][rows],
        "lstm.weight_hh_l0": left["lstm.weight_hh_l0"][rows][:, order],
        "lstm.bias_ih_l0": left["lstm.bias_ih_l0"][rows],
        "out.weight": left["out.weight"][:, order],
    }

    found = aligned(left, right).fields

    assert found["relative_l2_after"] == 0
    assert found["groups"][0]["units"] == 32


def test_a_group_of_too_many_units_is_aligned_where_each_finds_its_own():
    net = relu_net()
    policy = Policy({"align": {"max_units": 100}})

    assert aligned(net, noisy(shuffled(net), 0.1), policy=policy).fields["relative_l2_after"] < 0.2


def test_a_group_of_too_many_units_is_skipped_with_the_reason_where_a_search_would_be_needed():
    policy = Policy({"align": {"max_units": 100}})

    envelope = aligned(relu_net(0), relu_net(1), policy=policy)

    assert envelope.fields["relative_l2_after"] is None
    assert "max_units" in envelope.fields["skipped"][0]["why"]


def test_a_layer_with_nans_is_skipped_with_the_reason():
    net = relu_net()
    other = noisy(net, 0.1)
    other["fc1.weight"][0, 0] = np.nan

    assert "NaN" in aligned(net, other).fields["skipped"][0]["why"]


def test_independent_nets_gain_little():
    envelope = aligned(relu_net(0), relu_net(1))

    assert envelope.fields["relative_l2_after"] > 1
    assert envelope.findings == ()


def test_swapping_the_sides_keeps_the_gain():
    net, other = relu_net(), noisy(shuffled(relu_net()), 0.3)

    there, back = aligned(net, other).fields, aligned(other, net).fields

    assert back["objective_gain"] == pytest.approx(there["objective_gain"], rel=1e-6)
