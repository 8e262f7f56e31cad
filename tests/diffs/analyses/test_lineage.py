from itertools import pairwise

import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged
from simulation import near, replicates

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.methods.kinship import spearman
from difflens.diffs.methods.symmetry.matching import match_rows
from difflens.diffs.story import diff

SIGMA = 0.02


def told(left, right, evidence=None):
    return analyse("lineage", diff(left, right), evidence or Evidence())


def gated(seed, layers=3, units=512, width=128):
    """Make the feed-forward layers of a decoder."""
    random = np.random.default_rng(seed)
    shapes = {"up": (units, width), "gate": (units, width), "down": (width, units)}
    return {
        f"model.layers.{i}.mlp.{part}_proj.weight": random.normal(0, SIGMA, shape).astype("f4")
        for i in range(layers)
        for part, shape in shapes.items()
    }


def noisy(model, times, seed=7):
    random = np.random.default_rng(seed)
    return {
        name: (value + times * SIGMA * random.normal(size=value.shape)).astype("f4")
        for name, value in model.items()
    }


def secretly_permuted(model, seed=8):
    random = np.random.default_rng(seed)
    other = {}
    for name, value in model.items():
        if "up_proj" in name:
            order = random.permutation(len(value))
            other[name] = value[order]
            other[name.replace("up", "gate")] = model[name.replace("up", "gate")][order]
            other[name.replace("up", "down")] = model[name.replace("up", "down")][:, order]
    return other


MODEL = gated(0)


def test_a_model_and_itself_are_identical():
    envelope = told(MODEL, MODEL)

    assert envelope.fields["verdict"] == "identical"
    assert envelope.findings == ()


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("f4")


@pytest.mark.parametrize(
    "right",
    [
        {"beta.weight": random(32, 48)},
        {"beta.weight": random(64, 64, seed=1)},
        {"alpha.weight": random(32, 48)},
        {"beta.weight": random(32, 48), "steps": np.arange(3)},
        {"steps": np.arange(3)},
    ],
    ids=["shares no tensor", "another name", "another shape", "shares a counter", "lost them"],
)
def test_two_models_that_share_no_tensor_are_not_the_same_up_to_rounding(right):
    left = {"alpha.weight": random(64, 64), "steps": np.arange(3)}

    for one, other in ((left, right), (right, left)):
        assert told(one, other).fields["verdict"] == "inconclusive"


def test_a_tensor_that_came_makes_a_model_no_longer_the_same():
    found = told(MODEL, MODEL | {"adapter.weight": random(32, 48)}).fields

    assert found["verdict"] == "derived"
    assert found["direct"] == {
        "rho": 1.0,
        "log10_p": found["direct"]["log10_p"],
        "spoke": 9,
        "kin": 9,
    }
    assert found["copied"]["text"] == "9 of 10 tensors, 3 of 3 layers, 99.7% of the parameters"


def test_matrices_of_ones_that_both_have_make_nobody_kin():
    ones = {f"layers.{n}.weight": np.ones((32, 32), "f4") for n in range(4)}

    found = told(ones, ones | {"head.weight": random(32, 48)}).fields

    assert found["verdict"] == "inconclusive"


def test_embeddings_that_were_copied_prove_kinship_though_the_rest_is_drawn_anew():
    words = random(300, 64)
    left = MODEL | {"model.embed_tokens.weight": words}
    right = gated(1) | {"model.embed_tokens.weight": words}

    envelope = told(left, right)

    assert envelope.fields["verdict"] == "derived"
    assert envelope.fields["copied"]["text"].startswith("1 of 10 tensors, 0 of 3 layers")
    assert envelope.findings[0].text.startswith("copied bit for bit: 1 of 10 tensors")


def test_two_layers_that_were_copied_prove_kinship_and_leave_the_p_of_the_model_alone():
    left, other = gated(0, layers=6, units=64, width=32), gated(1, layers=6, units=64, width=32)
    right = {
        n: left[n] if n.startswith(("model.layers.1.", "model.layers.4.")) else other[n]
        for n in left
    }

    found = told(left, right).fields

    assert found["verdict"] == "derived"
    assert (found["copied"]["layers"], found["copied"]["of_layers"]) == (2, 6)
    assert abs(found["median_rho"]) < 0.2
    assert found["log10_p"] > -2  # most layers have no relation: no p may say that they have
    assert found["u_test"]["kin"] == 2


