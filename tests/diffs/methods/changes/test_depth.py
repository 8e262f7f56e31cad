import pytest
from scipy import stats

from difflens.diffs.analyses.change_summary import depth_correlation


def profile(*values, stack="layers"):
    return [{"block": f"{stack}.{i}", "relative_l2": value} for i, value in enumerate(values)]


def test_change_that_grows_with_depth_has_a_tau_of_one_and_an_exact_p():
    found = depth_correlation(profile(0.1, 0.2, 0.3, 0.4, 0.5))

    assert found["tau"] == pytest.approx(1)
    assert found["p"] == pytest.approx(2 / 120)
    assert found["n"] == 5


def test_ties_are_told_and_get_the_approximate_p():
    values = (0.0, 0.0, 0.1, 0.3, 0.2)

    found = depth_correlation(profile(*values))

    expected = stats.kendalltau(range(5), values, method="asymptotic")
    assert (found["tau"], found["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert found["p_method"] == "asymptotic"


def test_only_the_longest_stack_has_a_depth():
    blocks = profile(0.1, 0.2, 0.3) + profile(9, 1, stack="encoder")

    assert depth_correlation(blocks)["n"] == 3


@pytest.mark.parametrize("values", [(), (0.1, 0.2), (0.1, 0.1, 0.1), (0.1, None, 0.3)])
def test_too_few_blocks_or_all_alike_have_no_correlation(values):
    assert depth_correlation(profile(*values)) is None
