"""Which units stayed silent."""

import numpy as np
import pytest

from difflens.core.errors import ModelError
from difflens.models.health.layers import _silent_units


def test_a_unit_is_silent_where_all_that_was_recorded_is_zero():
    activations = np.zeros((4, 5, 3))
    activations[2, 1, 1] = 0.1

    assert _silent_units({"fc": activations}, "fc.weight", 3).tolist() == [True, False, True]
    assert _silent_units({"fc.weight": activations}, "fc.weight", 3).tolist() == [True, False, True]


def test_without_activations_nothing_is_said():
    assert _silent_units({}, "fc.weight", 3) is None
    assert _silent_units({"other": [1.0]}, "fc.weight", 3) is None


def test_activations_of_other_units_are_refused():
    with pytest.raises(ModelError, match=r"shape \[2, 4\] for 3 units"):
        _silent_units({"fc": np.zeros((2, 4))}, "fc.weight", 3)
