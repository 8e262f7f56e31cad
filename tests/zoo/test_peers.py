"""The peers' rules on histories made by hand: where each fires, and where it is silent."""

from __future__ import annotations

import numpy as np
import pytest

from difflens.training.records.runs import Layer
from zoo.peers import autotrainer, sagemaker, seed_analyzer, seed_animator, torchmortem
from zoo.peers.seen import Seen

STEPS = 120
LAYERS = tuple(Layer(f"l{i}.weight", (10, 10), "Linear", "weight", i) for i in range(3))


def a_run(**changes):
    """Return a run in which all is well: smooth, accurate, every layer alike."""
    block = np.full((STEPS, 3), 0.1)
    plain = {
        "layers": LAYERS,
        "loss": np.linspace(2.0, 0.1, STEPS),
        "val_loss": np.full(STEPS, np.nan),
        "accuracy": np.linspace(0.3, 0.99, STEPS),
        "grad_l2": block,
        "grad_mean_abs": block / 10,
        "grad_max_abs": block,
        "grad_zeros": np.zeros((STEPS, 3)),
        "grad_nonfinite": np.zeros((STEPS, 3)),
        "weight_l2": np.full((STEPS, 3), 10.0),
        "update_l2": np.full((STEPS, 3), 0.01),
        "act_dead": np.zeros((STEPS, 3)),
        "act_saturated": np.zeros((STEPS, 3)),
        "epoch": 10,
        "input_mean": 0.0,
    }
    return Seen(**{**plain, **changes})


def column(value, other=0.1):
    block = np.full((STEPS, 3), other)
    block[:, 0] = value
    return block


def names(alarms):
    return {name for alarm in alarms for name in alarm.names}


EVERY = (sagemaker.alarms, autotrainer.alarms, seed_analyzer.alarms, seed_animator.alarms)


@pytest.mark.parametrize("peer", EVERY)
def test_a_smooth_run_raises_no_alarm(peer):
    assert peer(a_run()) == []


def test_sagemaker_fires_on_noise_in_the_loss_and_its_gentler_set_does_not():
    noisy = a_run(loss=1 + 0.1 * np.sin(np.arange(STEPS)))

    assert "plateau" in names(sagemaker.alarms(noisy))
    assert sagemaker.alarms_but_loss(noisy) == []


def test_sagemaker_takes_the_first_update_of_a_zero_bias_for_a_huge_one():
    updates = column(0.01, 0.01)
    weights = column(10.0, 10.0)
    weights[0, 0] = 1e-6

    assert names(sagemaker.alarms_but_loss(a_run(update_l2=updates, weight_l2=weights))) >= {
        "lr-high"
    }


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"grad_mean_abs": column(1e-9)}, "vanishing"),
        ({"act_dead": column(0.6, 0.0)}, "dead"),
        ({"grad_max_abs": column(0.0)}, "not-training"),
        ({"input_mean": 0.5}, "data"),
        ({"loss": np.r_[np.linspace(2, 1, STEPS - 1), np.nan]}, "exploding"),
        ({"update_l2": column(1e-9, 0.01)}, "not-training"),
        ({"val_loss": np.r_[np.full(STEPS - 1, np.nan), 5.0]}, "over-fit"),
    ],
)
def test_sagemaker_names_what_its_rule_is_for(changes, name):
    assert name in names(sagemaker.alarms(a_run(**changes)))


def test_autotrainer_asks_about_gradients_only_where_the_accuracy_is_bad():
    faint = {"grad_l2": column(1e-6)}
    bad = {"accuracy": np.full(STEPS, 0.1)}
    good = {"accuracy": np.full(STEPS, 0.95)}

    assert autotrainer.alarms(a_run(**faint, **good)) == []
    assert names(autotrainer.alarms(a_run(**faint, **bad))) == {"vanishing", "slow"}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"grad_l2": column(100.0, 0.1)}, "exploding"),
        ({"grad_zeros": np.full((STEPS, 3), 80.0)}, "dead"),
        ({"accuracy": 0.4 + 0.1 * (np.arange(STEPS) // 10 % 2)}, "oscillating"),
        ({"loss": np.full(STEPS, 2e3)}, "exploding"),
    ],
)
def test_autotrainer_names_what_its_check_is_for(changes, name):
    run = a_run(**{"accuracy": np.full(STEPS, 0.1), **changes})

    assert name in names(autotrainer.alarms(run))


def test_the_seed_analyser_takes_plain_noise_for_oscillation():
    """DC-13: the turning-point rate of noise is 2/3, its limit is 1/2."""
    noise = 1 + 0.1 * np.random.default_rng(0).normal(size=(STEPS, 3))

    assert names(seed_analyzer.alarms(a_run(grad_l2=noise))) == {"oscillating"}


def test_both_seeds_are_silent_on_a_gradient_that_is_nan():
    broken = {name: column(np.nan) for name in ("grad_l2", "grad_mean_abs", "grad_max_abs")}

    assert seed_analyzer.alarms(a_run(**broken)) == []
    assert seed_animator.alarms(a_run(**broken)) == []


def test_the_seed_animator_dates_its_flag_to_the_first_frame():
    grown = column(0.1)
    grown[70:, 1] = 2e3
    found = seed_animator.alarms(a_run(grad_max_abs=grown))

    assert [(alarm.step, alarm.layers) for alarm in found] == [(70, ("l1.weight",))]


def test_findings_of_torchmortem_are_read_the_worst_first():
    said = [
        {"severity": "INFO", "title": "Edge of stability regime", "layers": [], "last_step": 9},
        {"severity": "WARNING", "title": "Dead units in a", "layers": ["a"], "last_step": 9},
        {
            "severity": "CRITICAL",
            "title": "Exploding gradients detected",
            "layers": [],
            "last_step": 9,
        },
    ]

    assert [min(alarm.names) for alarm in torchmortem.alarms(said)] == ["exploding", "dead"]
    assert len(torchmortem.alarms(said, critical_only=True)) == 1
