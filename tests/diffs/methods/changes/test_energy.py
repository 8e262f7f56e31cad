import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged

from difflens.diffs.analyses import analyse
from difflens.diffs.methods.changes.energy import total
from difflens.diffs.story import diff


def fields(left, right, **options):
    return analyse("change_summary", diff(left, right, **options)).fields


def one(values):
    return {"a.weight": np.array(values, np.float32)}


def test_magnitude_is_the_norm_of_the_difference_over_the_norm_of_what_moved():
    left = {"a.weight": np.array([3, 4], np.float64), "b.weight": np.array([100.0])}
    right = {"a.weight": np.array([3, 5], np.float64), "b.weight": np.array([100.0])}

    assert fields(left, right)["magnitude"] == pytest.approx(1 / 5)


def test_magnitude_weighs_by_energy_and_the_median_does_not():
    left = {f"h.{i}.weight": np.array([10.0**i]) for i in range(3)}
    right = {
        name: value * factor
        for (name, value), factor in zip(left.items(), (2, 1.5, 1.1), strict=True)
    }

    found = fields(left, right)

    assert found["median_relative_l2"] == pytest.approx(0.5)
    assert found["magnitude"] == pytest.approx(np.sqrt((1 + 5**2 + 10**2) / (1 + 10**2 + 100**2)))


def test_scaling_both_models_leaves_the_magnitude_alone():
    left = decoder(dtype=np.float64)
    right = changed(left, nudged, "mlp")
    twice = [{name: value * 4 for name, value in side.items()} for side in (left, right)]

    assert fields(*twice)["magnitude"] == pytest.approx(fields(left, right)["magnitude"])


def test_buffers_and_integers_stay_out_of_the_sums():
    left = one([1, 1]) | {
        "bn.running_mean": np.zeros(2, np.float32),
        "bn.num_batches_tracked": np.array(1, np.int64),
    }
    right = one([1, 2]) | {
        "bn.running_mean": np.full(2, 100, np.float32),
        "bn.num_batches_tracked": np.array(1000, np.int64),
    }

    assert fields(left, right)["magnitude"] == pytest.approx(np.sqrt(1 / 2))


def test_what_was_all_zeros_has_no_relative_size():
    envelope = analyse("change_summary", diff(one([0, 0]), one([1, 0])))

    assert envelope.status == "partial"
    assert envelope.fields["magnitude"] is None
    assert {"magnitude", "median_relative_l2"} <= {each.field for each in envelope.missing}


def test_shares_by_role_add_up_to_one_with_the_largest_first():
    model = decoder()

    shares = fields(model, changed(model, nudged, ""))["share_by_role"]

    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert {"attention_q", "mlp", "norm", "head", "bias", "embedding"} <= set(shares)


def test_the_profile_runs_by_depth_and_is_zero_where_nothing_moved():
    model = decoder(layers=12)

    profile = fields(model, changed(model, nudged, "layers.10.mlp"))["depth_profile"]

    assert [each["block"] for each in profile] == [f"model.layers.{i}" for i in range(12)]
    assert [i for i, each in enumerate(profile) if each["relative_l2"]] == [10]
    assert profile[10]["share"] == 1


def test_a_change_in_one_tensor_of_many_is_concentrated():
    model = decoder()
    even = fields(model, changed(model, nudged, "q_proj.weight"))["concentration"]
    uneven = fields(
        model, changed(changed(model, nudged, "q_proj.weight"), lambda value: value + 9, "2.mlp.up")
    )["concentration"]

    assert even["gini"] < 0.1
    assert uneven["gini"] > 0.7
    assert uneven["top5_share"] == pytest.approx(1)


def test_sums_that_are_no_number_are_no_error():
    assert total([1e308, 1e308]) == np.inf
    assert np.isnan(total([np.inf, -np.inf]))


def test_values_too_large_to_square_give_no_number_instead_of_infinity():
    left = {"a.weight": np.array([1e300, 1.0])}

    assert fields(left, {"a.weight": np.array([2e300, 1.0])})["magnitude"] is None