def test_a_rotated_residual_stream_is_not_independent():
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(128, 128)))[0]
    right = {
        name: (turn.T @ value if "down" in name else value @ turn).astype("f4")
        for name, value in MODEL.items()
    }

    for noise in (0, 0.1):
        found = told(MODEL, noisy(right, noise)).fields
        assert found["verdict"] == "derived"
        assert abs(found["direct"]["rho"]) < 0.1
        assert found["gram"]["rho"] > 0.95


def test_layers_that_were_moved_are_found_under_their_other_names():
    moved = {name.replace(".0.", ".9."): value for name, value in gated(0).items() if ".0." in name}

    found = told(MODEL, gated(3) | moved).fields["copied"]

    assert (found["tensors"], found["elsewhere"], found["layers"]) == (3, 3, 1)


def test_rows_that_a_vocabulary_kept_count_as_copied():
    words = random(300, 64)
    right = gated(1) | {"model.embed_tokens.weight": np.concatenate([words, random(20, 64)])}

    found = told(MODEL | {"model.embed_tokens.weight": words}, right).fields

    assert found["copied"]["tensors"] == 1
    assert found["verdict"] == "derived"


def waves(length, width):
    """Make the table of positions by sine and cosine."""
    speed = 1e4 ** (-np.arange(0, width, 2) / width)
    angle = np.arange(length)[:, None] * speed
    return np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(length, width).astype("f4")


@pytest.mark.parametrize(
    "table",
    [
        waves(512, 64),
        np.hanning(512).astype("f4"),
        np.eye(64, dtype="f4"),
        np.tile(np.log(np.arange(1, 17, dtype="f4")), (64, 1)),
        np.arange(1, 513, dtype="f4"),
        np.ones((64, 64), "f4"),
        (np.hanning(256) * np.cos(np.outer(np.arange(129), np.arange(256)) * np.pi / 128)).astype(
            "f4"
        ),
    ],
    ids=["positions by sine", "window", "identity", "logarithms", "counter", "ones", "fourier"],
)
def test_a_table_that_a_formula_made_is_no_proof_of_kinship(table):
    found = told(MODEL | {"table": table}, gated(1) | {"table": table}).fields

    assert found["copied"]["tensors"] == 0
    assert found["verdict"] == "independent_not_rejected"


def test_units_in_another_order_in_every_layer_are_not_independent_after_more_training():
    random = np.random.default_rng(0)
    widths = [20, 48, 48, 48, 10]
    pairs = list(pairwise(widths))
    left = {
        f"{2 * i}.weight": random.normal(size=(b, a)).astype("f4") for i, (a, b) in enumerate(pairs)
    }
    right = {name: value + 0.2 * random.normal(size=value.shape) for name, value in left.items()}
    for i in range(3):
        order = random.permutation(48)
        right[f"{2 * i}.weight"] = right[f"{2 * i}.weight"][order]
        right[f"{2 * i + 2}.weight"] = right[f"{2 * i + 2}.weight"][:, order]

    found = told(left, {name: value.astype("f4") for name, value in right.items()}).fields

    assert abs(found["direct"]["rho"]) < 0.1
    assert found["verdict"] == "derived"


def test_identities_that_both_models_began_from_make_nobody_kin():
    def started(seed):
        random = np.random.default_rng(seed)
        return {
            f"layers.{i}.weight": (np.eye(48) + random.normal(0, 0.02, (48, 48))).astype("f4")
            for i in range(4)
        }

    assert told(started(0), started(1)).fields["direct"]["kin"] == 0


def test_a_cast_is_the_same_up_to_rounding():
    half = {name: value.astype(np.float16) for name, value in MODEL.items()}

    assert told(MODEL, half).fields["verdict"] == "same_up_to_rounding"


