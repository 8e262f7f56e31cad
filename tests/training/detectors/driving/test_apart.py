"""Layers whose own rate is far above that of all others."""

import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import WIDTH, falling, level, network, recorded

SIZE = WIDTH**0.5  # norm of a matrix of a made network
SEVERAL = {"name": "AdamW", "several_rates": True}


def thrown(losses, *, optimizer, part=0.4):
    """Record steps of a hundredth, but for the third layer, whose first ones tear it."""
    updates = np.full((len(losses), len(network())), 0.01 * SIZE)
    updates[:5, 4] = part * SIZE
    updates[5:] = 1e-5 * SIZE
    return recorded(losses, optimizer=optimizer, update_l2=updates, weight_l2=SIZE)


def test_one_layer_that_its_own_rate_tore_is_the_cause_of_a_loss_that_is_stuck():
    found = only("lr-high", thrown(level(200), optimizer=SEVERAL))

    assert found.layers == ("hidden.2.weight",)
    assert found.fix.code == "scale_lr"
    assert 0.1 < found.fix.parameters["factor"] < 0.3


def test_with_one_rate_for_all_or_a_loss_that_falls_it_is_no_fault():
    assert asked("lr-high", thrown(level(200), optimizer={"name": "AdamW"})) == []
    assert asked("lr-high", thrown(falling(200), optimizer=SEVERAL)) == []
    assert asked("lr-high", thrown(level(200), optimizer=SEVERAL, part=0.05)) == []


def test_a_loss_that_was_won_and_lost_again_is_told_of_too():
    losses = np.concatenate([falling(60, pace=0.1), level(60, at=1.5)])

    assert only("lr-high", thrown(losses, optimizer=SEVERAL)).layers == ("hidden.2.weight",)
