import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, level, network, noise, recorded
from difflens.training.records.runs import Layer

NAN = float("nan")


def test_gradients_larger_than_their_weights_before_the_first_step_are_told_at_once():
    losses = [1e5, NAN, NAN, NAN]

    found = only("exploding", recorded(losses, grad_l2=1e4))

    assert (found.severity, found.since_step) == ("critical", 0)


def test_a_smooth_layer_at_a_billion_is_critical_by_itself():
    """DC-15: the reference wants three of four factors, two of which exclude each other."""
    growth = np.where(np.arange(80) < 40, 1.0, 1e9)
    losses = falling(80, end=0.5) * np.where(np.arange(80) < 42, 1, 50)

    assert only("exploding", recorded(losses, grad_l2=1e-2 * growth)).severity == "critical"


def test_a_late_explosion_is_not_hidden_by_a_long_quiet_past():
    """DC-26: the reference takes the mean of the whole history."""
    growth = np.where(np.arange(900) < 870, 1.0, 200.0)
    losses = falling(900, end=0.5) * np.where(np.arange(900) < 875, 1, 30)

    found = only("exploding", recorded(losses, grad_l2=1e-2 * growth))

    assert found.since_step == 870


@pytest.mark.parametrize("size", [1e-6, 1e4])
def test_large_or_small_norms_alone_are_no_explosion(size):
    """DC-21, training.md 2: raw norms against 10 or 100 say nothing."""
    assert asked("exploding", recorded(falling(), grad_l2=size, weight_l2=100 * size)) == []


def test_a_loss_that_is_summed_over_the_batch_asks_for_a_rate_that_many_times_smaller():
    facts = {"output": {"shape": [50, 10], "min": -3.0, "max": 3.0}}
    losses = np.concatenate([[150.0], np.full(60, 1e5)])
    kaiming = [(2 * 32) ** 0.5] * 12

    found = only("exploding", recorded(losses, facts=facts, weight_l2=kaiming, grad_l2=40.0))

    assert found.fix.code == "scale_lr"
    assert found.fix.parameters["factor"] == pytest.approx(1 / 50)


def test_a_loss_in_larger_units_does_adam_no_harm():
    assert asked("exploding", recorded(1e4 * falling(), grad_l2=100.0)) == []


def test_weights_many_times_kaiming_s_are_told_where_the_loss_stays_high():
    losses = np.linspace(40.0, 8.0, 100) * noise(100, 0.1)
    wild = 5 * (2 * 32) ** 0.5

    found = only("exploding", recorded(losses, weight_l2=wild, grad_l2=0.1, update_l2=0.01,
                                       facts={"output": {"shape": [64, 10]}}))  # fmt: skip

    assert found.fix.code == "reinitialise"
    assert asked("exploding", recorded(falling(), weight_l2=wild, grad_l2=0.1)) == []


def swamped(gain, **facts):
    """Make a run whose first step swamps its weights, with a gain a layer of a known size."""
    most = 2.5 * gain**6
    output = {"shape": [32, 3], "min": -most, "max": most}
    given = {"output": output, "input": {"std": 1.0, "features_std_max": 1.0}, **facts}
    return recorded([50.0, 1e20, NAN, NAN], grad_l2=1e4, update_l2=1e3, facts=given)


@pytest.mark.parametrize(
    ("history", "code"),
    [
        (swamped(1.8), "add_normalisation"),  # no layer does much: there are many
        (swamped(3.0), "reinitialise"),  # each of them does
        (swamped(1.8, norm_layers=6), "reinitialise"),  # there are norms
        (swamped(1.0), "scale_lr"),  # the way forward is sound
    ],
)
def test_what_the_signal_became_on_its_way_tells_what_helps(history, code):
    assert only("exploding", history).fix.code == code


def test_one_layer_far_too_large_is_told_though_the_others_are_not():
    kaiming = np.full(12, 8.0)
    kaiming[2] = 300.0

    found = only("exploding", recorded(level(80), weight_l2=kaiming))

    assert (found.layers[0], found.fix.code) == ("hidden.1.weight", "reinitialise")
    assert asked("lr-high", recorded(level(80), weight_l2=kaiming, update_l2=1.0)) == []


def test_targets_far_beyond_the_outputs_are_told_where_adam_cannot_reach_them():
    facts = {"output": {"shape": [64, 1], "min": 0.1, "max": 0.2}}

    found = only("exploding", recorded(level(60, 1e7), grad_l2=1e4, facts=facts))

    assert found.fix.code == "scale_targets"


def test_large_outputs_whose_loss_comes_down_at_once_are_nobody_s_fault():
    losses = [580.0, 240.0, 164.0, 184.0, 136.0, *falling(100, start=100.0, end=1.4)]
    for spread, told in ((80.0, 0), (1.0, 1)):  # of large inputs, or made large on the way
        facts = {"output": {"shape": [96, 76], "min": -219.0, "max": 182.0},
                 "input": {"std": spread}}  # fmt: skip

        assert len(asked("exploding", recorded(losses, grad_l2=1e3, facts=facts))) == told


def test_embeddings_that_start_far_too_large_are_told_where_the_loss_stays_high():
    table = Layer("tokens.weight", (40, 16), "Embedding", "weight", 0, "F32", optimised=True)
    weights = np.array([20.0 * 640**0.5, *[1.0] * len(network())])
    usual = weights / np.where(np.arange(len(weights)) == 0, 20.0, 1.0)
    layers = (table, *network())

    found = only("exploding", recorded(level(80), layers=layers, weight_l2=weights))

    assert found.layers == ("tokens.weight",)
    assert found.fix.parameters["factor"] == pytest.approx(0.0125, rel=0.05)  # rows of length one
    assert asked("exploding", recorded(level(80), layers=layers, weight_l2=usual)) == []
    assert asked("exploding", recorded(level(80), layers=layers, weight_l2=usual * NAN)) == []
    assert asked("exploding", recorded(falling(80), layers=layers, weight_l2=weights)) == []


