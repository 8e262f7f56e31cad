import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates
from stats.samples_of import SLEEP_FIRST, SLEEP_SECOND
from versions.recorded import bare, examples

from difflens.core.errors import InsufficientData, InvalidConfig, SnapshotError
from difflens.diffs.evidence.records import Example
from difflens.versions.ab import run_ab_test
from difflens.versions.compare import compare
from difflens.versions.records.ab import ABTestResult

A = [0.90, 0.91, 0.89, 0.92, 0.88]
B = [0.85, 0.87, 0.86, 0.84, 0.88, 0.83]
X = [0.71, 0.75, 0.69, 0.80, 0.77, 0.73]
Y = [0.73, 0.76, 0.72, 0.81, 0.80, 0.74]


def asked(**given):
    return {"name": "test", "model_a": "a", "model_b": "b", **given}


def told(result, metric="accuracy"):
    return result.statistical_tests[metric]


def ran(left, right, **given):
    return run_ab_test(asked(**given), {"accuracy": left}, {"accuracy": right})


def test_vector_1_gives_welchs_t_with_its_own_degrees_of_freedom():
    found = told(ran(A, B))

    assert found.test_type == "Welch's t-test"
    assert found.statistic == pytest.approx(4.3234602, rel=1e-6)
    assert found.df == pytest.approx(8.9893617, rel=1e-6)
    assert found.p_value == pytest.approx(0.00192873, rel=1e-5)
    assert found.confidence_interval == pytest.approx((0.02145047, 0.06854953), rel=1e-6)
    assert found.effect_size == pytest.approx(2.3526329, rel=1e-6)


def test_vector_2_unequal_sizes_and_variances_are_not_pooled():
    found = told(ran([10, 14, 6, 12], [8, 8.2, 7.9, 8.1, 8.0, 8.05, 7.95, 8.15, 7.85, 8.0]))

    assert found.statistic == pytest.approx(1.4518462, rel=1e-6)
    assert found.df == pytest.approx(3.0024232, rel=1e-6)
    assert found.p_value == pytest.approx(0.2423958, rel=1e-6)
    assert found.confidence_interval == pytest.approx((-2.9536778, 7.9136778), rel=1e-6)


def test_vector_4_pairs_find_what_independent_samples_do_not():
    together, apart = told(ran(X, Y, paired=True)), told(ran(X, Y, paired=False))

    assert abs(together.statistic) == pytest.approx(4.5675014, rel=1e-6)
    assert together.p_value == pytest.approx(0.0060156, rel=1e-4)
    assert apart.p_value == pytest.approx(0.4327173, rel=1e-6)
    ranked = next(each for each in together.further if each.test_type.startswith("Wilcoxon"))
    assert ranked.p_value == 0.03125


def test_vector_5_mcnemar_counts_only_the_answers_that_differ():
    left = [1] * 8 + [0] * 20 + [1] * 50
    right = [0] * 8 + [1] * 20 + [1] * 50
    found = told(run_ab_test(asked(), examples(left), examples(right)))

    assert found.test_type.startswith("McNemar")
    assert found.paired
    exact = next(each for each in found.further if each.test_type == "McNemar, exact")
    assert exact.p_value == pytest.approx(0.0356981, rel=1e-5)


def test_vector_6_quartiles_are_interpolated():
    found = ran([1, 2, 3, 4], [1, 2, 3, 4]).model_a_results.summary_stats["accuracy"]

    assert (found.q25, found.median, found.q75) == (1.75, 2.5, 3.25)
    assert found.std_dev == pytest.approx(np.std([1, 2, 3, 4], ddof=1))


