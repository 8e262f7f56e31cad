from difflens.testing.histories import level, recorded
from difflens.training.detectors.signs.norms import small_gains
from difflens.training.detectors.signs.sight import sight
from difflens.training.records.runs import Layer


def seen_with(*gains):
    layers = tuple(Layer(f"norm.{place}.weight", (16,), "LayerNorm", "weight", place)
                   for place in range(len(gains)))  # fmt: skip
    return sight(recorded(level(9), layers=layers, weight_l2=[4 * each for each in gains]))


def test_gains_near_zero_are_named_where_most_norms_have_them():
    assert small_gains(seen_with(0.0, 1e-4, 1.0)) == ["norm.0.weight", "norm.1.weight"]


def test_single_norms_that_start_at_zero_are_a_custom():
    assert small_gains(seen_with(0.0, 1.0)) == []
