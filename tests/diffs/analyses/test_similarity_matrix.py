import json

import numpy as np
import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.analyses.similarity_matrix import cosines, gram, u_centred
from difflens.diffs.story import diff
from difflens.stats.similarity import linear_cka

NAME = "similarity_matrix"
LAYERS, WIDTH, UNITS = 5, 24, 64


def model(seed=0, layers=LAYERS, width=WIDTH):
    random = np.random.default_rng(seed)
    return {
        f"model.layers.{layer}.mlp.up_proj.weight": random.normal(size=(UNITS, width))
        for layer in range(layers)
    }


def ask(left, right, **thresholds):
    return analyse(NAME, diff(left, right), policy=Policy({NAME: thresholds}))


def test_the_entries_are_unbiased_cka_with_residual_dimensions_as_samples():
    left, right = model(), model(1)

    fields = ask(left, right).fields

    assert fields["dimensions"] == [LAYERS, LAYERS]
    for i, before in enumerate(left.values()):
        for j, after in enumerate(right.values()):
            expected = linear_cka(before.T, after.T)
            assert fields["matrix"][i][j] == pytest.approx(expected, abs=1e-5)


def test_permuting_the_units_of_a_layer_moves_nothing():
    left = model()
    right = {name: value[np.random.default_rng(3).permutation(UNITS)]
             for name, value in left.items()}  # fmt: skip

    fields = ask(left, right).fields

    assert fields["diagonal_mean"] == pytest.approx(1, abs=1e-6)


def test_layers_that_changed_places_are_seen_off_the_diagonal():
    left = model()
    names = list(left)
    right = dict(left) | {names[0]: left[names[1]], names[1]: left[names[0]]}

    matrix = np.array(ask(left, right).fields["matrix"])

    assert matrix[0, 1] == pytest.approx(1, abs=1e-6)
    assert matrix[:, :2].argmax(0).tolist() == [1, 0]


def test_unrelated_layers_are_near_zero_and_near_chance():
    """G13 by way of the matrix: unbiased 0.00 [0.01] for Gaussians of n = p = 1000."""
    random = np.random.default_rng(4)
    kernels = [u_centred(np.dot(x, x.T)) for x in random.normal(size=(2, 1000, 1000))]

    assert cosines(kernels[0][None], kernels[1][None])[0, 0] == pytest.approx(0, abs=0.01)


def test_chance_is_told_beside_the_mean():
    fields = ask(model(), model()).fields

    assert abs(fields["null_mean"]) < 0.1 < fields["mean_similarity"]
    assert fields["diagonal_mean"] == pytest.approx(1, abs=1e-6)


def test_matrices_that_write_to_the_residual_stream_are_turned():
    left = {f"h.{layer}.mlp.c_fc.weight": value.T.copy()
            for layer, value in enumerate(model().values())}  # fmt: skip

    plain, turned = ask(model(), model(1)).fields, ask(left, left).fields

    np.testing.assert_allclose(turned["matrix"], plain["left_matrix"], atol=1e-6)


def test_layers_of_two_kinds_are_two_groups():
    random = np.random.default_rng(6)
    first, second = random.normal(size=(2, UNITS, WIDTH))
    left = {
        f"layers.{place}.mlp.up_proj.weight": (first if place < 3 else second)
        + 0.01 * random.normal(size=(UNITS, WIDTH))
        for place in range(6)
    }

    clustering = ask(left, left).fields["clustering"]

    assert clustering["groups"] == 2
    assert clustering["silhouette"] > 0.9


def test_many_layers_and_dimensions_are_sampled_and_said_so():
    envelope = ask(model(layers=9, width=40), model(1, layers=9, width=40), layers=4, dimensions=16)

    assert envelope.fields["dimensions"] == [4, 4]
    assert any("16 of its residual dimensions" in line for line in envelope.assumptions)


def test_the_user_may_choose_the_module():
    random = np.random.default_rng(7)
    more = {f"model.layers.{at}.self_attn.q_proj.weight": random.normal(size=(WIDTH, WIDTH))
            for at in range(LAYERS)}  # fmt: skip

    names = ask(model() | more, model() | more, module="q_proj").fields["layer_names"]

    assert names["left"] == list(more)


def test_a_gram_matrix_is_the_same_from_rows_and_from_columns():
    matrix = np.random.default_rng(8).normal(size=(6, 9))
    found = diff({"w": matrix, "t": matrix.T.copy()}, {"w": matrix, "t": matrix.T.copy()})
    chosen = np.array([0, 2, 5])

    upright, turned = (
        gram(found.values("left", name), axis, chosen) for name, axis in (("w", 0), ("t", 1))
    )

    np.testing.assert_allclose(upright, turned)


def test_scaling_and_swapping_change_nothing_but_the_direction():
    left, right = model(), model(1)

    plain, back = ask(left, right).fields, ask(right, left).fields
    scaled = ask(*({name: value * 4 for name, value in side.items()} for side in (left, right)))

    np.testing.assert_allclose(np.transpose(back["matrix"]), plain["matrix"], atol=1e-7)
    assert scaled.fields["matrix"] == plain["matrix"]


def test_layers_that_are_not_finite_or_do_not_vary_are_left_out():
    left, right = model(), model(1)
    names = list(left)
    right[names[0]] = np.full((UNITS, WIDTH), np.nan)
    right[names[1]] = np.zeros((UNITS, WIDTH))

    envelope = ask(left, right)

    assert envelope.fields["dimensions"] == [LAYERS, LAYERS - 2]
    assert "2 layers that do not vary or are not finite are left out" in envelope.assumptions
    json.dumps(envelope.to_dict(), allow_nan=False)


@pytest.mark.parametrize("flat", [{}, {"fc.weight": np.ones((4, 4))}])
def test_a_model_without_blocks_has_no_layers_to_compare(flat):
    assert ask(flat, flat).status == "not_applicable"


def test_headers_alone_are_not_enough():
    envelope = analyse(NAME, diff(model(), model(), shape_only=True))

    assert envelope.status == "not_enough_information"
