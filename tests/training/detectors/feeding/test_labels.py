import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, level, noise, recorded
from difflens.training.records.runs import Layer

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [64, 10]}}


def sampled(values, every=20):
    return np.where(np.arange(len(values)) % every == 0, values, np.nan)


def recurrent():
    return (
        Layer("memory.weight_ih_l0", (128, 8), "LSTM", "weight", 0, optimised=True),
        Layer("memory.weight_hh_l0", (128, 32), "LSTM", "weight", 0, optimised=True),
        Layer("output.weight", (10, 32), "Linear", "weight", 1, optimised=True),
    )


def test_a_recurrent_network_that_went_far_without_learning_is_told_before_its_time_is_up():
    sizes = np.array([11.0, 11.0, 3.0])
    far = recorded(level(220), layers=recurrent(), weight_l2=sizes, grad_l2=0.01 * sizes,
                   update_l2=0.02 * sizes, facts=CLASSES)  # fmt: skip
    near = recorded(level(220), layers=recurrent(), weight_l2=sizes, grad_l2=0.01 * sizes,
                    update_l2=0.002 * sizes, facts=CLASSES)  # fmt: skip

    assert only("data", far).fix.code == "check_labels"
    assert asked("data", near) == []


def test_held_back_data_of_another_kind_never_follows():
    history = recorded(
        falling(300, end=0.01), update_l2=0.02, facts=CLASSES,
        scalars={"val_loss": sampled(2.6 * noise(300, 0.01, 4))},
    )  # fmt: skip

    assert "never followed" in only("data", history).text


def test_a_training_loss_in_other_units_is_not_held_against_the_held_back_loss():
    history = recorded(
        1e-4 * falling(300, end=0.1), update_l2=0.02, facts=CLASSES,
        scalars={"val_loss": sampled(falling(300, end=0.3))},
    )  # fmt: skip

    assert asked("data", history) == []


RESTS = 1.6 + 0.7 * np.exp(-np.arange(300) / 40)


def answered_better(held_back, dropout=0.0):
    losses = (2.1 + 0.3 * np.exp(-np.arange(300) / 30)) * noise(300, 0.03)
    return recorded(losses, update_l2=0.02, facts=CLASSES | {"dropout": dropout},
                    scalars={"val_loss": sampled(held_back)})  # fmt: skip


def test_dropout_that_leaves_half_is_given_twice_the_time():
    def after(points, dropout):
        return asked("data", recorded(level(points), update_l2=0.02,
                                      facts=CLASSES | {"dropout": dropout}))  # fmt: skip

    assert after(150, 0.0)
    assert after(150, 0.5) == []
    assert after(220, 0.5)


def test_what_was_answered_better_and_is_lost_again_knew_more_than_which_labels_are_frequent():
    losses = (1.95 + 0.35 * np.exp(-np.arange(300) / 20)) * noise(300, 0.02)
    rests = np.where(np.arange(300) < 40, 2.1, 1.95)
    better = np.where((np.arange(300) > 50) & (np.arange(300) < 70), 1.7, 1.95)

    def of(held_back):
        return asked("data", recorded(losses, update_l2=0.02, facts=CLASSES,
                                      scalars={"val_loss": sampled(held_back)}))  # fmt: skip

    assert "frequent" in of(rests)[0].cause
    assert of(better) == []


def test_labels_are_not_doubted_where_decay_takes_the_weights_away():
    shrinking = np.exp(-0.01 * np.arange(200))[:, None] * np.ones(12)
    history = recorded(level(200), update_l2=0.02 * shrinking, weight_l2=shrinking,
                       grad_l2=0.01 * shrinking,
                       optimizer={"name": "Adam", "weight_decay": 1.0})  # fmt: skip

    assert asked("data", history) == []


def test_a_loss_that_rests_a_little_below_guessing_is_told_by_what_is_held_back():
    losses = (2.0 + 0.4 * np.exp(-np.arange(260) / 10)) * noise(260, 0.1)
    held_back = np.where(np.arange(260) % 20 == 0, 2.0 + 0.001 * (np.arange(260) % 3), np.nan)
    history = recorded(losses, facts={"output": {"shape": [64, 12]}},
                       scalars={"val_loss": held_back}, update_l2=0.02)  # fmt: skip

    assert "hardly depend on the inputs" in only("data", history).cause


def test_a_loss_that_rests_far_below_guessing_may_be_done():
    losses = (1.2 + 1.3 * np.exp(-np.arange(260) / 10)) * noise(260, 0.1)
    held_back = np.where(np.arange(260) % 20 == 0, 1.2, np.nan)
    history = recorded(losses, facts={"output": {"shape": [64, 12]}},
                       scalars={"val_loss": held_back}, update_l2=0.02)  # fmt: skip

    assert asked("data", history) == []


def test_a_held_back_loss_that_falls_and_stays_above_guessing_is_of_another_kind():
    """What is merely not learned yet costs what guessing costs: 2.3 of ten classes."""
    fades = 3.6 + 1.4 * np.exp(-np.arange(300) / 200)
    given = {"update_l2": 0.02, "facts": CLASSES}
    above = recorded(falling(300, end=0.3), scalars={"val_loss": sampled(fades)}, **given)
    below = recorded(falling(300, end=0.3), scalars={"val_loss": sampled(fades / 2.5)}, **given)

    assert "never followed" in only("data", above).text
    assert asked("data", below) == []


def test_a_held_back_loss_that_rose_from_guessing_was_learned_by_heart():
    """That is over-fitting: the labels are as they should be."""
    souring = 2.1 + np.abs(np.arange(300) - 40) / 60
    history = recorded(falling(300, end=0.01), update_l2=0.02, facts=CLASSES,
                       scalars={"val_loss": sampled(souring)})  # fmt: skip

    assert asked("data", history) == []
    assert only("over-fit", history).severity == "warning"


