"""Pairs, two samples and clusters: one test for every gate."""

import numpy as np
import pytest
from diffs.analyses.scores import examples
from simulation import near, replicates
from versions.recorded import bare

from difflens.core.policy import Policy
from difflens.diffs.evidence.records import Evidence, Example, Side
from difflens.diffs.quality.check import checks
from difflens.diffs.quality.sides import compared, sides_of
from difflens.diffs.quality.trials import Settings
from difflens.versions.ab import run_ab_test
from difflens.versions.records.ab import ABTestConfig
from difflens.versions.regressions import detect_regressions

CLUSTERS, SIZE, ICC = 50, 10, 0.7
FIRST, LAST = slice(0, 100), slice(70, 170)


def clustered(random, *, is_binary, shift=0.0):
    """Draw 50 clusters of 10 whose values correlate by 0.7."""
    common = np.repeat(random.normal(size=CLUSTERS), SIZE) * ICC**0.5
    values = common + random.normal(size=CLUSTERS * SIZE) * (1 - ICC) ** 0.5 + shift
    return (values > -0.5).astype(float) if is_binary else values


def named(values, side, metric="accuracy"):
    """Make examples of ids of their own, in clusters of their own."""
    groups = [f"{side}{place // SIZE}" for place in range(len(values))]
    return examples(values, metric, groups, prefix=side)


kinds = pytest.mark.parametrize("is_binary", [False, True], ids=["continuous", "binary"])


@replicates
@kinds
@pytest.mark.parametrize("same", [False, True], ids=["clusters apart", "clusters on both sides"])
def test_unpaired_clusters_raise_no_more_false_alarms_than_they_may(is_binary, same, repeats):
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(repeats):
        left, right = (clustered(random, is_binary=is_binary) for _ in "lr")
        groups = [f"c{place // SIZE}" for place in range(left.size)]
        sides = named(left, "l"), named(right, "r")
        if same:
            sides = tuple(examples(each, "accuracy", groups, prefix=name)
                          for each, name in ((left, "l"), (right, "r")))  # fmt: skip
        found = compared(sides_of(*sides, "accuracy"), 0.95)
        alarms += found.high < 0

    assert near(alarms / repeats, 0.025, repeats, slack=0.005)


@replicates
@kinds
def test_unpaired_clusters_find_what_they_can_find(is_binary, repeats):
    random = np.random.default_rng(8)
    found = 0
    for _ in range(repeats):
        left, right = (clustered(random, is_binary=is_binary, shift=by) for by in (0.0, -0.7))
        found += compared(sides_of(named(left, "l"), named(right, "r"), "accuracy"), 0.95).high < 0

    # 1 - P(t below 1.98 - 0.7 / sqrt(2 · 0.73 / 50)) of the latent values; answers tell less.
    assert found / repeats > (0.9 if is_binary else 0.96)


@replicates
@kinds
def test_paired_clusters_raise_no_more_false_alarms_than_they_may(is_binary, repeats):
    random = np.random.default_rng(9)
    alarms = 0
    groups = [f"c{place // SIZE}" for place in range(CLUSTERS * SIZE)]
    for _ in range(repeats):
        left, right = (clustered(random, is_binary=is_binary) for _ in "lr")
        sides = [examples(each, "accuracy", groups) for each in (left, right)]
        alarms += compared(sides_of(*sides, "accuracy"), 0.95).high < 0

    assert near(alarms / repeats, 0.025, repeats, slack=0.005)


