import numpy as np
import pytest

from difflens.diagnoses.signs.held_back import held_back_loss, is_flat
from difflens.testing.histories import falling, recorded

LIMIT = {"blind_values": 3, "flat": 0.02}


@pytest.mark.parametrize(("values", "flat"), [((1.1, 1.11, 1.1, 1.12), True),
                                              ((1.1, 1.0, 0.9, 0.8), False),
                                              ((1.1, 1.1, 1.1), False)])  # fmt: skip
def test_a_held_back_loss_is_flat_where_enough_values_never_fell(values, flat):
    held = np.full(80, np.nan)
    held[19 : 19 + 20 * len(values) : 20] = values[:4]

    found = held_back_loss(recorded(falling(80), scalars={"eval_loss": held}))

    assert is_flat(found, LIMIT) is flat
    assert held_back_loss(recorded(falling(80))) is None