def test_a_held_back_loss_that_comes_down_at_every_look_is_learned_for():
    losses = np.linspace(2.25, 2.12, 120) * noise(120, 0.005)
    steadily = np.linspace(2.28, 2.1, 120)

    def run(held_back):
        return recorded(losses, update_l2=0.02, facts=CLASSES,
                        scalars={"val_loss": sampled(held_back)})  # fmt: skip

    assert asked("data", run(steadily)) == []
    assert asked("data", run(np.full(120, 2.31)))


def test_what_was_better_and_is_lost_again_is_no_noise_of_the_data():
    losses = np.concatenate([falling(100, end=0.4), 2.1 * noise(100, 0.02)])
    held_back = np.concatenate([falling(100, end=0.4), np.full(100, 1.8)])
    history = recorded(losses, update_l2=0.02, facts=CLASSES,
                       scalars={"val_loss": sampled(held_back)})  # fmt: skip

    assert [each for each in asked("data", history) if "better than" in each.text] == []


def test_a_held_back_loss_that_falls_in_its_own_way_is_of_the_same_kind():
    history = recorded(
        falling(300, start=2.5, end=0.7), update_l2=0.02, facts=CLASSES,
        scalars={"val_loss": sampled(2.75 + 0.8 * np.exp(-np.arange(300) / 60))},
    )  # fmt: skip

    assert asked("data", history) == []


def test_the_training_loss_must_not_have_been_better_where_looks_lie_back():
    """A rise after the last look leaves held-back values of before beside a loss of after it."""
    rises = np.concatenate([np.linspace(1.5, 2.2, 20), np.full(25, 2.2)]) * noise(45, 0.02)
    losses = np.concatenate([falling(180, end=1.5), rises])
    held_back = np.where(np.arange(225) < 185, 1.6, np.nan)
    history = recorded(losses, update_l2=0.02, facts=CLASSES,
                       scalars={"val_loss": sampled(held_back)})  # fmt: skip

    assert [each for each in asked("data", history) if "better than" in each.text] == []


def test_labels_that_once_taught_something_are_not_doubted():
    losses = np.concatenate([[4.0, 3.8, 3.6], 2.33 * noise(237, 0.02)])

    def run(first):
        held_back = np.where(np.arange(240) < 20, first, 2.35)
        return recorded(losses, update_l2=0.02, facts=CLASSES,
                        scalars={"val_loss": sampled(held_back)})  # fmt: skip

    assert asked("data", run(1.5)) == []
    assert only("data", run(2.4)).fix.code in {"check_labels", "follow_example"}


def test_a_held_back_loss_that_rises_does_not_rest_below_guessing():
    losses = (2.0 + 0.4 * np.exp(-np.arange(260) / 10)) * noise(260, 0.1)
    rises = np.where(np.arange(260) < 140, 2.0, 2.0 * 1.02 ** np.arange(-140, 120))
    history = recorded(losses, facts={"output": {"shape": [64, 12]}},
                       scalars={"val_loss": sampled(rises)}, update_l2=0.02)  # fmt: skip

    assert asked("data", history) == []


def test_labels_are_not_doubted_behind_first_steps_that_left_nothing_of_the_weights():
    sizes = np.where(np.arange(200) < 2, 20.0, 0.02)
    usual = {"output": {"shape": [64, 1], "min": -1.0, "max": 1.0}}
    history = recorded(level(200, at=1.0), facts=usual, act_std=0.1, update_l2=sizes, weight_l2=8.0)

    assert asked("data", history) == []
    assert only("lr-high", history).fix.code == "scale_lr"


def test_labels_are_not_doubted_where_decay_alone_moves_the_weights():
    doubted = recorded(level(300), update_l2=0.02, facts=CLASSES)
    starved = recorded(level(300), update_l2=0.02, grad_l2=0.0, facts=CLASSES)

    assert only("data", doubted)
    assert asked("data", starved) == []


def test_labels_that_taught_something_before_the_loss_was_thrown_are_doubted_since_then_alone():
    losses = np.concatenate([falling(100, 1.0, 0.2), 5.0 * noise(200, 0.1, 2)])
    history = recorded(losses, act_std=0.1, facts={"output": {"shape": [64, 1]}})

    assert only("data", history).since_step > 90


def test_a_schedule_that_let_the_steps_die_leaves_labels_undoubted():
    rates = 1e-3 * 0.94 ** np.arange(220)

    assert only("data", recorded(level(220), update_l2=0.02, facts=CLASSES)).fix is not None
    assert asked("data", recorded(level(220), update_l2=0.02, facts=CLASSES,
                                  scalars={"lr": rates})) == []  # fmt: skip


def test_gradients_that_are_one_share_of_all_weights_are_those_of_a_penalty():
    sizes = np.exp(-np.arange(220) / 400)

    ruled = recorded(level(220), update_l2=0.02, weight_l2=sizes, grad_l2=0.04 * sizes,
                     facts=CLASSES)  # fmt: skip
    kept = recorded(level(220), update_l2=0.02, weight_l2=1.0, grad_l2=0.04, facts=CLASSES)

    assert asked("data", ruled) == []
    assert only("data", kept).fix is not None


def test_a_loss_that_is_gone_within_a_hundred_steps_is_of_few_examples():
    def told(pace):
        losses = np.linspace(2.3, 2.3 - 0.023 * 60 * pace, 60) * noise(60, 0.01)
        looks = {"val_loss": sampled(np.linspace(2.31, 2.6, 60), 12)}
        return asked("data", recorded(losses, update_l2=0.02, facts=CLASSES, scalars=looks))

    assert told(0.9) == []
    assert [each.fix.code for each in told(0.3)] == ["check_labels"]