@pytest.mark.parametrize(("effect", "needed"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_vector_11_the_sample_that_would_decide_is_told(effect, needed):
    found = ran(A, B, min_effect_size=effect)

    assert told(found).required_sample_size == needed
    assert found.conclusion.underpowered
    assert any(f"{needed} are needed" in said for said in found.warnings)


def test_a_winner_is_named_where_the_rule_fires():
    found = ran(A, B, min_effect_size=0.5).conclusion

    assert found.winner == "a"
    assert found.verdict == "a_better"
    assert found.practical_significance is True
    assert found.confidence == 0.95
    assert found.summary.startswith("a is better than b on accuracy: 0.9 against 0.855")


def test_the_arm_with_the_lower_loss_wins():
    found = run_ab_test(asked(), {"loss": [0.3, 0.31, 0.29, 0.3, 0.32]},
                        {"loss": [0.5, 0.51, 0.49, 0.5, 0.52]})  # fmt: skip

    assert found.conclusion.winner == "a"


def test_the_user_says_which_way_is_better_where_the_name_does_not():
    data = {"sparkle": A}, {"sparkle": B}
    without = run_ab_test(asked(), *data).conclusion
    named = run_ab_test(asked(directions={"sparkle": "lower"}), *data).conclusion

    assert (without.winner, without.verdict) == (None, "different")
    assert named.winner == "b"


def test_a_difference_that_is_sure_but_too_small_to_matter_has_no_winner():
    random = np.random.default_rng(0)
    left, right = random.normal(0.2, 1, 5000), random.normal(0, 1, 5000)
    found = ran(left, right, min_effect_size=0.5).conclusion

    assert (found.winner, found.verdict, found.practical) == (None, "a_better", "no")
    assert found.practical_significance is False


def test_a_difference_that_may_or_may_not_matter_is_unclear():
    found = ran(X, Y, paired=True, min_effect_size=1.0).conclusion

    assert (found.winner, found.practical, found.practical_significance) == (None, "unclear", None)


@pytest.mark.parametrize("unit", ["absolute", "relative"])
def test_the_least_effect_is_in_the_unit_the_user_names(unit):
    least = {"absolute": 0.02, "relative": 0.02}[unit]

    assert ran(A, B, min_effect_size=least, effect_unit=unit).conclusion.winner == "a"
    assert ran(A, B, min_effect_size=0.03, effect_unit=unit).conclusion.winner is None


def test_equal_constant_arms_have_no_winner_and_no_effect():
    found = ran([3.0] * 6, [3.0] * 6)

    assert told(found).effect_size == 0.0
    assert told(found).p_value is None
    assert found.conclusion.winner is None
    assert found.conclusion.verdict == "inconclusive"


def test_noise_has_no_winner():
    random = np.random.default_rng(1)
    found = ran(random.normal(size=100), random.normal(size=100)).conclusion

    assert (found.winner, found.verdict) == (None, "inconclusive")
    assert "would have been found in 80%" in found.recommendation


def test_equivalence_needs_a_margin_and_then_is_a_verdict():
    random = np.random.default_rng(20)
    left, right = random.normal(0, 1, 2000), random.normal(0, 1, 2000)

    assert ran(left, right, margin=0.2).conclusion.verdict == "equivalent"
    assert ran(left, right).conclusion.verdict == "inconclusive"


def test_b_is_not_inferior_where_its_loss_stays_within_the_margin():
    random = np.random.default_rng(3)
    left, right = random.normal(0, 1, 60), random.normal(0.25, 1, 60)
    found = ran(left, right, margin=0.2).conclusion

    assert found.verdict == "non_inferior"
    assert "b is not worse than a" in found.summary


def test_only_the_one_that_is_shown_not_to_be_worse_may_be_taken():
    found = ran(SLEEP_FIRST, SLEEP_SECOND, margin=1.0)
    turned = ran(SLEEP_SECOND, SLEEP_FIRST, margin=1.0)

    assert told(found).confidence_interval == pytest.approx((-3.365, 0.205), abs=1e-3)
    assert (found.conclusion.verdict, told(found).not_worse) == ("non_inferior", ("b",))
    assert found.conclusion.recommendation.startswith("take b: not worse than a by more than 1")
    assert (turned.conclusion.verdict, told(turned).not_worse) == ("non_inferior", ("a",))
    assert turned.conclusion.recommendation.startswith("take a: not worse than b by more than 1")
    assert "a is not worse than b" in turned.conclusion.summary


def test_either_may_be_taken_only_where_both_are_within_the_margin():
    random = np.random.default_rng(20)
    left, right = random.normal(0, 1, 2000), random.normal(0, 1, 2000)
    found = ran(left, right, margin=0.2)

    assert told(found).not_worse == ("a", "b")
    assert found.conclusion.recommendation == "take either: equivalent within 0.2"


def test_equal_accuracy_with_many_flips_is_a_finding():
    left, right = [1, 0] * 30 + [1] * 140, [0, 1] * 30 + [1] * 140
    found = run_ab_test(asked(), examples(left), examples(right))

    assert (told(found).broke, told(found).fixed) == (30, 30)
    assert "30 right -> wrong, 30 wrong -> right" in found.conclusion.summary
    (finding,) = found.findings
    assert "60 of 200 answers flipped" in finding
    assert json.loads(found.to_json())["findings"] == [finding]


def test_flips_count_from_a_to_b():
    rest = [1] * 97
    found = run_ab_test(asked(), examples([1, 1, 0, *rest]), examples([0, 0, 1, *rest]))

    assert (told(found).broke, told(found).fixed, found.findings) == (2, 1, ())


def test_few_shared_ids_are_not_paired_and_that_is_said():
    random = np.random.default_rng(5)
    left, right = examples(random.random(1000) < 0.9), examples(random.random(1000) < 0.5)
    apart = [*right[:6], *(msgspec.structs.replace(each, id=f"x{each.id}") for each in right[6:])]
    found = run_ab_test(asked(), left, apart)

    assert (told(found).paired, told(found).n_a, told(found).n_b) == (False, 1000, 1000)
    assert any("only 6 of 1000 and 1000 examples" in each for each in found.warnings)
    assert found.conclusion.winner == "a"


def test_means_are_the_models_own_where_only_some_examples_are_shared():
    left, right = examples([1.0] * 60 + [0.0] * 40), examples([1.0] * 60)
    found = run_ab_test(asked(), left, right).conclusion

    assert "0.6 against 1" in found.summary
    assert "n = 60 pairs of 100 and 60" in found.summary


def test_heavily_skewed_pairs_are_a_warning():
    differences = np.random.default_rng(4).lognormal(0, 1.5, 30)
    found = ran(differences, np.zeros(30), paired=True)

    assert any("heavily skewed" in each for each in found.warnings)
    assert told(found).test_type == "paired t-test, against skew"


def test_a_smaller_alpha_takes_the_verdict_back_and_widens_the_interval():
    at_five, at_tenth = ran(A, B), ran(A, B, alpha=0.001)
    wide, narrow = (told(each).confidence_interval for each in (at_tenth, at_five))

    assert at_five.conclusion.winner == "a"
    assert at_tenth.conclusion.winner is None
    assert at_tenth.conclusion.confidence == 0.999
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_several_metrics_are_adjusted_together():
    random = np.random.default_rng(4)
    others = {f"f1_{at}": random.normal(size=30) for at in range(9)}
    left = {"accuracy": random.normal(0.6, 1, 30), **others}
    right = {"accuracy": random.normal(0, 1, 30),
             **{name: random.normal(size=30) for name in others}}  # fmt: skip
    alone = run_ab_test(asked(), {"accuracy": left["accuracy"]}, {"accuracy": right["accuracy"]})
    among = run_ab_test(asked(), left, right)

    assert told(among).p_value == told(alone).p_value < 0.05
    assert told(among).p_adjusted == pytest.approx(10 * told(alone).p_value)
    assert set(among.statistical_tests) == set(left)


def test_the_primary_metric_decides_whichever_comes_first():
    data = {"loss": A, "accuracy": A}, {"loss": B, "accuracy": B}
    by_loss = run_ab_test(asked(primary_metric="loss"), *data).conclusion
    by_accuracy = run_ab_test(asked(primary_metric="accuracy"), *data).conclusion

    assert (by_loss.winner, by_accuracy.winner) == ("b", "a")


def test_only_tracked_metrics_are_tested():
    data = {"loss": A, "accuracy": A}, {"loss": B, "accuracy": B}
    found = run_ab_test(asked(tracked_metrics=["loss", "absent"]), *data)

    assert set(found.statistical_tests) == {"loss"}
    assert any("absent" in said for said in found.warnings)


def test_plain_numbers_are_the_primary_metric():
    found = run_ab_test(asked(), A, B)

    assert set(found.statistical_tests) == {"primary_metric"}
    assert found.model_a_results.sample_size == 5
    assert found.model_b_results.sample_size == 6


def test_examples_with_the_same_ids_are_paired():
    random = np.random.default_rng(5)
    hard = random.normal(size=40)
    left, right = hard + 0.1 * random.normal(size=40), hard - 0.1
    paired = told(run_ab_test(asked(), examples(left), examples(right)))
    unpaired = told(run_ab_test(asked(paired=False), examples(left), examples(right)))

    assert paired.paired
    assert paired.p_value < 0.001
    assert unpaired.p_value > 0.1


def test_examples_in_another_order_are_the_same_pairs():
    left, right = examples(X), examples(Y)
    found = run_ab_test(asked(), left, right)
    turned = run_ab_test(asked(), left, right[::-1])

    assert told(found) == told(turned)


def test_clusters_widen_the_interval():
    random = np.random.default_rng(6)
    groups = np.repeat(np.arange(40), 10)
    shifts = random.normal(size=40)[groups]
    left = examples(shifts + random.normal(size=400), clusters=groups)
    right = list(examples(random.normal(size=400), clusters=groups + 100))
    bare_left = [each.score for each in left]
    clustered = told(run_ab_test(asked(paired=False), left, right))
    naive = told(ran(bare_left, [each.score for each in right]))

    assert clustered.clusters == 40
    wide, narrow = (np.ptp(each.confidence_interval) for each in (clustered, naive))
    assert wide > 1.5 * narrow


def test_a_test_that_is_watched_gives_no_p_of_a_fixed_sample():
    random = np.random.default_rng(7)
    found = ran(random.normal(0.5, 1, 400), random.normal(0, 1, 400), sequential=True)

    assert told(found).p_value is None
    assert any("again and again" in each.why for each in told(found).missing)
    assert found.sequential.stopped_at < 400
    assert found.conclusion.winner == "a"
    assert "decided after" in found.conclusion.summary


def test_right_and_wrong_answers_are_watched_by_bets():
    random = np.random.default_rng(8)
    left, right = random.random(2000) < 0.6, random.random(2000) < 0.4
    found = ran(left.astype(float), right.astype(float), sequential=True)

    assert found.sequential.method == "betting confidence sequence"
    assert found.conclusion.winner == "a"


def test_fewer_values_than_planned_are_a_warning():
    assert any("--sequential" in said for said in ran(A, B, sample_size=100).warnings)
    assert not ran(A, B, sample_size=5).warnings


def test_values_that_are_not_finite_are_left_out_and_counted():
    found = ran([*A, float("nan"), None], B)

    assert found.model_a_results.summary_stats["accuracy"].nonfinite == 2
    assert told(found).n_a == 5
    assert "2 values are not finite" in found.warnings[0]
    assert ABTestResult.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ([], B, "no finite value"),
        ([float("nan")], B, "no finite value"),
        (["x"], B, "no number"),
        ([1e200, 1.0], B, "too large"),
    ],
)
def test_arms_without_numbers_are_refused(left, right, said):
    with pytest.raises((InsufficientData, SnapshotError), match=said):
        ran(left, right)


