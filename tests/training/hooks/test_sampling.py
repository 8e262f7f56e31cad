"""How often to read: the interval follows price and budget, and does not flutter."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.training.hooks.torch.pace import FAR, FREE, WARM_UP, WATCH, Sampling


def settled(own: float, rest: float, budget: float, *, noise: float = 0.0, seed: int = 0):
    """Run a loop of steps that take so long until the interval has settled; give the intervals."""
    rng = np.random.default_rng(seed)
    sampling = Sampling("auto", budget)
    seen = []
    for _ in range(20_000):
        wanted = sampling.is_wanted()
        price = own * float(np.exp(noise * rng.standard_normal())) if wanted else 0.0
        sampling.measured(price, rest + price)
        if wanted:
            sampling.decide(sampling.price())
        sampling.passed()
        seen.append(sampling.every)
    return sampling, seen


@given(own=st.floats(1e-6, 1e-2), rest=st.floats(1e-4, 1.0), budget=st.floats(0.001, 0.5))
def test_the_share_stays_within_the_budget(own, rest, budget):
    sampling, _ = settled(own, rest, budget)

    most = max(budget * rest / 2, FREE)
    assert sampling.every == FAR or own / sampling.every <= most * 1.001
    # and no step is passed over that could have been afforded, but for the doubling and the gap
    assert sampling.every == 1 or own / (sampling.every / 4) > most * 0.999


def test_a_cheap_reading_is_taken_at_every_step():
    sampling, seen = settled(1e-5, 1e-2, 0.01)

    assert set(seen) == {1}
    assert sampling.share == pytest.approx(1e-3)


@given(seed=st.integers(0, 50))
def test_noise_does_not_make_it_flutter(seed):
    _, seen = settled(3e-4, 1e-2, 0.01, noise=0.3, seed=seed)

    changes = sum(left != right for left, right in pairwise(seen))
    assert changes <= 3


def test_a_loop_that_becomes_slower_is_read_more_often_again():
    sampling = Sampling("auto", 0.01)
    for rest, wanted in ((1e-3, 16), (1.0, 1)):
        for _ in range(20_000):
            price = 1.5e-3 if sampling.is_wanted() else 0.0
            sampling.measured(price, rest + price)
            sampling.decide(sampling.price())
            sampling.passed()
        assert sampling.every == wanted


def test_a_given_interval_is_kept_whatever_it_costs():
    sampling = Sampling(3, 0.01)
    wanted = []
    for _ in range(9):
        wanted.append(sampling.is_wanted())
        sampling.measured(1.0, 1.1)
        assert not sampling.decide((1.0, 0.1))
        sampling.passed()

    assert wanted == [True, False, False] * 3


def test_first_readings_that_compile_and_allocate_do_not_count():
    sampling = Sampling("auto", 0.01)
    for _ in range(WARM_UP):
        sampling.measured(10.0, 10.01)

    assert sampling.price() is None
    assert sampling.share is None


def test_a_run_begins_with_every_step_and_a_suspicion_reads_every_step_for_a_while_again():
    sampling, wanted = Sampling("auto", 0.01), []
    sampling.decide((1e-3, 1e-2))
    for step in range(4 * WATCH):
        wanted.append(sampling.is_wanted())
        sampling.passed()
        if step == 2 * WATCH:
            sampling.watch()

    assert all(wanted[:WATCH])
    assert not all(wanted[WATCH : 2 * WATCH])
    assert all(wanted[2 * WATCH + 1 : 3 * WATCH + 1])
    assert not all(wanted[3 * WATCH + 1 :])


def test_a_reading_that_the_loop_hardly_waits_for_is_made_at_every_step_however_short_it_is():
    sampling = Sampling("auto", 0.01)
    for _ in range(100):
        sampling.measured(0.9 * FREE, 2e-4, beside=5e-4)
        sampling.decide(sampling.price())

    assert sampling.every == 1
