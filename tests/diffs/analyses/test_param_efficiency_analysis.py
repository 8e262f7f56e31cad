from math import log2

import numpy as np
import pytest
from diffs.analyses.small import decoder
from scipy.stats import ttest_rel

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Example, Side
from difflens.diffs.story import diff


def efficiency(left, right, evidence=None, **thresholds):
    policy = Policy({"param_efficiency_analysis": thresholds})
    return analyse("param_efficiency_analysis", diff(left, right), evidence or Evidence(), policy)


def metrics(left, right):
    return Evidence(left=Side(metrics=left), right=Side(metrics=right))


def test_a_gain_is_told_by_doubling_of_the_parameters():
    left, right = decoder(2), decoder(6)
    counts = [sum(value.size for value in model.values()) for model in (left, right)]

    envelope = efficiency(left, right, metrics({"accuracy": 0.5}, {"accuracy": 0.6}))

    doublings = log2(counts[1] / counts[0])
    assert envelope.fields["efficiency_ratio"]["accuracy"] == pytest.approx(0.1 / doublings)


def test_swapping_the_sides_keeps_the_gain_a_doubling():
    there = efficiency(decoder(2), decoder(4), metrics({"loss": 2.0}, {"loss": 1.0}))
    back = efficiency(decoder(4), decoder(2), metrics({"loss": 1.0}, {"loss": 2.0}))

    assert there.fields["efficiency_ratio"] == pytest.approx(back.fields["efficiency_ratio"])


def test_paired_examples_give_the_gain_an_interval():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 50))
    sides = [
        Side(evals=tuple(Example(str(i), score) for i, score in enumerate(scores)))
        for scores in (left, right)
    ]
    models = decoder(2), decoder(4)
    doublings = log2(
        sum(value.size for value in models[1].values())
        / sum(value.size for value in models[0].values())
    )

    envelope = efficiency(*models, Evidence(left=sides[0], right=sides[1]))

    low, high = ttest_rel(right, left).confidence_interval(0.95)
    found = envelope.uncertainty["efficiency_ratio"]
    assert (found.low, found.high) == pytest.approx((low / doublings, high / doublings))


def test_models_of_one_size_have_no_gain_a_doubling():
    envelope = efficiency(decoder(), decoder(seed=1), metrics({"loss": 2.0}, {"loss": 1.0}))

    assert envelope.fields["efficiency_ratio"] is None
    assert envelope.fields["pareto"] == {"loss": "right dominates left"}


@pytest.mark.parametrize(
    ("layers", "loss", "statement"),
    [
        ((4, 2), (1.0, 0.9), "right dominates left"),
        ((2, 4), (1.0, 1.1), "left dominates right"),
        ((2, 4), (1.0, 0.9), "trade-off"),
        ((2, 2), (1.0, 1.0), "equal"),
    ],
)
def test_the_pareto_statement_needs_all_costs_and_the_metric(layers, loss, statement):
    models = [decoder(count) for count in layers]

    envelope = efficiency(*models, metrics({"loss": loss[0]}, {"loss": loss[1]}))

    assert envelope.fields["pareto"] == {"loss": statement}


def test_weights_alone_give_proxies_and_no_category():
    envelope = efficiency(decoder(), decoder())

    assert envelope.fields["utilization"]["proxy"] is True
    assert envelope.fields["efficiency_ratio"] is envelope.fields["category"] is None


def test_a_matrix_of_low_rank_is_used_less():
    random = np.random.default_rng(0)
    whole = random.normal(size=(128, 128)).astype(np.float32)
    low = (random.normal(size=(128, 8)) @ random.normal(size=(8, 128))).astype(np.float32)

    found = efficiency({"a.weight": whole}, {"a.weight": low}).fields["utilization"]

    assert found["left"] == pytest.approx(1, abs=0.02)
    assert found["right"] == pytest.approx(8 / (0.804 * 128), rel=0.05)


def test_no_more_matrices_are_looked_at_than_the_policy_says():
    envelope = efficiency(decoder(4), decoder(4), matrices=3)

    assert [len(table) for table in envelope.fields["matrices"].values()] == [3, 3]


def test_only_experts_that_are_reached_are_active():
    model = {
        "layers.0.mlp.experts.up_proj": np.ones((8, 16, 16), np.float32),
        "layers.0.self_attn.q_proj.weight": np.ones((16, 16), np.float32),
    }
    side = Side(config={"num_local_experts": 8, "num_experts_per_tok": 2})

    known = efficiency(model, model, Evidence(left=side, right=side)).fields
    unknown = efficiency(model, model).fields

    assert known["active_parameters"]["left"] == 16 * 16 + 2 * 16 * 16
    assert unknown["active_parameters"] is None