@kinds
@pytest.mark.parametrize("is_paired", [False, True], ids=["unpaired", "paired"])
def test_every_gate_tests_clusters_alike(is_binary, is_paired):
    random = np.random.default_rng(10)
    left, right = (clustered(random, is_binary=is_binary) for _ in "lr")
    sides = named(left, "q"), named(right, "q" if is_paired else "r")
    evidence = Evidence(left=Side(evals=sides[0]), right=Side(evals=sides[1]))
    (check,) = checks(evidence, Policy(), Settings())
    (verdict,) = detect_regressions(*(bare(evals=each) for each in reversed(sides))).verdicts
    config = ABTestConfig(name="t", model_a="a", model_b="b")
    tested = run_ab_test(config, *sides).statistical_tests["accuracy"]

    assert check.comparison.clusters == CLUSTERS
    assert (verdict.p, tested.p_value) == pytest.approx((check.comparison.p,) * 2)
    assert tested.confidence_interval == pytest.approx(
        (-check.comparison.high, -check.comparison.low)
    )
    assert (verdict.interval.low, verdict.interval.high) == pytest.approx(
        (-check.comparison.high, -check.comparison.low)
    )


def test_a_cluster_column_of_one_side_is_enough_to_count():
    random = np.random.default_rng(11)
    left, right = (clustered(random, is_binary=False) for _ in "lr")
    sides = sides_of(named(left, "l"), examples(right, prefix="r"), "accuracy")

    assert compared(sides, 0.95).clusters == CLUSTERS


def thousand(random, shared, rates=(0.8, 0.8)):
    """Draw 1,000 answers a side, so many of them to the same questions, which are all wrong."""
    left, right = ((random.random(1000) < rate).astype(float) for rate in rates)
    right[:shared] = 0.0
    return examples(left), (*examples(right[:shared]), *examples(right[shared:], prefix="other"))


def test_six_shared_ids_of_a_thousand_are_not_what_the_models_are_judged_by():
    left, right = thousand(np.random.default_rng(12), 6)
    evidence = Evidence(left=Side(evals=left), right=Side(evals=right))
    (check,) = checks(evidence, Policy(), Settings())

    assert check.left == pytest.approx(np.mean([each.score for each in left]))
    assert check.right == pytest.approx(np.mean([each.score for each in right]))
    assert (check.comparison.n_left, check.comparison.n_right) == (1000, 1000)
    assert check.comparison.difference == pytest.approx(check.right - check.left)
    assert check.comparison.high - check.comparison.low < 0.08
    assert "only 6 of 1000 and 1000 examples are on both sides" in check.note


def test_half_of_the_smaller_side_is_enough_to_pair_and_each_value_stays_its_own():
    random = np.random.default_rng(13)
    left, right = thousand(random, 500)
    sides = sides_of(left, right, "accuracy")
    fewer = sides_of(left[1:], (*right[1:], *examples([1.0] * 9, prefix="more")), "accuracy")

    assert sides.is_paired
    assert len(sides.left) == 500
    assert [len(own.values) for own in sides.owned] == [1000, 1000]
    assert sides.owned[1].mean == pytest.approx(np.mean([each.score for each in right]))
    assert "compared on the shared ones" in sides.note
    assert not fewer.is_paired


def test_a_part_of_the_larger_side_is_paired_with_the_whole_of_the_smaller():
    left, right = examples([1, 0] * 500), examples([1, 0] * 50)

    assert sides_of(left, right, "accuracy").is_paired


@replicates
def test_few_shared_questions_keep_the_level(repeats):
    random = np.random.default_rng(14)
    alarms = 0
    for _ in range(repeats):
        easy = random.random(170) < 0.7
        answers = [easy[places] ^ (random.random(100) < 0.1) for places in (FIRST, LAST)]
        sides = [
            [Example(f"q{at}", float(each), "accuracy") for at, each in enumerate(side, start)]
            for side, start in zip(answers, (0, 70), strict=True)
        ]
        found = compared(sides_of(*sides, "accuracy"), 0.95)
        alarms += found.p < 0.05

    assert near(alarms / repeats, 0.05, repeats, slack=0.01)


def test_right_and_wrong_is_told_from_scores():
    random = np.random.default_rng(0)

    assert sides_of(examples([1, 0]), examples([0, 1]), "accuracy").is_binary
    assert not sides_of(examples(random.random(3)), examples([0, 1, 1]), "accuracy").is_binary
