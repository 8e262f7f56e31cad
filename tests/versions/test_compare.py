import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import replicates
from versions.recorded import BUILT, bare, examples, snapshot

from difflens.core.errors import IncompatibleSnapshots, InsufficientData
from difflens.core.policy import MetricRule, Policy
from difflens.versions.compare import compare
from difflens.versions.metrics import rules
from difflens.versions.pairwise import pairwise_tests
from difflens.versions.records.comparisons import ModelComparisonResult
from difflens.versions.records.snapshots import DifferentialDebuggingConfig as Config

RULES = rules({"f1": 0.0, "loss": 0.0}, Config(), Policy())


def seeded(name, mean, spread=0.01, n=10, seed=0, **given):
    random = np.random.default_rng([seed, ord(name[0])])
    values = np.clip(random.normal(mean, spread, n), 0, 1)
    return snapshot(name, replicates={"val_accuracy": tuple(values.tolist())},
                    metrics={"val_accuracy": None}, **given)  # fmt: skip


def named(*models):
    return {each.name: each for each in models}


def accuracy(result):
    return result.performance_comparison.accuracy_comparison


def test_ten_seeds_give_a_p_value_and_none_gives_none():
    tested = compare(named(seeded("a", 0.9), seeded("b", 0.8))).statistical_analysis
    bare_ones = compare(named(snapshot("a"), snapshot("b"))).statistical_analysis

    key = "val_accuracy: a vs b"
    assert tested.p_values[key] < 0.001
    assert tested.effect_sizes[key] < -1
    assert tested.confidence_intervals[key][1] < 0
    assert tested.significance_summary[key] is True
    assert bare_ones.p_values[key] is bare_ones.significance_summary[key] is None
    assert bare_ones.tests[0].reason.startswith("no repeat measurements")
    assert {each.field for each in bare_ones.missing} >= {"p_values"}


def test_a_difference_of_more_than_a_percent_may_be_noise():
    found = accuracy(compare(named(seeded("a", 0.9, 0.1, n=6), seeded("b", 0.86, 0.1, n=6))))

    assert found.exceeds_practical_threshold[found.worst_model]
    assert found.significant_differences[found.worst_model] is False
    assert found.separated is False


def test_a_smaller_alpha_takes_a_verdict_back():
    models = named(seeded("a", 0.9, 0.03), seeded("b", 0.86, 0.03))
    strict = compare(models, Config(significance_threshold=0.000001))

    assert accuracy(compare(models)).separated is True
    assert accuracy(strict).separated is False
    assert strict.statistical_analysis.level == 0.999999


def test_a_custom_metric_appears_everywhere():
    found = compare(named(snapshot("a", custom={"f1": 0.8}), snapshot("b", custom={"f1": 0.7})))

    assert found.performance_comparison.custom_comparisons["f1"].best_model == "a"
    assert found.summary.rankings["f1"] == ("a", "b")
    assert "f1: a vs b" in found.statistical_analysis.p_values
    assert any(each.text.startswith("f1:") for each in found.summary.findings)


def test_train_and_test_metrics_flops_and_time_are_compared():
    further = {"train_accuracy": 0.9, "test_loss": 0.2, "flops": 100, "training_time_s": 10.0}
    found = compare(named(snapshot("a", metrics=further), snapshot("b", metrics=further)))

    assert set(found.performance_comparison.further_comparisons) == set(further)


def test_a_best_value_of_zero_and_negative_values_have_no_percent():
    zero = compare(named(snapshot("a", metrics={"val_loss": 0.0}), snapshot("b")))
    negative = compare(
        named(snapshot("a", custom={"log_likelihood": -4.0}),
              snapshot("b", custom={"log_likelihood": -2.0}))
    )  # fmt: skip
    loss = zero.performance_comparison.loss_comparison
    likelihood = negative.performance_comparison.custom_comparisons["log_likelihood"]

    assert loss.differences == {"a": None, "b": None}
    assert loss.absolute_differences == {"a": 0.0, "b": 0.3}
    assert likelihood.best_model == "b"
    assert likelihood.differences == {"a": None, "b": None}


def test_differences_are_percent_of_the_best_and_negative_for_the_worse():
    found = compare(named(snapshot("a", metrics={"inference_latency_ms": 40.0}),
                          snapshot("b", metrics={"inference_latency_ms": 50.0})))  # fmt: skip
    latency = found.performance_comparison.latency_comparison

    assert latency.differences == {"a": 0.0, "b": -25.0}
    assert (latency.best_model, latency.worst_model) == ("a", "b")