@pytest.mark.parametrize("times", [0.1, 0.5, 1, 2])
def test_noise_up_to_twice_the_weights_leaves_every_unit_its_place(times):
    found = told(MODEL, noisy(MODEL, times)).fields

    assert found["u_test"]["rho"] == pytest.approx(1.0, abs=5e-3)
    assert found["verdict"] == "derived"


def test_g11_noise_of_three_times_the_weights_leaves_most_units_their_place():
    found = told(MODEL, noisy(MODEL, 3)).fields

    assert found["u_test"]["rho"] == pytest.approx(0.83, abs=0.08)
    assert found["rho"][0]["u_log10_p"] < -100
    assert found["direct"]["rho"] == pytest.approx(0.31, abs=0.02)
    assert found["verdict"] == "derived"


def test_noise_of_five_times_the_weights_is_kin_by_p_but_not_by_effect():
    found = told(MODEL, noisy(MODEL, 5)).fields

    assert found["u_test"]["rho"] == pytest.approx(0.16, abs=0.08)
    assert found["direct"]["rho"] == pytest.approx(0.19, abs=0.02)
    assert found["verdict"] == "inconclusive"


def test_g11_a_secret_permutation_hides_from_all_but_the_match():
    found = told(MODEL, noisy(secretly_permuted(MODEL), 0.3)).fields

    assert abs(found["direct"]["rho"]) < 0.05
    assert abs(found["u_test"]["rho"]) < 0.15
    assert found["match_test"]["rho"] == 1
    assert found["verdict"] == "derived"


def test_g11_independent_models_are_not_called_kin():
    found = told(MODEL, gated(1)).fields

    assert abs(found["u_test"]["rho"]) < 0.15
    assert abs(found["match_test"]["rho"]) < 0.15
    assert found["log10_p"] > -2
    assert found["verdict"] == "independent_not_rejected"


@replicates
def test_independence_is_rejected_as_rarely_as_promised(repeats):
    sizes = {"layers": 3, "units": 24, "width": 12}
    pairs = (told(gated(2 * i, **sizes), gated(2 * i + 1, **sizes)).fields for i in range(repeats))
    found = [(each["rho"][0], each) for each in pairs]

    for test in ("u", "match", "gram"):  # of one layer: exact
        rejected = np.mean([layer[f"{test}_log10_p"] < np.log10(0.05) for layer, _ in found])
        assert near(rejected, 0.05, repeats, slack=0.015)
    for test in ("u_test", "match_test", "gram", "direct"):  # of half of the layers: never above
        rejected = np.mean([each[test]["log10_p"] < np.log10(0.05) for _, each in found])
        assert rejected <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
    assert np.mean([each["verdict"] == "derived" for _, each in found]) == 0


def lstm(seed):
    """Make a layer whose gates lie apart from each other, as after training."""
    random = np.random.default_rng(seed)
    gates = np.repeat(np.random.default_rng(99).normal(0, 1, (4, 1)), 64, axis=0)
    means = np.concatenate([np.full((64, 16), gate) for gate in gates[::64, 0]])
    return {
        "lstm.weight_ih_l0": (random.normal(size=(256, 16)) + means).astype("f4"),
        "lstm.weight_hh_l0": random.normal(size=(256, 64)).astype("f4"),
        "out.weight": random.normal(size=(3, 64)).astype("f4"),
    }


def test_gates_of_a_recurrent_layer_do_not_make_independent_models_kin():
    pairs = [(lstm(2 * i), lstm(2 * i + 1)) for i in range(8)]
    rows = [[side["lstm.weight_ih_l0"] for side in pair] for pair in pairs]

    rhos = [told(*pair).fields["u_test"]["rho"] for pair in pairs]

    trap = [spearman(np.arange(256), match_rows(*each)) for each in rows]
    assert np.mean(trap) > 0.2  # row against row they match gate to gate
    assert abs(np.mean(rhos)) < 3 / np.sqrt(64 * 8)


