import numpy as np
import pytest
from diagnoses.histories import only

from difflens.testing.histories import recorded

FACTS = {"output": {"shape": [32, 10], "min": -1.0, "max": 1.0}, "final_module": "Linear"}


@pytest.mark.parametrize(("first", "power", "code"), [(0.2, 1.0, "normalise_scores"),
                                                      (2.4, 1.0, "negate_loss"),
                                                      (0.2, 2.0, "negate_loss")])  # fmt: skip
def test_scores_begin_at_nothing_and_grow_with_the_outputs(first, power, code):
    """A negated cross entropy begins at minus guessing, a negated error grows with the square."""
    outputs = 1.2 ** np.arange(80)
    losses = -first * outputs**power

    history = recorded(losses, facts=FACTS, act_std=outputs)

    assert only("loss-pairing", history).fix.code == code
