import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import noise, recorded


def ending(final, shape, low=0.1, high=0.9, **more):
    return {"output": {"shape": shape, "min": low, "max": high, **more}, "final_module": final}


def resting(points=120, start=1.0, end=0.6):
    return (end + (start - end) * np.exp(-np.arange(points) / 8)) * noise(points, 0.02)


def test_the_last_layer_with_weights_may_vary_by_more_than_bounded_outputs_can():
    history = recorded(resting(), facts=ending("Sigmoid", [48, 64]), act_std=0.95)

    assert only("loss-pairing", history).fix.code == "remove_softmax"


def softmax(losses, **fields):
    facts = ending("Softmax", [32, 40], 0.01, 0.04, rows_sum_to_one=True)
    return asked("loss-pairing", recorded(losses, facts=facts, **fields))


def test_a_softmax_at_the_end_of_a_regression_is_told():
    (found,) = softmax(resting(end=0.93), act_std=0.1)

    assert found.fix.code == "remove_softmax"


def test_shares_that_are_compared_with_shares_or_win_something_are_no_fault():
    assert softmax(resting(start=0.024, end=0.022), act_std=0.01) == []
    assert softmax(resting(end=0.5), act_std=0.1) == []


def one(losses, held_back, points=25):
    looks = np.full(points, np.nan)
    looks[-2] = held_back
    facts = ending("Sigmoid", [20, 1], 0.42, 0.58)
    history = recorded(losses, facts=facts, act_std=0.3, scalars={"val_loss": looks})
    return asked("loss-pairing", history)


def test_a_sum_over_the_batch_or_an_answer_of_yes_and_no_is_not():
    assert one(np.linspace(1.5, 0.9, 25), 0.05) == []
    assert one(np.linspace(0.72, 0.69, 25), 0.7) == []
    assert one(np.linspace(9.0, 7.0, 25), 8.0) == []  # in other units


def rectified(dead):
    facts = ending("ReLU", [32, 40], 0.0)
    history = recorded(resting(end=0.34), facts=facts, act_std=0.73, act_dead=dead)
    return asked("loss-pairing", history)


def test_outputs_that_a_relu_cut_off_for_good_were_to_go_below_zero():
    assert rectified(0.18)[0].fix.code == "remove_softmax"
    assert rectified(0.0) == []


def test_no_bounds_make_a_loss_rise():
    rises = np.concatenate([resting(60, end=0.3), np.geomspace(0.3, 1e6, 60)])

    history = recorded(rises, facts=ending("Sigmoid", [48, 64]), act_std=0.3)

    assert asked("loss-pairing", history) == []
