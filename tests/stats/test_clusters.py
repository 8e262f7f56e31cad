import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation import near, replicates

from difflens.stats.clusters import cluster_sums, clustered_mean, design_effect, effective_df

values = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=30)


def clustered_null(draw, clusters=50, size=10, correlation=0.7):
    """Scores about zero that share a part of their noise within each cluster."""
    shared = draw.normal(0, correlation**0.5, (clusters, 1))
    own = draw.normal(0, (1 - correlation) ** 0.5, (clusters, size))
    return (shared + own).ravel(), np.repeat(np.arange(clusters), size)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy, of constant sides
@given(values)
def test_clusters_of_one_give_the_plain_standard_error(scores):
    found = clustered_mean(scores, range(len(scores)))

    if np.ptp(scores) == 0:
        assert (found.se, found.low) == (None, None)
    else:
        assert found.se == pytest.approx(stats.sem(scores))
        assert found.naive_se == pytest.approx(found.se)
        assert found.design_effect == pytest.approx(1.0)
        expected = stats.ttest_1samp(scores, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_it_agrees_with_the_sandwich_of_statsmodels_but_for_the_small_sample_factor():
    draw = np.random.default_rng(8)
    scores, clusters = clustered_null(draw, 12, 7)
    found = clustered_mean(scores, clusters)

    fit = sm.OLS(scores, np.ones(scores.size)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    assert found.se == pytest.approx(fit.bse[0] * (12 / 11) ** 0.5)
    assert (found.clusters, found.df) == (12, 11)


def test_clusters_of_one_size_have_the_double_sum_of_miller():
    scores, clusters = [1.0, 0.0, 1.0, 1.0, 0.0, 0.5], ["a", "a", "b", "b", "c", "c"]
    found = clustered_mean(scores, clusters)

    centred = np.array(scores) - np.mean(scores)
    double = sum(
        centred[i] * centred[j] for i in range(6) for j in range(6) if clusters[i] == clusters[j]
    )
    assert found.se == pytest.approx((1.5 * double) ** 0.5 / 6)


def test_clusters_of_other_sizes_have_the_error_of_leaving_out_each():
    scores, clusters = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 4.0]), np.array([0, 0, 1, 1, 1, 2])
    found = clustered_mean(scores, clusters.tolist())

    lost = [scores[clusters != each].mean() - scores.mean() for each in range(3)]
    assert found.se == pytest.approx((2 / 3 * np.sum(np.square(lost))) ** 0.5)


def test_degrees_of_freedom_are_those_of_the_covariance_of_the_pulls():
    """Satterthwaite from the whole matrix, for independent values."""
    sizes = np.array([3.0, 7.0, 1.0, 20.0])
    n = sizes.sum()
    centring = np.diag(1 / (n - sizes)) @ (np.eye(4) - np.outer(sizes / n, np.ones(4)))
    covariance = centring @ np.diag(sizes) @ centring.T
    expected = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)

    assert effective_df(sizes) == pytest.approx(expected)
    assert effective_df(np.array([1.0, 1.0, 1.0, 1e6])) == pytest.approx(1, abs=1e-3)
    assert effective_df(np.full(12, 7.0)) == 11


UNEQUAL = {
    "one of 200 beside 11 of 5": [5] * 11 + [200],
    "one of 250 beside 49 of 5": [5] * 49 + [250],
    "log-normal": [max(1, int(np.exp(2 + np.sin(7 * at) * 2))) for at in range(50)],
}


@replicates
@pytest.mark.parametrize("sizes", UNEQUAL.values(), ids=UNEQUAL)
def test_unequal_clusters_raise_no_more_false_alarms_than_equal_ones(sizes, repeats):
    draw = np.random.default_rng(11)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    alarms = 0
    for _ in range(repeats):
        noise = draw.normal(0, 0.7**0.5, len(sizes))[clusters]
        found = clustered_mean(noise + draw.normal(0, 0.3**0.5, clusters.size), clusters.tolist())
        alarms += found.low > 0

    assert alarms / repeats <= 0.04


def test_one_cluster_tells_no_error():
    found = clustered_mean([1.0, 2.0, 3.0], ["a", "a", "a"])

    assert (found.mean, found.se, found.low, found.clusters) == (2.0, None, None, 1)
    assert found.naive_se == pytest.approx(1 / 3**0.5)


def test_one_value_tells_a_mean_alone():
    assert clustered_mean([1.0], ["a"])[:5] == (1.0, None, None, None, None)


def test_sums_follow_the_order_in_which_clusters_appear():
    sums, sizes = cluster_sums(np.array([1.0, 2.0, 4.0]), ["z", "a", "z"])

    assert (sums.tolist(), sizes.tolist()) == ([5.0, 2.0], [2.0, 1.0])


def test_values_without_a_cluster_are_refused():
    with pytest.raises(ValueError, match="2 values need as many clusters, there are 1"):
        clustered_mean([1.0, 2.0], ["a"])


def test_the_measured_design_effect_comes_close_to_kish():
    scores, clusters = clustered_null(np.random.default_rng(9), clusters=4000)
    found = clustered_mean(scores, clusters)

    assert found.design_effect == pytest.approx(design_effect(10, 0.7), rel=0.1)


@replicates
def test_under_the_null_clustered_errors_keep_five_percent_and_naive_ones_do_not(repeats):
    """G20: fifty clusters of ten with a correlation of 0.7."""
    draw = np.random.default_rng(10)
    naive = clustered = 0
    for _ in range(repeats):
        scores, clusters = clustered_null(draw)
        found = clustered_mean(scores, clusters)
        naive += abs(found.mean) > 1.96 * found.naive_se
        clustered += not found.low <= 0 <= found.high

    assert 0.03 <= clustered / repeats <= 0.08
    assert near(naive / repeats, 0.468, repeats, slack=0.01)