def test_a_fine_tune_of_attention_alone_is_derived():
    model = decoder()

    found = told(model, changed(model, nudged, "self_attn")).fields

    assert found["verdict"] == "derived"
    assert found["u_test"]["rho"] == 1


def test_layers_in_another_order_are_found_by_the_layer_matrix():
    swapped = {
        name.replace(".0.", ".x.").replace(".1.", ".0.").replace(".x.", ".1."): value * 1.01
        for name, value in MODEL.items()
    }

    envelope = told(MODEL, {name: swapped[name].astype("f4") for name in MODEL})

    places = [each["from"] for each in envelope.fields["layer_map"]]
    assert places == [f"model.layers.{i}.mlp" for i in (1, 0, 2)]
    assert envelope.findings[0].evidence["layers"] == 2


def test_a_layer_grafted_from_elsewhere_has_no_origin():
    other = noisy(MODEL, 0.2) | {k: v for k, v in gated(5).items() if ".1." in k}

    found = told(MODEL, other).fields

    assert [each["from"] is None for each in found["layer_map"]] == [False, True, False]


def test_a_deeper_model_made_of_repeated_layers_is_traced():
    deeper = noisy(MODEL, 0.1)
    deeper |= {name.replace(".2.", ".3."): v for name, v in deeper.items() if ".2." in name}

    found = told(MODEL, deeper).fields

    origins = {each["layer"]: each["from"] for each in found["layer_map"]}
    assert origins["model.layers.3.mlp"] == "model.layers.2.mlp"


def test_heads_are_compared_by_what_a_rotation_leaves():
    random = np.random.default_rng(3)
    names = {part: f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkvo"}
    left = {name: random.normal(size=(32, 32)).astype("f4") for name in names.values()}
    right = dict(left)
    for head in range(4):
        turn = np.linalg.qr(random.normal(size=(8, 8)))[0]
        rows = slice(8 * head, 8 * head + 8)
        for part in "qk":
            turned = right[names[part]].copy()
            turned[rows] = turn @ left[names[part]][rows]
            right[names[part]] = turned
    side = Side(config={"num_attention_heads": 4, "hidden_size": 32})

    found = told(left, right, Evidence(left=side, right=side)).fields["invariants"]

    assert found["median_cosine"] == pytest.approx(1, abs=1e-5)
    assert abs(found["median_with_next_head"]) < 0.2


def test_direction_is_null_with_the_reason_where_nothing_speaks():
    envelope = told(MODEL, noisy(MODEL, 0.1))

    (missing,) = [each for each in envelope.missing if each.field == "direction"]
    assert envelope.fields["direction"] is None
    assert "--base" in missing.needs


def test_a_base_that_is_the_left_model_gives_the_direction():
    other = noisy(MODEL, 0.1)
    evidence = Evidence(base=(diff(MODEL, MODEL), diff(MODEL, other)))

    assert told(MODEL, other, evidence).fields["direction"] == "left_to_right"


def test_training_steps_give_the_direction():
    other = noisy(MODEL, 0.1)
    evidence = Evidence(left=Side(step=900), right=Side(step=100))

    assert told(MODEL, other, evidence).fields["direction"] == "right_to_left"


def test_a_vocabulary_that_grew_gives_the_direction():
    words = np.random.default_rng(0).normal(size=(60, 16)).astype("f4")
    left = MODEL | {"model.embed_tokens.weight": words[:50]}
    right = noisy(MODEL, 0.1) | {"model.embed_tokens.weight": words}

    assert told(left, right).fields["direction"] == "left_to_right"


def test_models_without_layers_to_compare_are_inconclusive():
    found = told({"a": np.ones(3, "f4")}, {"a": np.zeros(3, "f4")})

    assert found.fields["verdict"] == "inconclusive"
    assert found.fields["log10_p"] is None


def test_a_matrix_with_nans_is_left_out():
    other = noisy(MODEL, 0.1)
    other["model.layers.1.mlp.up_proj.weight"][0, 0] = np.nan

    found = told(MODEL, other).fields

    assert found["match_test"]["spoke"] == 2
    assert found["verdict"] == "derived"
