"""What is true of every comparison of two samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.stats.means import permutation, welch, yuen
from difflens.stats.paired import paired, sign_flip, signed_rank
from difflens.stats.ranking import brunner_munzel, mann_whitney

INDEPENDENT = [welch, yuen, brunner_munzel, mann_whitney, permutation]
PAIRED = [paired, sign_flip, signed_rank]
RANKED = {brunner_munzel, mann_whitney}
every = pytest.mark.parametrize("compare", INDEPENDENT + PAIRED, ids=lambda each: each.__name__)

pairs = st.lists(
    st.tuples(st.integers(-99, 99).map(float), st.integers(-99, 99).map(float)),
    min_size=2,
    max_size=7,
)


def mirrored(comparison):
    low, high = comparison.low, comparison.high
    return None if low is None else (pytest.approx(-high), pytest.approx(-low))


@every
@given(sample=pairs)
def test_swapping_the_sides_turns_the_difference_and_keeps_the_p(compare, sample):
    left, right = (list(side) for side in zip(*sample, strict=True))
    found, turned = compare(left, right), compare(right, left)

    assert turned.difference == pytest.approx(-found.difference, abs=1e-9)
    assert turned.p == (None if found.p is None else pytest.approx(found.p))
    assert mirrored(found) == (None if turned.low is None else (turned.low, turned.high))


@every
@given(sample=pairs, power=st.integers(-20, 20))
def test_another_unit_scales_the_difference_and_keeps_the_p(compare, sample, power):
    left, right = np.array(sample).T
    found, scaled = compare(left, right), compare(left * 2.0**power, right * 2.0**power)

    factor = 1.0 if compare in RANKED else 2.0**power
    assert scaled.difference == found.difference * factor
    assert scaled.p == (None if found.p is None else pytest.approx(found.p))
    assert scaled.effect == (None if found.effect is None else pytest.approx(found.effect))


@every
@given(values=st.lists(st.integers(-99, 99).map(float), min_size=1, max_size=7))
def test_a_sample_against_itself_shows_nothing(compare, values):
    found = compare(values, values)

    assert found.difference == pytest.approx(0.0, abs=1e-12)
    assert found.p is None or found.p == pytest.approx(1.0)
    assert found.low is None or found.low <= 0 <= found.high


@every
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_refused(compare, odd):
    with pytest.raises(ValueError, match="right holds 1 values that are not finite"):
        compare([1.0, 2.0, 3.0], [1.0, odd, 3.0])


@every
def test_empty_samples_are_refused(compare):
    with pytest.raises(ValueError, match="left holds no values"):
        compare([], [])


@every
def test_the_same_call_gives_the_same_answer(compare):
    left, right = np.random.default_rng(47).normal(size=(2, 40))

    assert compare(left, right) == compare(left, right)