def test_pairs_of_unequal_length_are_refused():
    with pytest.raises(InsufficientData, match="cannot be paired"):
        ran(A, B, paired=True)


def test_a_model_is_not_tested_against_itself():
    with pytest.raises(InvalidConfig, match="both"):
        run_ab_test({"name": "t", "model_a": "a", "model_b": "a"}, A, B)


def test_times_are_those_of_the_experiment_or_not_known():
    found = run_ab_test(asked(), A, B)
    dated = run_ab_test(asked(), A, B, start_time="2026-01-01T00:00:00Z",
                       end_time="2026-01-08T00:00:00Z")  # fmt: skip

    assert found.start_time is None
    assert found.end_time
    assert dated.start_time == "2026-01-01T00:00:00.000000Z"


few = st.lists(st.integers(0, 20).map(lambda value: value / 4), min_size=1, max_size=12)


@given(few, few)
def test_swapping_the_arms_flips_signs_and_keeps_everything_else(left, right):
    found, turned = told(ran(left, right)), told(ran(right, left))
    flipped = {"a_better": "b_better", "b_better": "a_better"}

    assert found.difference == pytest.approx(-turned.difference)
    assert (found.p_value is None) == (turned.p_value is None)
    if found.p_value is not None:
        assert found.p_value == pytest.approx(turned.p_value, abs=1e-9)
    assert found.verdict == flipped.get(turned.verdict, turned.verdict)


