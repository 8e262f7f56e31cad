import numpy as np
import pytest

from difflens.diagnoses.signs.decay import decay_that_wins
from difflens.diagnoses.signs.sight import sight
from difflens.testing.histories import level, recorded


@pytest.mark.parametrize(
    ("pace", "decay", "told"),
    [(0.05, 0.1, 0.1), (0.001, 0.1, None), (0.05, 1e-5, None), (0.05, None, None)],
)
def test_a_decay_wins_where_it_is_strong_and_the_weights_shrink(pace, decay, told):
    history = recorded(level(60), weight_l2=np.exp(-pace * np.arange(60)),
                       optimizer={"weight_decay": decay})  # fmt: skip

    assert decay_that_wins(sight(history)) == told
