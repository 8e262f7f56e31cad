import numpy as np
import pytest

from difflens.diagnoses.signs.recurrence import gains
from difflens.runs import Layer
from difflens.testing.histories import falling, recorded


@pytest.mark.parametrize("gain", [0.3, 1.0, 1.6])
def test_the_gain_of_a_multiple_of_an_orthogonal_matrix_is_that_multiple(gain):
    matrix, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))
    layers = (Layer("memory.weight_hh_l0", (16, 16), "RNN", "weight", 0),)

    found = gains(recorded(falling(5), layers=layers, weight_l2=np.linalg.norm(gain * matrix)))

    assert found == {"memory.weight_hh_l0": pytest.approx(gain)}


def test_gated_layers_have_no_gain():
    layers = (Layer("memory.weight_hh_l0", (48, 16), "GRU", "weight", 0),)

    assert gains(recorded(falling(5), layers=layers)) == {}
