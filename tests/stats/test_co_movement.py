"""Series that move together are found among many; sluggish ones that do not, are not."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import false_discovery_control, pearsonr, spearmanr
from simulation import near, replicates

from difflens.stats.co_movement import FEWEST, co_movements, whitened


def sluggish(random, phi, n, series):
    return lfilter([1], [1, -phi], random.standard_normal((n + 300, series)), axis=0)[300:]


@replicates
def test_unrelated_sluggish_series_are_rarely_paired(repeats):
    # Plain p-values find half of these pairs "significant" (methods 11.5).
    random = np.random.default_rng(11)
    ps, any_found = [], 0
    for _ in range(repeats // 10):
        found = co_movements(sluggish(random, 0.9, 200, 8), top=100, alpha=1.0)
        ps += [pair.p for pair in found.pairs]
        any_found += any(pair.q <= 0.05 for pair in found.pairs)

    assert np.mean(np.array(ps) <= 0.05) <= 0.05 + 3 * (0.05 * 0.95 / len(ps)) ** 0.5 + 0.01
    assert any_found / (repeats // 10) <= 0.05 + 3 * (0.05 * 0.95 / (repeats // 10)) ** 0.5


def test_plain_correlations_would_pair_half_of_them():
    random = np.random.default_rng(4)
    ps = [pearsonr(*sluggish(random, 0.9, 200, 2).T).pvalue for _ in range(200)]

    assert np.mean(np.array(ps) <= 0.05) > 0.35


@replicates
def test_p_of_independent_series_is_even(repeats):
    random = np.random.default_rng(6)
    found = [
        co_movements(random.standard_normal((100, 2)), alpha=1.0).pairs[0].p for _ in range(repeats)
    ]

    assert near(float(np.mean(np.array(found) <= 0.05)), 0.05, repeats, slack=0.01)


def test_a_pair_that_moves_together_is_found_with_its_sign():
    series = np.random.default_rng(1).standard_normal((400, 6))
    series[:, 1] += series[:, 0]
    series[:, 3] -= series[:, 2]
    found = co_movements(series)

    assert [(pair.left, pair.right, pair.r > 0) for pair in found.pairs[:2]] in (
        [(0, 1, True), (2, 3, False)],
        [(2, 3, False), (0, 1, True)],
    )
    assert (found.tested, found.positive, found.negative) == (15, 1, 1)
    assert found.pairs[0].low < found.pairs[0].r < found.pairs[0].high


def test_r_is_spearman_s_and_q_that_of_scipy():
    series = np.random.default_rng(2).standard_normal((150, 5))
    found = sorted(co_movements(series, alpha=1.0, top=99).pairs)
    white = whitened(series)
    expected = [spearmanr(white[:, pair.left], white[:, pair.right]).statistic for pair in found]

    assert [pair.r for pair in found] == pytest.approx(expected)
    qs = false_discovery_control([pair.p for pair in found])
    assert [pair.q for pair in found] == pytest.approx(qs)


def test_one_spike_in_two_series_is_no_relation():
    series = np.random.default_rng(3).standard_normal((200, 2))
    series[100] = 1000.0

    assert not co_movements(series).pairs


def test_what_both_owe_to_a_common_series_is_told_apart():
    random = np.random.default_rng(5)
    common = random.standard_normal(500)
    series = common[:, None] + 0.3 * random.standard_normal((500, 2))
    pair = co_movements(series, common=common).pairs[0]

    assert pair.r > 0.8
    assert abs(pair.partial) < 0.2


def test_a_series_that_follows_another_later_is_found_by_its_lag():
    random = np.random.default_rng(7)
    left = random.standard_normal(600)
    right = 0.4 * left + random.standard_normal(600) * 0.3
    right[3:] += left[:-3]

    assert co_movements(np.column_stack([left, right])).pairs[0].lag == 3


def test_a_constant_series_is_in_no_pair():
    series = np.random.default_rng(8).standard_normal((100, 3))
    series[:, 1] = 4.0

    assert co_movements(series, alpha=1.0).tested == 1
    assert co_movements(series[:, :2]) is None


def test_too_few_points_or_series_say_nothing():
    assert co_movements(np.zeros((FEWEST - 1, 4))) is None
    assert co_movements(np.zeros((200, 1))) is None


@pytest.mark.long
def test_a_thousand_series_take_seconds():
    import time

    series = np.random.default_rng(9).standard_normal((1000, 1000))
    start = time.process_time()
    found = co_movements(series)

    assert found.tested == 499_500
    assert len(found.pairs) <= 20
    assert time.process_time() - start < 10