def test_equal_values_share_a_place_in_the_order_named():
    found = compare(named(snapshot("b"), snapshot("a"), snapshot("c", metrics={"val_loss": 0.1})))

    assert accuracy(found).ranking == (("b", "a", "c"),)
    assert found.summary.ties["val_accuracy"] == (("b", "a", "c"),)
    assert found.performance_comparison.loss_comparison.ranking == (("c",), ("b", "a"))


def test_equal_values_have_no_best_and_no_worst_model():
    found = compare(named(*(bare(name, metrics={"val_accuracy": 0.9}) for name in "abc")))
    metric = accuracy(found)

    assert (metric.best_model, metric.worst_model, metric.separated) == (None, None, False)
    assert metric.ranking == (("a", "b", "c"),)
    assert found.summary.best_model is None
    assert found.summary.ties == {"val_accuracy": (("a", "b", "c"),)}
    assert not found.summary.unexplained()
    assert not metric.unexplained()
    assert found.summary.recommendations == ("a, b, c have the same val_accuracy: it prefers none",)


def test_a_tie_at_the_end_leaves_the_best_model_and_no_worst():
    values = {"a": 0.9, "b": 0.8, "c": 0.8}
    models = (bare(name, metrics={"val_accuracy": each}) for name, each in values.items())
    metric = accuracy(compare(named(*models)))

    assert (metric.best_model, metric.worst_model) == ("a", None)


@pytest.mark.parametrize("tested", [True, False])
def test_no_model_is_chosen_by_a_lead_that_is_not_told_apart(tested):
    """`choose a` and `do not choose by this` never stand beside each other."""
    pair = [seeded("a", 0.900, 0.02), seeded("b", 0.898, 0.02, seed=3)] if tested else [
        bare("a", metrics={"val_accuracy": 0.9}), bare("b", metrics={"val_accuracy": 0.8})
    ]  # fmt: skip
    found = compare(named(*pair)).summary

    assert found.separated is not True
    assert len(found.recommendations) == 1
    assert not found.recommendations[0].startswith("choose")


def test_the_same_snapshot_twice_is_refused():
    with pytest.raises(IncompatibleSnapshots, match="same snapshot, net@1"):
        compare({"one": snapshot(), "two": snapshot()})


def test_one_model_is_no_comparison():
    with pytest.raises(InsufficientData, match="two or more"):
        compare({"one": snapshot()})


def test_models_of_which_nothing_is_known_have_no_best():
    found = compare(named(bare("a"), bare("b")))

    assert found.summary.best_model is None
    assert {each.field for each in found.summary.missing} == {"best_model", "separated"}
    assert found.architecture_diff.similarity_score is None


def test_a_metric_of_unknown_direction_has_a_difference_and_no_winner():
    found = compare(named(snapshot("a", custom={"sparkle": 3.0}),
                          snapshot("b", custom={"sparkle": 4.0})))  # fmt: skip
    sparkle = found.performance_comparison.custom_comparisons["sparkle"]

    assert (sparkle.best_model, sparkle.worst_model, sparkle.ranking) == (None, None, ())
    assert sparkle.absolute_differences == {"a": 0.0, "b": 1.0}
    assert "sparkle" not in found.summary.rankings
    assert any(each.field == "best_model" and "policy" in each.needs for each in sparkle.missing)


def test_the_policy_gives_a_direction_and_a_margin():
    models = named(snapshot("a", custom={"sparkle": 3.0}), snapshot("b", custom={"sparkle": 4.0}))
    policy = Policy(metrics={"sparkle": MetricRule("lower", 2.0)})
    found = compare(models, policy=policy).performance_comparison.custom_comparisons["sparkle"]

    assert found.best_model == "a"
    assert found.exceeds_practical_threshold == {"a": False, "b": False}


def test_every_ranking_is_complete_and_the_summary_is_made_of_numbers():
    found = compare(named(
        snapshot("a", metrics={"val_accuracy": 0.95, "inference_latency_ms": 80.0}),
        snapshot("b", metrics={"val_accuracy": 0.90, "inference_latency_ms": 20.0}),
        snapshot("c", metrics={"val_accuracy": 0.85, "inference_latency_ms": 90.0}),
    )).summary  # fmt: skip

    assert found.rankings["accuracy"] == ("a", "b", "c")
    assert found.rankings["latency"] == ("b", "a", "c")
    assert found.best_model == "a"
    assert found.separated is None
    assert found.pareto_front == ("a", "b")
    assert all(each.evidence["difference"] > each.evidence["margin"] for each in found.findings)


