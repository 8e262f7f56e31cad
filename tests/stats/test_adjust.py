import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from simulation import replicates
from statsmodels.stats.multitest import multipletests

from difflens.stats.decision import benjamini_hochberg, holm

# Benjamini & Hochberg (1995), section 3.2: fifteen hypotheses about thrombolysis.
FIFTEEN = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
    0.5719, 0.6528, 0.7590, 1.0000,
]  # fmt: skip
FIVE = [0.01, 0.02, 0.03, 0.04, 0.05]

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)
methods = pytest.mark.parametrize(
    ("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")]
)


def test_five_p_values_are_adjusted_as_the_book_says():
    assert holm(FIVE) == pytest.approx((0.05, 0.08, 0.09, 0.09, 0.09))
    assert benjamini_hochberg(FIVE) == pytest.approx([0.05] * 5)


def test_the_fifteen_of_1995_give_four_discoveries_where_bonferroni_gives_three():
    assert sum(p <= 0.05 for p in benjamini_hochberg(FIFTEEN)) == 4
    assert sum(p * 15 <= 0.05 for p in FIFTEEN) == 3


@methods
@examples(15)  # a call of theirs takes a tenth of a second
@given(ps=p_values)
def test_each_agrees_with_statsmodels(ours, theirs, ps):
    expected = multipletests(ps, method=theirs)[1]

    assert ours(ps) == pytest.approx(list(expected))


@methods
@given(ps=p_values, order=st.randoms(use_true_random=False))
def test_the_order_of_the_tests_does_not_matter(ours, theirs, ps, order):  # noqa: ARG001
    places = list(range(len(ps)))
    order.shuffle(places)

    adjusted = ours(ps)
    assert ours([ps[i] for i in places]) == pytest.approx([adjusted[i] for i in places])


@methods
def test_no_tests_are_no_p_values(ours, theirs):  # noqa: ARG001
    assert ours([]) == ()


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, bad])


@replicates
def test_under_the_null_holm_raises_any_alarm_in_at_most_five_percent(repeats):
    draw = np.random.default_rng(28)
    alarms = sum(min(holm(draw.random(20))) <= 0.05 for _ in range(repeats))

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
