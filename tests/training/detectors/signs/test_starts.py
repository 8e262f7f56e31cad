import numpy as np
import pytest

from difflens.testing.histories import level, recorded
from difflens.training.detectors.signs.sight import sight
from difflens.training.detectors.signs.starts import (
    first_loss_by_outputs,
    gain_a_layer,
    has_wild_weights,
)


@pytest.mark.parametrize(
    ("scales", "wild"),
    [([1.0, 1.0, 1.0], False), ([5.0, 5.0, 1.0], True), ([1.0, 1.0, 12.0], True), ([], False)],
)
def test_weights_are_wild_where_most_are_too_large_or_one_by_far(scales, wild):
    assert has_wild_weights(np.array(scales), 4.0, 10.0) is wild


def test_the_gain_of_a_layer_is_the_root_of_what_all_make_of_a_signal():
    """Six layers that double a signal of one make 64 of it: outputs five deviations wide."""
    facts = {"output": {"shape": [32, 3], "min": -160.0, "max": 160.0}, "input": {"std": 1.0}}

    assert gain_a_layer(sight(recorded(level(5), facts=facts))) == pytest.approx(2.0, rel=0.01)
    assert gain_a_layer(sight(recorded(level(5)))) is None


def test_the_first_loss_of_a_regression_is_measured_by_its_outputs():
    one = {"output": {"shape": [32, 1], "min": -2.5, "max": 2.5}}
    many = {"output": {"shape": [32, 3], "min": -2.5, "max": 2.5}}

    assert first_loss_by_outputs(sight(recorded([2000.0] * 5, facts=one))) == pytest.approx(1000.0)
    assert first_loss_by_outputs(sight(recorded([2000.0] * 5, facts=many))) == 0.0
