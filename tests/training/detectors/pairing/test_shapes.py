import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import noise, recorded

POINTS = 120
COLUMN = {"output": {"shape": [64, 1], "min": -2.0, "max": 2.0}}
LOSSES = noise(POINTS, 0.15, 1)
# How far the targets of a batch lie off the one number that every output is.
OFF = np.abs(np.random.default_rng(2).standard_normal(POINTS))


def spread(end=0.03, pace=0.1):
    """Outputs that differed at first."""
    return end + np.exp(-pace * np.arange(POINTS))


def shapes(facts=None, losses=LOSSES, **fields):
    given = {"grad_l2": 1e-2 * OFF, "act_std": spread(), **fields}
    told = asked("loss-pairing", recorded(losses, facts=facts or COLUMN, **given))
    return [each for each in told if each.fix.code == "match_shapes"]


def test_answers_that_become_one_number_and_pull_one_way_are_held_against_every_target():
    history = recorded(LOSSES, facts=COLUMN, grad_l2=1e-2 * OFF, act_std=spread())

    found = only("loss-pairing", history)

    assert found.fix.code == "match_shapes"
    assert found.since_step == 0
    assert found.evidence["alike"] > 0.99


def test_wrong_labels_pull_each_example_its_own_way():
    assert shapes(grad_l2=1e-2 * noise(POINTS, 0.2, 3)) == []


def test_layers_that_swing_each_by_itself_are_not_pulled_by_one_number():
    apart = np.abs(np.random.default_rng(4).standard_normal((POINTS, 12)))

    assert shapes(grad_l2=1e-2 * apart) == []


def test_outputs_that_explain_something_have_targets_of_their_own():
    assert shapes(act_std=spread(end=0.3)) == []


def test_outputs_that_were_alike_from_the_start_were_not_made_so_by_the_loss():
    assert (
        shapes(act_std=0.03, facts={"output": {**COLUMN["output"], "min": 0.0, "max": 0.1}}) == []
    )


def test_single_examples_that_cost_much_swing_the_loss_as_well():
    heavy = noise(POINTS, 0.8, 5)

    assert shapes(losses=heavy, grad_l2=1e-2 * heavy) == []


def test_outputs_that_shrink_with_their_weights_are_the_work_of_decay():
    gone = 0.8 ** np.arange(POINTS)

    assert shapes(weight_l2=gone, act_std=spread(end=0.0, pace=0.7)) == []
    # Weights that nothing pulls any more may go later.
    later = 0.995 ** np.arange(POINTS)
    assert shapes(weight_l2=later)


@pytest.mark.parametrize("shape", [[64, 3], [4, 1], [64]])
def test_other_outputs_are_not_asked(shape):
    assert shapes(facts={"output": {**COLUMN["output"], "shape": shape}}) == []


def test_inputs_with_a_large_part_in_common_pull_one_way_by_themselves():
    far = {**COLUMN, "input": {"mean": 20.0, "std": 1.0, "features_std_max": 1.0}}

    assert shapes(facts=far) == []


def test_outputs_that_fitted_once_had_each_a_target_of_its_own():
    time = np.arange(POINTS)
    losses = np.select([time < 5, time < 40], [1.5, 0.2], 0.6) * LOSSES

    assert shapes(losses=losses, act_std=np.where(time < 40, 0.9, 0.03)) == []
    assert shapes(losses=losses, act_std=np.where(time < 5, 0.9, 0.03))


def test_first_steps_that_throw_the_weights_make_outputs_alike_as_well():
    first = np.where(np.arange(POINTS) < 8, 0.3, 1e-3)[:, None] * np.full((1, 12), 4.0)

    assert shapes(update_l2=first, weight_l2=4.0) == []


def test_a_rate_that_is_gone_within_a_few_points_has_taught_nothing():
    steady, decaying = (0.01 * each ** np.arange(POINTS) for each in (1.0, 0.9))

    assert shapes(scalars={"lr": steady})
    assert shapes(scalars={"lr": decaying}) == []
