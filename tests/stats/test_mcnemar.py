import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import replicates
from statsmodels.stats.contingency_tables import mcnemar as oracle

from difflens.stats.proportions import from_flips, mcnemar

counts = st.integers(0, 60)


def test_agrestis_approval_table_gives_the_published_figures():
    found = from_flips(86, 150, 1600)

    assert found.chi2 == pytest.approx(17.356, abs=5e-4)
    assert found.chi2_corrected == pytest.approx(16.818, abs=5e-4)
    assert found.p_exact == pytest.approx(3.716e-5, abs=5e-9)
    assert found.method == "chi-square"


@given(counts, counts)
def test_it_agrees_with_statsmodels(broke, fixed):
    found = from_flips(broke, fixed, 200)

    table = [[0, broke], [fixed, 0]]
    assert found.p_exact == pytest.approx(min(1.0, oracle(table, exact=True).pvalue))
    if broke + fixed >= 25:
        assert found.p == pytest.approx(oracle(table, exact=False, correction=False).pvalue)
        corrected = oracle(table, exact=False, correction=True).statistic
        assert broke == fixed or found.chi2_corrected == pytest.approx(corrected)
    else:
        assert (found.p, found.method) == (found.p_exact, "exact")


@given(counts, counts)
def test_the_mid_p_lies_below_the_exact_one(broke, fixed):
    found = from_flips(broke, fixed, 200)

    assert found.p_mid <= found.p_exact


def test_no_flip_is_no_evidence():
    found = mcnemar([True, False], [True, False])

    assert (found.broke, found.fixed, found.p, found.chi2) == (0, 0, 1.0, None)


def test_answers_are_counted_both_ways():
    found = mcnemar([1, 1, 1, 0, 0], [0, 0, 1, 1, 0])

    assert (found.broke, found.fixed, found.n) == (2, 1, 5)


def test_scores_that_are_no_answers_are_refused():
    with pytest.raises(ValueError, match=r"right holds 0\.5; answers are right"):
        mcnemar([1.0], [0.5])


def test_answers_without_a_partner_are_refused():
    with pytest.raises(ValueError, match="left has 1 answers, right 2"):
        mcnemar([1], [1, 0])


@pytest.mark.parametrize(("broke", "fixed"), [(-1, 2), (6, 5)])
def test_flips_that_do_not_fit_are_refused(broke, fixed):
    with pytest.raises(ValueError, match="do not fit into 10 pairs"):
        from_flips(broke, fixed, 10)


@replicates
def test_false_alarms_of_the_exact_test_stay_below_five_percent(repeats):
    draw = np.random.default_rng(17)
    alarms = sum(
        from_flips(int(broke), 20 - int(broke), 100).p <= 0.05
        for broke in draw.binomial(20, 0.5, repeats)
    )

    assert alarms / repeats <= 0.0414 + 3 * (0.05 * 0.95 / repeats) ** 0.5
