import lanes
import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.scores import correct, evals, examples, latencies, rules
from diffs.analyses.small import changed, decoder, nudged
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from simulation import near, replicates

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import ask
from difflens.diffs.analyses.risk_assessment import chances
from difflens.diffs.evidence.records import Evidence, Past, Side
from difflens.diffs.methods.factors import LEVELS, highest, stepped
from difflens.diffs.story import diff

NAME = "risk_assessment"
MODEL = decoder(layers=3, width=16)
TUNED = changed(MODEL, lambda value: value * np.float32(1.001), "mlp")
SAFE = rules(accuracy=MetricRule(margin=0.05))


def good() -> Evidence:
    return evals(*correct(np.random.default_rng(0), 2000, 0.8, 0.02, 0.02))


def asked(right=None, evidence=None, policy=SAFE, left=MODEL):
    return ask(NAME, diff(left, TUNED if right is None else right), evidence or Evidence(), policy)


def levels(envelope):
    return {each["name"]: each["level"] for each in envelope.fields["factors"]}


def test_a_change_that_nobody_evaluated_is_an_unknown_risk():
    envelope = asked()

    assert envelope.fields["overall_risk_level"] == "unknown"
    assert "quality" in {each["factor"] for each in envelope.fields["unknowns"]}
    assert all(each["needs"] for each in envelope.fields["unknowns"])


def test_the_same_weights_are_no_worse_and_no_finding():
    envelope = asked(MODEL)

    assert levels(envelope)["quality"] == "low"
    assert envelope.fields["overall_risk_level"] == "low"
    assert envelope.findings == ()


def test_a_small_change_with_a_passed_evaluation_is_a_low_risk_but_for_what_is_open():
    envelope = asked(evidence=good())

    assert levels(envelope)["quality"] == "low"
    assert envelope.fields["overall_risk_level"] == "low"
    assert levels(envelope)["coverage"] == "unknown"  # latency, settings, tokens: not given


def test_the_level_is_the_highest_of_the_factors():
    right = dict(TUNED)
    right["lm_head.weight"] = right["lm_head.weight"].copy()
    right["lm_head.weight"][0, 0] = np.nan
    envelope = asked(right, good())

    assert levels(envelope)["anomalies"] == "critical"
    assert envelope.fields["overall_risk_level"] == "critical"
    assert envelope.fields["factors"][0]["name"] == "anomalies"
    assert "anomalies" in {each["factor"] for each in envelope.fields["mitigations"]}


@pytest.mark.parametrize(
    ("scale", "level"), [(1.001, "low"), (1.05, "medium"), (1.5, "high"), (3.0, "critical")]
)
def test_the_size_of_a_change_has_its_steps(scale, level):
    right = changed(MODEL, lambda value: value * np.float32(scale), "mlp")

    assert levels(asked(right))["magnitude"] == level


def test_storage_rounding_is_a_small_change_whatever_its_size():
    right = {name: value.astype(ml_dtypes.bfloat16) for name, value in MODEL.items()}
    envelope = asked(right)

    assert levels(envelope)["magnitude"] == "low"
    assert levels(envelope)["precision"] == "medium"


def test_fewer_than_sixteen_bits_are_a_high_risk():
    right = {name: value.astype(ml_dtypes.float8_e4m3fn) for name, value in MODEL.items()}

    assert levels(asked(right))["precision"] == "high"


def test_a_change_larger_than_all_before_is_unusual():
    past = tuple(Past(f"v{i}", "relative_l2", 1e-5) for i in range(10))
    envelope = asked(evidence=Evidence(history=past))

    assert levels(envelope)["magnitude"] == "high"
    (factor,) = [each for each in envelope.fields["factors"] if each["name"] == "magnitude"]
    assert factor["evidence"]["above_share_of_past"] == 1


