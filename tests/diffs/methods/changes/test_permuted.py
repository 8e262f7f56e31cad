import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged, reordered

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff


def told(left, right):
    return analyse("change_summary", diff(left, right)).fields


def weights(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_columns_in_another_order_are_found_exactly(seed):
    random = np.random.default_rng(seed)
    left = {"a.weight": weights(24, 17), "b.bias": weights(24)}
    rows, columns = random.permutation(24), random.permutation(17)
    right = {"a.weight": left["a.weight"][np.ix_(rows, columns)], "b.bias": left["b.bias"][rows]}

    found = told(left, right)

    assert found["patterns"] == ["permuted_inconsistently"]  # nothing after it undoes the order
    assert found["evidence"]["permuted_inconsistently"]["relative_l2_after"] == 0


def test_two_rows_that_changed_places_are_counted():
    left = {"a.weight": weights(20, 9)}
    order = [1, 0, *range(2, 20)]

    found = told(left, {"a.weight": left["a.weight"][order]})

    assert found["evidence"]["permuted"]["moved"] == pytest.approx(2 / 20)


def test_values_shuffled_across_rows_and_columns_are_no_order_of_them():
    left = {"a.weight": weights(24, 17)}
    mixed = np.random.default_rng(3).permutation(left["a.weight"].ravel()).reshape(24, 17)

    assert told(left, {"a.weight": mixed})["patterns"] != ["permuted"]


def test_rows_of_zeros_and_twins_are_no_hindrance():
    values = weights(20, 9)
    values[3] = values[4] = 0
    values[5] = values[6]
    order = np.random.default_rng(1).permutation(20)

    found = told({"a.weight": values}, {"a.weight": values[order]})

    assert found["patterns"] == ["permuted"]


def test_a_reordering_under_noise_is_seen_by_alignment():
    model = decoder(width=64)
    other = changed(reordered(model), nudged, "mlp")

    found = told(model, other)

    assert found["patterns"] == ["permuted"]
    assert found["evidence"]["permuted"]["relative_l2_after"] == pytest.approx(0.087, rel=0.2)


def test_a_model_drawn_anew_is_not_called_a_reordering():
    found = told(decoder(width=64), decoder(width=64, seed=1))

    assert found["patterns"] == ["reinitialised"]


@pytest.mark.parametrize("way", ["rows", "columns", "turned"])
def test_tensors_that_are_too_large_to_be_read_whole_are_no_failure(monkeypatch, way):
    values = weights(40, 40)
    order = np.random.default_rng(2).permutation(40)
    other = {"rows": values[order], "columns": values[:, order], "turned": values.T.copy()}[way]
    small = told({"a.weight": values}, {"a.weight": other})["patterns"]
    monkeypatch.setattr("difflens.measure.values.LARGEST", 2000)

    patterns = told({"a.weight": values}, {"a.weight": other})["patterns"]

    assert small == [{"turned": "transposed"}.get(way, "permuted")]
    assert patterns == (["permuted"] if way == "rows" else ["reinitialised"])
