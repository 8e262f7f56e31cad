import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.methods.training.logs import schedule

STEPS = np.arange(0, 1000, 10.0)
SCHEDULES = {
    "constant": np.ones_like,
    "linear": lambda steps: 1 - steps / 1200,
    "cosine": lambda steps: 0.5 * (1 + np.cos(np.pi * steps / 1000)),
    "inverse_sqrt": lambda steps: 1 / np.sqrt(steps + 100),
    "step": lambda steps: 0.1 ** (steps // 300),
}


def told(rates, steps=STEPS, least=0.95):
    return schedule(
        tuple(zip(steps.tolist(), np.asarray(rates, float).tolist(), strict=True)), least
    )


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, 200])
def test_each_schedule_is_told_with_and_without_a_warmup(kind, warmup):
    rates = SCHEDULES[kind](np.maximum(STEPS - warmup, 0))
    if warmup:
        rates = rates * np.minimum(1, (STEPS + 10) / (warmup + 10))

    found = told(rates)

    assert found.kind == kind
    assert found.r2 == pytest.approx(1, abs=1e-6)
    assert found.warmup_until == (warmup or None)


def test_a_cosine_cut_off_before_its_end_is_still_one():
    found = told(0.1 + 0.5 * (1 + np.cos(np.pi * STEPS / 3000)))

    assert found.kind == "cosine"
    assert found.r2 == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda each: torch.optim.lr_scheduler.CosineAnnealingLR(each, 100), "cosine"),
        (lambda each: torch.optim.lr_scheduler.LinearLR(each, 1.0, 0.1, 100), "linear"),
        (lambda each: torch.optim.lr_scheduler.StepLR(each, 30), "step"),
        (lambda each: torch.optim.lr_scheduler.ConstantLR(each, 1.0), "constant"),
    ],
)
def test_schedules_of_torch_are_recognised(make, kind):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler, rates = make(optimizer), []
    for _ in range(100):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()

    assert told(rates, np.arange(100.0)).kind == kind


def test_a_rise_alone_is_a_warmup():
    assert told(STEPS / 1000 + 1e-3).kind == "warmup"


def test_what_follows_no_schedule_is_not_given_one():
    found = told(np.random.default_rng(0).uniform(0.5, 1, len(STEPS)))

    assert found.kind == "unrecognised"
    assert found.r2 < 0.95


def test_too_few_points_fit_everything_and_say_nothing():
    assert told([1.0, 0.9, 0.8], np.arange(3.0)) is None


@given(st.sampled_from(list(SCHEDULES)), st.sampled_from([1e-6, 0.5, 1e3]), st.floats(0.1, 100))
def test_units_of_rates_and_steps_do_not_matter(kind, scale, stretch):
    rates = SCHEDULES[kind](STEPS)

    found = told(scale * rates, STEPS * stretch)

    assert found.kind == kind
    assert found.r2 == pytest.approx(told(rates).r2, abs=1e-6)
