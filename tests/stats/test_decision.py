import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.stats.comparison import Comparison
from difflens.stats.decision import decide
from difflens.stats.paired import paired

SWAPPED = {"better": "worse", "worse": "better"}


def known(difference, reach, n=100, **more):
    """A comparison whose 95 % interval is difference ± reach."""
    ends = difference - reach, difference + reach
    error = reach / 1.959963984540054
    return Comparison(difference, *ends, 0.95, None, "z", n, n, standard_error=error, **more)


@pytest.mark.parametrize(
    ("difference", "reach", "margin", "word"),
    [
        (3.0, 1.0, None, "better"),
        (-3.0, 1.0, None, "worse"),
        (0.5, 1.0, None, "inconclusive"),
        (0.1, 1.0, 2.0, "equivalent"),
        (0.3, 0.2, 2.0, "equivalent"),
        (3.0, 1.0, 2.0, "better"),
        (1.5, 2.0, 2.0, "non_inferior"),
        (-3.0, 1.0, 2.0, "worse"),
        (-1.5, 2.0, 2.0, "inconclusive"),
    ],
)
def test_the_word_is_what_the_interval_allows(difference, reach, margin, word):
    found = decide(known(difference, reach), "higher", margin)

    assert found.word == word
    assert found.degradation == -difference
    assert found.degradation_low == pytest.approx(-difference - reach)
    assert found.degradation_high == pytest.approx(-difference + reach)


@given(st.floats(-5, 5), st.floats(0.01, 5))
def test_a_lower_is_better_metric_turns_the_word_around(difference, reach):
    higher = decide(known(difference, reach), "higher").word
    lower = decide(known(difference, reach), "lower").word

    assert lower == SWAPPED.get(higher, higher)


@given(st.floats(-5, 5), st.floats(0.01, 5), st.sampled_from([0.01, 0.05, 0.1]))
def test_a_stricter_alpha_never_finds_what_a_looser_one_does_not(difference, reach, alpha):
    strict = decide(known(difference, reach), "higher", alpha=alpha / 2).word
    loose = decide(known(difference, reach), "higher", alpha=alpha).word

    assert strict in (loose, "inconclusive")


@pytest.mark.parametrize(("reach", "said"), [(1.0, "excludes zero"), (9.0, "includes zero")])
def test_without_a_direction_there_is_a_difference_and_no_winner(reach, said):
    found = decide(known(3.0, reach), None)

    assert found[:4] == ("inconclusive", None, None, None)
    assert said in found.reason


def test_sameness_needs_no_direction():
    assert decide(known(0.0, 0.5), None, margin=1.0).word == "equivalent"


@pytest.mark.parametrize(("n", "least"), [(1, 0), (4, 5), (19, 20)])
def test_too_few_values_have_an_interval_and_no_verdict(n, least):
    found = decide(known(3.0, 1.0, n=n), "higher", least=least)

    assert found.word == "not_enough_data"
    assert found.degradation_high == pytest.approx(-2.0)
    values = "value" if n == 1 else "values"
    assert found.reason == f"{n} {values} on a side, a verdict needs {max(least, 2)}"


def test_one_pair_is_not_enough_data():
    found = decide(paired([1.0], [2.0]), "higher")

    assert found[:4] == ("not_enough_data", -1.0, None, None)


def test_few_clusters_have_no_verdict():
    assert decide(known(3.0, 1.0, clusters=9), "higher").word == "not_enough_data"
    assert decide(known(3.0, 1.0, clusters=10), "higher").word == "better"


def test_constant_data_are_inconclusive_for_their_own_reason():
    found = decide(paired([1.0] * 9, [2.0] * 9), "higher")

    assert found.word == "inconclusive"
    assert "same amount" in found.reason


def test_an_interval_at_too_low_a_level_decides_nothing():
    bare = Comparison(3.0, 2.0, 4.0, 0.9, None, "bootstrap", 9, 9)

    assert decide(bare, "higher").reason == "no interval at level 0.95 is known"
    assert decide(bare, "higher", alpha=0.1).word == "better"


def test_a_model_against_itself_is_equivalent_where_examples_are_many():
    answers = (np.arange(1000) % 3 > 0).astype(float)

    assert decide(paired(answers, answers), "higher", margin=0.01).word == "equivalent"
    assert decide(paired(answers[:50], answers[:50]), "higher", margin=0.01).word == "inconclusive"