@given(few, few)
def test_every_result_survives_json(left, right):
    found = ran(left, right, min_effect_size=0.1)

    assert ABTestResult.from_json(found.to_json()) == found


def test_the_same_data_give_the_same_bytes():
    first = run_ab_test(asked(), A, B, end_time="2026-01-01T00:00:00Z")
    second = run_ab_test(asked(), A, B, end_time="2026-01-01T00:00:00Z")

    assert first.to_json() == second.to_json()


@replicates
def test_vector_12_unequal_variances_keep_five_percent(repeats):
    random = np.random.default_rng(11)
    alarms = 0
    for _ in range(repeats):
        left, right = random.normal(0, 3, 10), random.normal(0, 1, 100)
        alarms += ran_quickly(left, right).p_value < 0.05

    assert near(alarms / repeats, 0.05, repeats, slack=0.005)


def ran_quickly(left, right):
    """Only the test that decides: the resampled ones beside it take a while."""
    from difflens.versions import ab, tested
    from difflens.versions.records.ab import ABTestConfig

    config = ABTestConfig(**asked())
    sides = ab.Sides(tuple(left), tuple(right), is_paired=False)
    made = tested.compared(tested._turned(sides), 0.95)
    metric = ab._Metric("accuracy", sides, tested.MetricTest(made, "", made.effect, ""), "higher")
    return ab._adjusted([ab._result(metric, config)], [metric], config)["accuracy"]


