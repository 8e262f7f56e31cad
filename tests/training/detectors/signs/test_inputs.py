import numpy as np
import pytest

from difflens.testing.histories import falling, recorded
from difflens.training.detectors.signs.inputs import input_size, swell, target_size
from difflens.training.detectors.signs.sight import sight


@pytest.mark.parametrize(("until", "lasts"), [(60, True), (41, False)])
def test_a_swelling_is_dated_to_its_step_and_told_to_last_or_not(until, lasts):
    at = np.arange(60)
    sizes = np.where((at >= 40) & (at < until), 30.0, 1.0)

    found = swell(sight(recorded(falling(60), act_std=sizes)))

    assert (found.step, found.lasts) == (40, lasts)
    assert found.times == pytest.approx(30)


def test_a_slow_growth_is_no_swelling():
    assert swell(sight(recorded(falling(100), act_std=1.05 ** np.arange(100)))) is None


def test_tokens_have_no_size():
    tokens, numbers = ({"input": {"dtype": kind, "std": 3.0}} for kind in ("int64", "float32"))

    assert input_size(sight(recorded(falling(9), facts=tokens))) is None
    assert input_size(sight(recorded(falling(9), facts=numbers))) == 3.0


def test_a_squared_error_far_beyond_the_outputs_shows_the_targets():
    facts = {"output": {"shape": [8, 1], "min": -1.0, "max": 1.0}}

    assert target_size(sight(recorded([1e4, 9e3], facts=facts))) == pytest.approx(100)
    assert target_size(sight(recorded([1.0, 0.9], facts=facts))) is None


def test_a_sum_of_cross_entropies_over_a_batch_has_no_targets_of_a_size():
    facts = {"output": {"shape": [64, 10], "min": -2.0, "max": 2.0}}

    for first, told in ((64 * 2.8, False), (64 * 12.0, True)):
        assert (target_size(sight(recorded([first, first], facts=facts))) is not None) is told
