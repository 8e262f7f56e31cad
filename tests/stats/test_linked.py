import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.clusters import clustered_mean, linked
from difflens.stats.means import welch
from difflens.stats.paired import paired

values = st.lists(st.integers(-9, 9).map(float), min_size=3, max_size=9)


def shown(made):
    return (made.difference, made.low, made.high, made.p, made.df)


@given(values, values)
def test_values_of_their_own_are_compared_as_welch_does(left, right):
    names = [f"l{at}" for at in range(len(left))], [f"r{at}" for at in range(len(right))]
    found, known = linked(left, right, *names), welch(left, right)

    assert (found.p is None) == (known.p is None)
    if known.p is not None:
        assert shown(found) == pytest.approx(shown(known))


@given(values, st.randoms())
def test_clusters_that_all_lie_on_both_sides_are_compared_in_pairs(left, random):
    right = [each + random.randint(-3, 3) for each in left]
    names = list(range(len(left)))
    found, known = linked(left, right, names, names), paired(left, right, names)

    if known.standard_error:
        assert shown(found) == pytest.approx(shown(known))


def test_two_sides_of_clusters_have_the_errors_of_both():
    random = np.random.default_rng(0)
    left, right = random.normal(size=60), random.normal(size=40)
    names = [f"l{at // 5}" for at in range(60)], [f"r{at // 5}" for at in range(40)]
    errors = clustered_mean(left, names[0]).se, clustered_mean(right, names[1]).se
    found = linked(left, right, *names)

    assert found.standard_error == pytest.approx(np.hypot(*errors))
    assert found.clusters == 8


@given(values, values)
def test_swapping_the_sides_turns_the_difference(left, right):
    names = [at % 4 for at in range(len(left))], [at % 4 for at in range(len(right))]
    found, turned = linked(left, right, *names), linked(right, left, *names[::-1])

    assert turned.difference == pytest.approx(-found.difference)
    assert turned.p == (None if found.p is None else pytest.approx(found.p))


def test_one_cluster_tells_no_error():
    assert linked([1.0, 2.0], [2.0, 5.0], "aa", "bb").low is None
    assert linked([1.0, 1.0], [2.0, 2.0], "ab", "cd").low is None


def test_every_value_needs_a_cluster():
    with pytest.raises(ValueError, match="2 values need as many clusters, there are 3"):
        linked([1.0, 2.0], [2.0, 5.0], "abc", "de")


@replicates
@pytest.mark.parametrize("shared", [0, 10, 300], ids=lambda each: f"{each} shared")
def test_shared_examples_move_both_means_and_the_interval_knows(shared, repeats):
    random = np.random.default_rng(shared)
    held = 0
    for _ in range(repeats):
        hard = random.normal(size=700 - shared)
        left = hard[:300] + random.normal(size=300) / 2
        right = hard[300 - shared : 700 - shared] + random.normal(size=400) / 2
        found = linked(left, right, range(300), range(300 - shared, 700 - shared))
        held += found.low <= 0 <= found.high

    assert near(held / repeats, 0.95, repeats, slack=0.005)


@replicates
@pytest.mark.parametrize("sizes", [[5] * 11 + [200], [5] * 49 + [250]], ids=["of 12", "of 50"])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_one_large_cluster_raises_no_false_alarm(sizes, shared, repeats):
    random = np.random.default_rng(12)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    names = clusters.tolist(), (clusters + (0 if shared else 1000)).tolist()
    alarms = 0
    for _ in range(repeats):
        sides = [
            random.normal(0, 0.7**0.5, len(sizes))[clusters]
            + random.normal(0, 0.3**0.5, clusters.size)
            for _ in names
        ]
        alarms += linked(*sides, *names).low > 0

    assert alarms / repeats <= 0.04


def test_clusters_of_other_sizes_on_both_sides_have_the_freedom_of_one_mean():
    sizes = [5] * 11 + [50]
    clusters = np.repeat(np.arange(12), sizes).tolist()
    random = np.random.default_rng(13)
    left, right = random.normal(size=105), random.normal(size=105)

    found, known = linked(left, right, clusters, clusters), clustered_mean(right - left, clusters)
    assert (found.standard_error, found.df) == pytest.approx((known.se, known.df))