def test_a_model_worse_by_noise_but_ten_times_faster_is_on_the_front():
    slow = seeded("a", 0.900, 0.02)
    fast = seeded("b", 0.898, 0.02, seed=3)
    fast = type(fast).from_dict(
        fast.to_dict() | {"metrics": fast.metrics.to_dict() | {"inference_latency_ms": 5.0}}
    )
    found = compare(named(slow, fast))

    assert set(found.summary.pareto_front) == {"a", "b"}
    assert accuracy(found).separated is False
    assert not [each for each in found.summary.key_findings if each.startswith("val_accuracy")]


def test_models_that_are_not_told_apart_share_a_letter():
    found = accuracy(compare(named(
        seeded("a", 0.95), seeded("b", 0.949, seed=1), seeded("c", 0.80),
    )))  # fmt: skip

    assert found.letters["a"] == found.letters["b"] == "a"
    assert found.letters["c"] == "b"


def test_architectures_without_layers_are_alike_and_not_a_nan():
    empty = {"parameter_count": 0, "layer_count": 0, "hidden_size": 0}
    found = compare(named(bare("a", architecture=empty, metrics={"val_loss": 1.0}),
                          bare("b", architecture=empty, metrics={"val_loss": 1.0})))  # fmt: skip

    assert found.architecture_diff.similarity_score == 1.0


def test_every_pair_and_every_field_of_the_architectures_is_compared():
    found = compare(named(
        snapshot("a"),
        snapshot("b", architecture={**BUILT, "num_heads": 8}),
        snapshot("c", architecture={**BUILT, "hidden_size": 128}),
    )).architecture_diff  # fmt: skip

    assert found.parameter_diff == {"b": 0, "c": 0}
    assert found.similarities["a"]["b"] == pytest.approx(4 / 5)
    assert found.similarities["b"]["c"] == pytest.approx(3.5 / 5)
    assert found.fields["num_heads"] == {"a": None, "b": 8, "c": None}
    assert found.notable_differences == ("c against a: hidden_size 64 -> 128",)


def test_a_small_model_with_a_fifth_more_weights_is_notable():
    found = compare(named(
        snapshot("a", architecture={**BUILT, "parameter_count": 1000}),
        snapshot("b", architecture={**BUILT, "parameter_count": 1200}),
        snapshot("c", architecture={**BUILT, "parameter_count": 1001}),
    )).architecture_diff  # fmt: skip

    assert found.notable_differences == ("b against a: parameter_count 1000 -> 1200",)


def test_different_data_are_shown_and_not_tested():
    models = named(seeded("a", 0.9, evaluation={"fingerprint": "x"}),
                   seeded("b", 0.8, evaluation={"fingerprint": "y"}))  # fmt: skip
    found = compare(models)

    assert accuracy(found).significant_differences["b"] is None
    assert "different data" in found.warnings[0]


def test_three_models_on_several_metrics_are_ranked_and_not_tested():
    """Metrics of one model are no independent tasks: two cannot give a p below 1/6."""
    scores = {"a": 0.9, "b": 0.8, "c": 0.7}
    models = named(*(
        bare(name, metrics={"custom_metrics": {f"f1_{task}": mean + task / 100
                                               for task in range(6)}})
        for name, mean in scores.items()
    ))  # fmt: skip
    ranks = compare(models).statistical_analysis.ranks

    assert ranks.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert (ranks.p, ranks.f, ranks.chi_square, ranks.critical_difference) == (None,) * 4
    assert ranks.groups == ()
    assert "not independent tasks" in ranks.note


def test_examples_of_three_models_give_strengths():
    random = np.random.default_rng(0)
    models = named(*(
        bare(name, evals=examples(random.random(300) < rate))
        for name, rate in (("a", 0.9), ("b", 0.7), ("c", 0.68))
    ))  # fmt: skip
    found = compare(models).statistical_analysis.abilities

    assert found.abilities["a"] > found.abilities["b"]
    assert ("a", "b") in found.apart
    assert not {("b", "c"), ("c", "b")} & set(found.apart)
    assert found.comparisons == 900


def measured(name, accuracy=(), loss=()):
    return bare(name, evals=(*examples(accuracy), *examples(loss, "val_loss")))


def test_a_model_is_not_beaten_by_one_that_is_told_equivalent():
    """The accuracy decides under whatever name; a loss told equivalent beats nobody."""
    random = np.random.default_rng(0)
    loss = random.normal(1, 0.2, 300)
    found = compare(named(
        measured("a", [1] * 243 + [0] * 57, loss + 0.001 + random.normal(0, 0.001, 300)),
        measured("b", [1] * 188 + [0] * 112, loss),
    ))  # fmt: skip
    losses = found.performance_comparison.loss_comparison

    assert found.summary.criterion == "accuracy"
    assert found.summary.best_model == "a"
    assert [point.dominated_by for point in found.summary.pareto] == [(), ("a",)]
    assert {each.word for each in found.statistical_analysis.tests} == {"worse", "equivalent"}
    assert (losses.best_model, losses.worst_model) == (None, None)