def test_tensors_that_came_or_went_are_a_risk():
    right = {name: value for name, value in TUNED.items() if "layers.2" not in name}
    more = TUNED | {"adapter.weight": np.ones(3, np.float32)}

    assert levels(asked(right))["structure"] == "high"
    assert levels(asked(more))["structure"] == "medium"
    assert levels(asked())["structure"] == "low"


@pytest.mark.parametrize(
    ("tokens", "special", "level"),
    [
        ({"a": 0, "b": 1}, {"a": 0}, "low"),
        ({"a": 0, "b": 1, "c": 2}, {"a": 0}, "medium"),
        ({"a": 0}, {"a": 0}, "medium"),
        ({"a": 1, "b": 0}, {"a": 0}, "high"),
        ({"a": 0, "b": 1}, {"a": 1}, "high"),
        (None, None, "unknown"),
    ],
)
def test_tokens_at_other_rows_are_worse_than_new_ones(tokens, special, level):
    left = Side(tokens={"a": 0, "b": 1}, special_tokens={"a": 0})
    right = Side(tokens=tokens, special_tokens=special)

    assert levels(asked(evidence=Evidence(left=left, right=right)))["vocabulary"] == level


def test_a_model_without_words_has_no_risk_of_vocabulary():
    model = {"conv.weight": np.ones((4, 3, 3, 3), np.float32)}

    assert levels(asked(model, left=model))["vocabulary"] == "low"


def test_strangers_are_a_risk_where_that_can_be_told():
    big = decoder(layers=4, width=48, seed=1)
    other = decoder(layers=4, width=48, seed=2)

    assert levels(asked(other, left=big))["lineage"] == "high"
    assert levels(asked(changed(big, nudged, "mlp"), left=big))["lineage"] == "low"


def test_a_sure_loss_is_a_high_risk_and_one_that_is_open_a_medium_one():
    worse = evals(*correct(np.random.default_rng(0), 2000, 0.8, 0.2, 0.02))
    few = evals(*correct(np.random.default_rng(0), 40, 0.8, 0.05, 0.05))

    assert levels(asked(evidence=worse))["quality"] == "high"
    assert levels(asked(evidence=few))["quality"] == "medium"
    assert levels(asked(evidence=good(), policy=Policy()))["quality"] == "medium"


def test_the_user_says_what_must_be_known():
    policy = Policy(thresholds={NAME: {"required": ["structure"]}})

    assert asked(policy=policy).fields["overall_risk_level"] != "unknown"


def test_probabilities_are_there_only_where_they_were_computed():
    assert asked().fields["probabilities"] is None
    assert "--eval-left/--eval-right" in {
        each.needs.partition(" ")[0] for each in asked().missing
    }  # fmt: skip
    told = asked(evidence=good()).fields["probabilities"]["accuracy"]
    assert told["margin"] == 0.05
    assert told["probability"] < 0.01


def test_headers_alone_do_not_tell_how_far_it_moved():
    envelope = ask(NAME, diff(MODEL, TUNED, shape_only=True))

    assert levels(envelope)["magnitude"] == levels(envelope)["anomalies"] == "unknown"
    assert envelope.findings == ()


def test_unknown_is_worse_than_medium_and_better_than_high():
    assert LEVELS == ("low", "medium", "unknown", "high", "critical")
    assert highest(["medium", "unknown"]) == "unknown"
    assert highest(["high", "unknown"]) == "high"
    assert [stepped(value, [0.1, 1]) for value in (0, 0.1, 1)] == ["low", "medium", "high"]


def probability(left, right, margin=0.0, **how):
    (found,) = chances(
        evals(left, right, **how), rules(accuracy=MetricRule(margin=margin)), 1999, 0
    )
    return found.probability


@replicates
def test_the_probability_of_a_loss_is_uniform_where_there_is_none(repeats):
    """Under a flat prior P(loss > 0) of a true zero is any value, each as often."""
    random = np.random.default_rng(1)
    found = [
        probability(left, left + random.normal(0, 0.1, 40))
        for left in random.normal(0.7, 0.1, (repeats, 40))
    ]

    for level in (0.1, 0.5, 0.9):
        assert near(float(np.mean(np.array(found) < level)), level, repeats, slack=0.02)