@replicates
def test_a_winner_of_noise_is_named_in_five_percent_at_most(repeats):
    random = np.random.default_rng(12)
    verdicts = [
        ran_quickly(random.exponential(size=12), random.exponential(size=12)).verdict
        for _ in range(repeats)
    ]
    rate = sum(each != "inconclusive" for each in verdicts) / repeats

    assert rate <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


@replicates
def test_the_interval_covers_the_truth_as_often_as_it_says(repeats):
    random = np.random.default_rng(13)
    held = 0
    for _ in range(repeats):
        low, high = ran_quickly(random.normal(1, 3, 8), random.normal(0, 1, 20)).confidence_interval
        held += low <= 1 <= high

    assert near(held / repeats, 0.95, repeats, slack=0.01)


@replicates
def test_power_is_what_the_planned_sample_promises(repeats):
    random = np.random.default_rng(14)
    found = sum(
        ran_quickly(random.normal(0.8, 1, 26), random.normal(0, 1, 26)).is_significant
        for _ in range(repeats)
    )

    assert near(found / repeats, 0.8, repeats, slack=0.02)


@replicates
def test_peeking_a_hundred_times_keeps_five_percent(repeats):
    random = np.random.default_rng(15)
    alarms = 0
    for _ in range(repeats):
        found = ran(random.normal(size=500), random.normal(size=500), sequential=True)
        # Every prefix has been looked at: `stopped_at` is the first that would have decided.
        alarms += found.sequential.stopped_at is not None

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


def test_looking_at_every_prefix_is_the_same_as_looking_once():
    random = np.random.default_rng(16)
    left, right = random.normal(0.6, 1, 300), random.normal(size=300)
    whole = ran(left, right, sequential=True).sequential.stopped_at
    looks = [ran(left[:n], right[:n], sequential=True) for n in (whole - 1, whole)]

    assert [each.sequential.stopped_at for each in looks] == [None, whole]


@pytest.mark.parametrize("size", [5, 8, 20, 100])
def test_one_pair_has_one_p_and_the_gates_decide_by_it(size):
    """Five answers that broke: mid-p 0.031, in `ab`, `compare` and the gates."""
    left = [Example(f"q{at}", 1.0, "score") for at in range(size)]
    right = [Example(f"q{at}", float(at >= 5), "score") for at in range(size)]
    config = {"name": "t", "model_a": "a", "model_b": "b", "tracked_metrics": ("score",)}
    test = run_ab_test(config, {"score": left}, {"score": right}).statistical_tests["score"]
    pair = [bare(name, evals=tuple(each)) for name, each in (("a", left), ("b", right))]
    compared = compare({each.name: each for each in pair}).statistical_analysis.tests[0]

    assert test.p_value == compared.p
    assert test.p_value >= 0.03125
    assert (test.p_value < 0.05) == (test.verdict == "a_better") == (compared.word == "worse")
    assert (test.confidence_interval[0] > 0) == (test.p_value < 0.05)


def test_what_is_null_says_its_own_reason():
    same = [Example(f"q{at}", float(at % 2), "score") for at in range(40)]
    config = {"name": "t", "model_a": "a", "model_b": "b", "margin": 0.3,
              "tracked_metrics": ("score",)}  # fmt: skip
    found = run_ab_test(config, {"score": same}, {"score": same}).conclusion
    why = {each.field: each for each in found.missing}

    assert found.verdict == "equivalent"
    assert why["winner"].needs == "models that differ"
    assert "does not vary" in why["minimal_detectable_effect"].why