def test_equivalent_models_are_not_told_apart_anywhere():
    """A sure difference within the margin: every place of the page says the same."""
    loss = np.random.default_rng(1).normal(1, 0.2, 300)
    noise = np.random.default_rng(2).normal(0, 0.001, 300)
    found = compare(named(measured("a", loss=loss), measured("b", loss=loss + 0.01 + noise)))
    losses, (test,) = found.performance_comparison.loss_comparison, found.statistical_analysis.tests

    assert (test.word, test.significant) == ("equivalent", False)
    assert test.p < 0.001
    assert losses.letters == {"a": "a", "b": "a"}
    assert losses.separated is False
    assert found.summary.best_model is None
    assert "a, b are equivalent in val_loss" in found.summary.recommendations[0]
    assert [point.dominated_by for point in found.summary.pareto] == [(), ()]


def test_one_objective_is_called_the_best_and_nothing_of_any():
    found = compare(named(measured("a", [1] * 280 + [0] * 20), measured("b", [0, 1] * 150)))

    assert found.summary.recommendations == ("choose a: it has the best accuracy",)


@pytest.mark.parametrize("scores", [([3.5] * 200, [3.2] * 200), ([1] * 4, [0] * 4)])
def test_samples_that_allow_no_test_are_not_said_to_be_missing(scores):
    found = compare(named(*(measured(name, each) for name, each in zip("ab", scores, strict=True))))
    missing = [*found.statistical_analysis.missing, *found.summary.missing]

    told = [
        f"{each.needs}: {each.why}" for each in missing if each.field in {"p_values", "separated"}
    ]
    assert told
    assert not any("--eval" in each or "no two models" in each for each in told)


def test_what_is_not_compared_names_what_is_of_its_kind():
    found = compare(named(measured("a", [1] * 20), measured("b", [0, 1] * 10)))
    said = {each.field: each for each in found.performance_comparison.missing}

    assert "accuracy is compared beside it" in said["accuracy_comparison"].why
    assert said["loss_comparison"].needs == "val_loss in --metrics"


def test_ranks_say_which_metrics_count_as_tasks():
    random = np.random.default_rng(3)
    found = compare(named(*(
        measured(name, random.random(50) < 0.8, random.normal(1, 0.2, 50)) for name in "abc"
    )))  # fmt: skip
    why = {each.field: each.why for each in found.statistical_analysis.missing}

    assert "1 (accuracy) counts as a task" in why["ranks"]


def test_the_same_models_give_the_same_bytes():
    models = named(seeded("a", 0.9), seeded("b", 0.8), seeded("c", 0.85))
    when = "2026-01-01T00:00:00Z"

    assert compare(models, timestamp=when).to_json() == compare(models, timestamp=when).to_json()


def test_swapping_two_models_flips_signs_and_keeps_sizes():
    one, other = seeded("a", 0.9), seeded("b", 0.8)
    found, turned = compare(named(one, other)), compare(named(other, one))
    left, right = (each.statistical_analysis.tests[0] for each in (found, turned))

    assert left.difference == -right.difference
    assert left.p == right.p
    assert accuracy(found).best_model == accuracy(turned).best_model


values = st.floats(-10, 10, allow_nan=False).map(lambda value: round(value, 3))


@given(st.lists(st.fixed_dictionaries({"score": values, "sparkle": values}), min_size=2,
                max_size=5))  # fmt: skip
def test_every_comparison_survives_json(rows):
    models = {f"m{at}": bare(f"m{at}", metrics={"custom_metrics": row})
              for at, row in enumerate(rows)}  # fmt: skip
    found = compare(models, policy=Policy(metrics={"score": MetricRule("higher")}))

    assert ModelComparisonResult.from_json(found.to_json()) == found
    scores = {name: each.metrics.custom_metrics["score"] for name, each in models.items()}
    first = [name for name, score in scores.items() if score == max(scores.values())]
    best = found.performance_comparison.custom_comparisons["score"].best_model
    assert best == (first[0] if len(first) == 1 else None)


@replicates
def test_all_tests_of_a_comparison_together_keep_five_percent(repeats):
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(repeats):
        models = {
            name: bare(name, replicates={metric: tuple(random.normal(size=6).tolist())
                                         for metric in ("f1", "loss")})
            for name in "abc"
        }  # fmt: skip
        tests = pairwise_tests(models, RULES, Config()).tests
        assert len(tests) == 6
        alarms += any(each.significant for each in tests)

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
