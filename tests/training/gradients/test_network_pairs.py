"""Pairs of layers: a screen over all, with the words that norms can earn and no others."""

import numpy as np
import pytest
from simulation import replicates
from training.gradients.network_cases import analysed, noise, run

from difflens.training.gradients.distribution import co_moving
from difflens.training.gradients.series import totals
from difflens.training.gradients.signals import LayerSignal
from difflens.training.records.network import InteractionType


def related(sign=1.0, n=400):
    """Layers of which the first two share their noise, up to a sign."""
    signals = run(layers=4, n=n)
    steps = signals.steps
    shared = 0.3 * noise(np.random.default_rng(9), 0.3, n)[:, 0]
    course = np.exp(-steps / 300)
    pair = tuple(
        LayerSignal(f"pair.{i}", steps, course * np.exp(factor * shared + own))
        for i, (factor, own) in enumerate(
            zip((1.0, sign), 0.1 * noise(np.random.default_rng(8), 0.3, n, 2).T, strict=True)
        )
    )
    return signals._replace(layers=(*pair, *signals.layers))


@pytest.mark.parametrize(("sign", "word"), [(1.0, "co_moving"), (-1.0, "counter_moving")])
def test_layers_that_share_their_noise_are_found(sign, word):
    found = analysed(related(sign), "comprehensive")
    first = found.layer_interactions[0]

    assert (first.layer1, first.layer2, first.movement) == ("pair.0", "pair.1", word)
    assert first.q_value <= 0.05
    assert first.interaction_strength == abs(first.correlation)
    assert first.interval.low < first.correlation < first.interval.high
    assert found.pairs_tested == 15


def test_nobody_is_cooperative_by_norms_alone():
    """DC-25: the reference calls all pairs of short histories cooperative (DC-03)."""
    first = analysed(related(), "comprehensive").layer_interactions[0]
    reasons = {each.field: each for each in first.missing}

    assert first.interaction_type is None
    assert "cosines" in reasons["interaction_type"].needs
    assert first.impact_score is None


@replicates
def test_layers_that_only_share_the_course_of_training_are_not_paired(repeats):
    """DC-25"""
    found = 0
    for seed in range(repeats // 3):
        signals = run(layers=6, phi=0.9, n=200, seed=seed, scatter=0.1)
        found += bool(co_moving(totals(signals)).interactions)

    assert found / (repeats // 3) <= 0.05 + 3 * (0.05 * 0.95 / (repeats // 3)) ** 0.5


def test_directions_earn_the_words_of_the_reference():
    """DX-10: each word has a condition."""
    random = np.random.default_rng(2)
    cosines = {
        ("layer.0", "layer.1"): 0.4 + 0.1 * random.standard_normal(60),
        ("layer.0", "layer.2"): -0.4 + 0.1 * random.standard_normal(60),
        ("layer.1", "layer.2"): 0.1 * random.standard_normal(60),
    }
    found = analysed(run(), "comprehensive", directions=cosines).layer_interactions

    assert [each.interaction_type for each in found] == list(
        map(InteractionType, ("Cooperative", "Competitive", "Neutral"))
    )
    assert found[0].direction_cosine == pytest.approx(0.4, abs=0.05)
    assert found[0].movement == "none"


def test_what_the_global_norm_explains_is_told_by_experts_alone():
    deep, wide = (
        analysed(related(), depth).layer_interactions[0] for depth in ("expert", "comprehensive")
    )

    assert deep.partial_correlation is not None
    assert wide.partial_correlation is None


def test_pairs_come_in_one_order_and_are_at_most_twenty():
    """DX-01"""
    signals = run(layers=12)
    shared = np.exp(0.5 * np.random.default_rng(3).standard_normal(400))
    layers = tuple(each._replace(norms=each.norms * shared) for each in signals.layers)
    found = analysed(signals._replace(layers=layers), "comprehensive")

    assert len(found.layer_interactions) == 20
    assert found.pairs_co_moving > 20
    again = analysed(signals._replace(layers=layers), "comprehensive")
    assert found.to_json() == again.to_json()


def test_too_few_points_say_so():
    found = analysed(run(n=40), "comprehensive")

    assert found.layer_interactions == ()
    assert any("50 points" in each for each in found.notes)