def test_a_probability_is_that_of_the_normal_law_where_examples_are_many():
    random = np.random.default_rng(2)
    left = random.normal(0.7, 0.1, 400)
    moves = random.normal(0, 0.1, 400)
    moves += -0.005 - moves.mean()  # the mean loss is half a point, its error too
    moves = (moves + 0.005) * 0.1 / moves.std() - 0.005

    assert probability(left, left + moves) == pytest.approx(0.841, abs=0.03)
    assert probability(left, left + moves, margin=0.005) == pytest.approx(0.5, abs=0.03)


def test_whole_clusters_are_drawn():
    random = np.random.default_rng(3)
    left = random.normal(0.7, 0.1, 300)
    right = left - np.repeat(random.normal(0.02, 0.1, 20), 15)
    clusters = [f"c{i // 15}" for i in range(300)]

    alone, together = probability(left, right), probability(left, right, clusters=clusters)
    assert abs(together - 0.5) < abs(alone - 0.5)


def test_a_different_config_is_no_longer_the_same_model():
    evidence = replace(Evidence(), left=Side(config={"a": 1}), right=Side(config={"a": 2}))

    assert levels(asked(MODEL, evidence))["quality"] == "unknown"


_SCORES = correct(np.random.default_rng(0), 40, 0.8, 0.0, 0.0)[0]
_TOKENS = {"a": 0, "b": 1}
HARMLESS = {
    "config": Side(config={"layers": 3}),
    "metrics": Side(metrics={"accuracy": 0.8, "score": 1.0}),
    "evals": Side(evals=examples(_SCORES)),
    "evals of a metric nobody knows": Side(evals=examples(_SCORES, metric="zest")),
    "latency": Side(latency=latencies([3.0] * 40, [3.0] * 40).left.latency),
    "tokens": Side(tokens=_TOKENS, special_tokens={"a": 0}),
    "step": Side(step=7),
    "licence": Side(licence="mit"),
}


def beside(parts, sides=("left", "right")):
    """Hand in the parts named, the same ones on both sides."""
    fields = {}
    for part in parts:
        given = HARMLESS[part]
        known = {name: getattr(given, name) for name in given.__struct_fields__}
        fields |= {name: value for name, value in known.items() if value}
    return Evidence(**dict.fromkeys(sides, Side(**fields)))


@pytest.mark.long
@pytest.mark.parametrize("right", [MODEL, TUNED], ids=["same bits", "tuned"])
@pytest.mark.parametrize("policy", [Policy(), SAFE], ids=["no margin", "margin"])
@lanes.examples(25)
@given(parts=st.sets(st.sampled_from(sorted(HARMLESS))))
def test_evidence_that_shows_no_difference_never_raises_the_risk(right, policy, parts):
    alone = asked(right, Evidence(), policy)
    with_it = asked(right, beside(parts), policy)

    ranks = [LEVELS.index(each.fields["overall_risk_level"]) for each in (alone, with_it)]
    assert ranks[1] <= ranks[0]


@pytest.mark.parametrize("part", sorted(HARMLESS))
@pytest.mark.parametrize("sides", [("left", "right"), ("left",), ("right",)], ids="-".join)
def test_bit_equal_files_are_a_low_risk_whatever_lies_beside_them(part, sides):
    envelope = asked(MODEL, beside([part], sides), Policy())

    assert envelope.fields["overall_risk_level"] == "low"


def test_bit_equal_files_with_a_sure_loss_are_a_high_risk():
    evidence = evals(np.ones(200), np.zeros(200))

    assert asked(MODEL, evidence).fields["overall_risk_level"] == "high"


def test_how_far_models_moved_that_share_no_parameter_is_unknown():
    other = {"beta.weight": np.ones((32, 48), np.float32)}

    assert levels(asked(other))["magnitude"] == "unknown"