def blocks(growth, norms=4, most=100.0):
    """Make a run of five blocks of usual weights whose first gradients grow towards the input."""
    gradients = [growth ** (5 - each.depth) for each in network()]
    facts = {"output": {"shape": [32, 10], "min": -most, "max": most}, "norm_layers": norms,
             "input": {"std": 1.0, "features_std_max": 1.0}}  # fmt: skip
    return recorded([30.0, 400.0, 9e4, NAN], weight_l2=8.0, grad_l2=gradients, facts=facts)


def test_blocks_that_multiply_past_their_norms_ask_for_shortcuts_as_they_are():
    found = only("exploding", blocks(2.5))

    assert found.fix.code == "unscale_shortcuts"
    assert found.evidence["growth_a_block"] == pytest.approx(2.5)


@pytest.mark.parametrize(
    "history",
    [
        blocks(1.2),  # what sums of branches make
        blocks(2.5, norms=0),  # nothing keeps weights from it
        blocks(2.5, most=10.0),  # nothing has grown on its way
    ],
)
def test_shortcuts_are_not_blamed_where_something_else_may_have_done_it(history):
    codes = [found.fix.code for found in asked("exploding", history)]

    assert "unscale_shortcuts" not in codes


def test_one_block_that_is_unlike_the_others_is_no_growth_from_block_to_block():
    gradients = [50.0 if each.depth == 0 else 1.0 for each in network()]
    facts = {"output": {"shape": [32, 10], "min": -100.0, "max": 100.0}, "norm_layers": 4,
             "input": {"std": 1.0}}  # fmt: skip
    history = recorded([30.0, 400.0, 9e4, NAN], weight_l2=8.0, grad_l2=gradients, facts=facts)

    assert "unscale_shortcuts" not in [each.fix.code for each in asked("exploding", history)]


def test_first_steps_of_a_run_that_is_done_did_not_grow_beside_its_last():
    thrown = np.concatenate([[2.3, 2.3, 2.3], np.full(12, 6.0)])
    done = np.concatenate([thrown, falling(285, end=1e-3)])
    norms = np.concatenate([[1.0], np.full(14, 2.0), np.full(285, 0.01)])

    assert asked("exploding", recorded(done, grad_l2=norms)) == []
    lost = np.concatenate([thrown, np.full(285, 6.0)])
    assert asked("exploding", recorded(lost, grad_l2=norms))


def test_a_loss_that_came_down_from_afar_to_guessing_has_an_exploding_start():
    facts = {"output": {"shape": [32, 6], "min": -900.0, "max": 700.0}}
    thrown = [263.0, 1550.0, 511.0, 64.0]
    guessing = np.concatenate([thrown, level(40, at=1.79)])
    learned = np.concatenate([thrown, falling(40, start=1.79, pace=0.2)])
    kaiming = [3 * (2 * 32) ** 0.5] * 12

    found = only("exploding", recorded(guessing, facts=facts, weight_l2=kaiming))

    assert (found.severity, found.fix.code) == ("critical", "reinitialise")
    assert asked("exploding", recorded(learned, facts=facts, weight_l2=kaiming)) == []


@pytest.mark.parametrize(("outputs", "code"), [(2000.0, "reinitialise"), (2.0, "scale_targets")])
def test_a_regression_whose_own_outputs_are_huge_wants_other_weights_and_not_targets(outputs, code):
    """The first step left nothing of the weights: outputs alone tell how large they were."""
    facts = {"output": {"shape": [32, 1], "min": 0.0, "max": outputs}, "input": {"std": 1.0}}
    losses = [1.2e6, 1e31, NAN, NAN, NAN]

    found = only("exploding", recorded(losses, facts=facts, grad_l2=1e5, update_l2=1e4))

    assert found.fix.code == code


def risen(times, to=200, base=1e-2, points=200):
    """Return norms that climb by this factor over twenty of the last thirty points, then stop."""
    climb = np.clip((np.arange(points) - 170) / 20, 0, 1)
    climb[to:] = 0.0
    return base * times**climb * noise(points, 0.2)


@pytest.mark.parametrize(
    "norms",
    [risen(1e7, to=192), risen(1e3, base=1e-6), risen(10, base=10.0), np.full(200, 1e3)],
    ids=["came down again", "woke up", "grew a little", "always large"],
)
def test_norms_that_came_down_woke_up_or_were_always_large_are_no_late_explosion(norms):
    assert asked("exploding", recorded(falling(), grad_l2=norms)) == []


def test_a_regression_from_wild_weights_is_measured_by_scaled_targets_and_not_by_its_start():
    facts = {"output": {"shape": [32, 1], "min": -40.0, "max": 140.0}}
    wild = [5 * (2 * 32) ** 0.5] * 12

    def told(end, weights=wild):
        losses = falling(200, start=1700.0, end=end, pace=0.1)
        return asked("exploding", recorded(losses, facts=facts, weight_l2=weights))

    assert [each.fix.code for each in told(0.9)] == ["reinitialise"]
    assert told(0.05) == told(0.9, 1.0) == []


def test_norms_that_explode_to_the_end_are_warned_of_before_the_loss_suffers():
    """Under Adam the loss goes on falling: diagnose and gradients must not say two things."""
    found = only("exploding", recorded(falling(), grad_l2=risen(1e7)))

    assert found.severity == "warning"
    assert 170 <= found.since_step <= 180
    assert "the loss has not suffered yet" in found.text
    assert found.layers
