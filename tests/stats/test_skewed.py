import numpy as np
import pytest
from scipy import stats
from simulation import near, replicates
from stats.samples_of import SLEEP_FIRST, SLEEP_SECOND

from difflens.stats import skewed
from difflens.stats.paired import paired
from difflens.stats.skewed import paired_mean


def drawn(random, sigma, n):
    """Draw differences of mean zero with a long upper tail."""
    return random.lognormal(0, sigma, n) - np.exp(sigma**2 / 2)


@replicates
@pytest.mark.parametrize(
    ("sigma", "n", "most"),
    [(1.5, 30, 0.025), (1.5, 50, 0.025), (1.0, 30, 0.035), (1.0, 50, 0.025), (2.0, 100, 0.035)],
)
def test_heavily_skewed_differences_raise_no_more_false_alarms_than_they_may(
    sigma, n, most, repeats
):
    random = np.random.default_rng(1)
    samples = [drawn(random, sigma, n) for _ in range(repeats)]
    zeros = np.zeros(n)
    textbook = np.mean([paired(zeros, each).high < 0 for each in samples])
    ours = np.mean([paired_mean(zeros, each).high < 0 for each in samples])

    assert textbook > 2 * most
    assert ours <= most + 3 * (most * (1 - most) / repeats) ** 0.5


@replicates
@pytest.mark.parametrize("n", [10, 30, 100])
def test_differences_without_a_long_tail_are_tested_as_before(n, repeats):
    random = np.random.default_rng(2)
    samples = random.normal(size=(repeats, n))
    alarms = np.mean([paired_mean(np.zeros(n), each).p < 0.05 for each in samples])
    flagged = np.mean(["skew" in paired_mean(np.zeros(n), each).method for each in samples])

    assert near(alarms, 0.05, repeats)
    assert flagged < 0.05


@replicates
def test_power_is_lost_only_against_the_long_tail(repeats):
    random = np.random.default_rng(3)
    samples = [drawn(random, 1.0, 50) for _ in range(repeats)]
    with_tail = [paired_mean(np.zeros(50), each + 2).low > 0 for each in samples]
    against = [paired_mean(np.zeros(50), each - 3).high < 0 for each in samples]

    assert np.mean(with_tail) > 0.95
    assert np.mean(against) > 0.8


def test_a_long_tail_is_told_and_only_its_side_gives_way():
    terms = drawn(np.random.default_rng(4), 1.5, 30)
    plain, found = paired(np.zeros(30), terms), paired_mean(np.zeros(30), terms)
    turned = paired_mean(np.zeros(30), -terms)

    assert (found.low, found.difference) == (plain.low, plain.difference)
    assert found.high > plain.high
    assert "heavily skewed" in found.note
    assert "upper limit" in found.note
    assert "lower limit" in turned.note
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_whole_clusters_are_the_terms():
    terms = np.repeat(drawn(np.random.default_rng(4), 1.5, 40), 5)
    clusters = [place // 5 for place in range(200)]

    assert "of 40)" in paired_mean(np.zeros(200), terms, clusters).note


def test_students_sleep_data_in_pairs_stay_as_published():
    assert paired_mean(SLEEP_SECOND, SLEEP_FIRST) == paired(SLEEP_SECOND, SLEEP_FIRST)


@pytest.mark.parametrize("n", [8, 25, 400])
def test_skewness_is_tested_as_scipy_does(n):
    values = np.random.default_rng(n).exponential(size=n)

    assert skewed._skewness_p(stats.skew(values), n) == pytest.approx(stats.skewtest(values).pvalue)


def test_the_p_is_below_alpha_where_the_interval_leaves_out_zero():
    random = np.random.default_rng(5)
    for shift in np.linspace(-4, 4, 60):
        found = paired_mean(np.zeros(30), drawn(random, 1.5, 30) + shift)
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
