"""Groups by depth and by block: every number computed, directions by the sign of the lag."""

from typing import get_args

import numpy as np
import pytest
from simulation import replicates
from training.gradients.layer_cases import noise

from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.hierarchy import _largest, block_of
from difflens.training.gradients.levels import whitened
from difflens.training.gradients.signals import signals_of_histories
from difflens.training.records.gradients import InteractionDirection, OptimizationDifficulty


def grouped(histories, **how):
    return GradientAnalyzer("comprehensive", **how).analyze_gradients(histories).gradient_hierarchy


def following(lag: int, n: int = 300) -> dict[str, np.ndarray]:
    """Nine layers in three levels; the last moves as the first, `lag` records later."""
    random = np.random.default_rng(5)
    common = random.normal(size=n + 20)
    layers = {}
    for i in range(9):
        delay = lag if i >= 6 else 0
        shared = common[10 - delay : 10 - delay + n] if i < 3 or i >= 6 else 0
        layers[f"layer{i}"] = np.exp(0.3 * shared + 0.1 * random.normal(size=n))
    return layers


def named(found, name):
    return next(each for each in found.layer_groups if each.group_name == name)


def test_layers_are_grouped_by_depth_and_by_block():
    """DC-27: the reference groups by cut-offs of the norm, 0.1 and 1."""
    names = [f"net.{block}.{part}.weight" for block in range(3) for part in ("a", "b")]
    found = grouped({name: noise(seed=i) for i, name in enumerate(names)})

    assert {each.group_name: each.layers for each in found.layer_groups} == {
        "input third": ("net.0.a.weight", "net.0.b.weight"),
        "middle third": ("net.1.a.weight", "net.1.b.weight"),
        "output third": ("net.2.a.weight", "net.2.b.weight"),
        "block net.0": ("net.0.a.weight", "net.0.b.weight"),
        "block net.1": ("net.1.a.weight", "net.1.b.weight"),
        "block net.2": ("net.2.a.weight", "net.2.b.weight"),
    }
    assert [each.layer_groups for each in found.hierarchy_levels] == [
        ("input third", "block net.0"),
        ("middle third", "block net.1"),
        ("output third", "block net.2"),
    ]


@pytest.mark.parametrize(
    ("name", "block"),
    [("h.11.attn.weight", "h.11"), ("0.weight", "0"), ("conv1.weight", "conv1"), ("fc", "fc")],
)
def test_a_block_is_the_path_up_to_its_number(name, block):
    assert block_of(name) == block


def test_the_numbers_of_a_group_are_those_of_its_members():
    """DC-27: 2.0, 0.8, 0.9 and 0.7 were constants."""
    layers = {f"layer{i}": (i + 1) * noise(seed=i) for i in range(6)}
    found = grouped(layers)
    first = named(found, "input third").group_characteristics

    assert first.average_gradient_norm == pytest.approx(
        np.mean([layers["layer0"].mean(), layers["layer1"].mean()])
    )
    energy = np.array([np.median(layers[f"layer{i}"]) ** 2 for i in range(6)])
    assert [each.level_importance for each in found.hierarchy_levels] == pytest.approx(
        (energy.reshape(3, 2).sum(axis=1) / energy.sum()).tolist()
    )


def test_layers_that_move_as_one_are_coherent_and_others_are_not():
    random = np.random.default_rng(2)
    shared = random.normal(size=300)
    together = {f"a.{i}": np.exp(0.3 * shared + 0.05 * random.normal(size=300)) for i in range(3)}
    apart = {f"b.{i}": noise(300, seed=9 + i) for i in range(6)}

    found = grouped(together | apart)

    close, loose = named(found, "input third"), named(found, "middle third")
    assert close.internal_coherence > 0.9
    assert close.group_characteristics.gradient_synchronization > 0.9
    assert loose.coherence_interval.low < 0 < loose.coherence_interval.high
    loosely = loose.group_characteristics
    assert loosely.gradient_synchronization < 1.3 * loosely.synchronization_of_noise


@replicates
def test_the_coherence_of_unrelated_layers_covers_zero(repeats):
    from difflens.training.gradients.hierarchy import _coherence

    random = np.random.default_rng(11)
    held = 0
    for _ in range(repeats):
        steps = random.normal(size=(150, 4))
        for t in range(1, 150):
            steps[t] += 0.8 * steps[t - 1]  # memory that would fool a plain correlation
        given_in = {f"layer{i}": np.exp(0.1 * column) for i, column in enumerate(steps.T)}
        common = whitened(signals_of_histories(given_in).layers)
        _, sure = _coherence(common.columns)
        held += sure.low <= 0 <= sure.high

    assert held / repeats > 0.9


@pytest.mark.parametrize(
    ("lag", "direction"), [(2, "BottomUp"), (-2, "TopDown"), (0, "Bidirectional")]
)
def test_the_level_that_moves_first_gives_the_direction(lag, direction):
    """DC-27, DX-10: the reference lists no interaction of levels at all."""
    interactions = grouped(following(lag)).cross_level_interactions

    found = next(each for each in interactions if (each.from_level, each.to_level) == (0, 2))
    assert found.interaction_direction == direction
    assert found.lag == lag
    assert found.q < 0.01
    assert direction in get_args(InteractionDirection)


@replicates
def test_levels_of_noise_do_not_interact(repeats):
    from difflens.training.gradients.levels import cross_level

    random = np.random.default_rng(13)
    alarms = 0
    for _ in range(repeats):
        given_in = {f"layer{i}": np.exp(random.normal(size=100)) for i in range(3)}
        common = whitened(signals_of_histories(given_in).layers)
        alarms += bool(cross_level([["layer0"], ["layer1"], ["layer2"]], common))

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


DEAD = [0.0] * 200


@pytest.mark.parametrize(
    ("members", "word"),
    [
        ([noise(), noise(seed=1)], "Easy"),
        ([noise(sigma=2.0), noise(seed=1)], "Moderate"),
        ([DEAD, noise(), noise(seed=1)], "Difficult"),
        ([DEAD, noise()], "VeryDifficult"),
    ],
    ids=get_args(OptimizationDifficulty),
)
def test_difficulty_follows_measured_health(members, word):
    """DC-27, DX-10: low norms were Easy in the reference, also where they vanish."""
    found = grouped({f"block.0.{i}": norms for i, norms in enumerate(members)})

    assert named(found, "block block.0").group_characteristics.optimization_difficulty == word


def test_a_norm_that_is_not_finite_falls_into_a_group_all_the_same():
    """DC-27: NaN means fall into no group of the reference."""
    found = grouped({"a": [np.nan] * 30, "b": noise(), "c": noise(seed=1)})

    assert sorted(name for each in found.layer_groups for name in each.layers) == ["a", "b", "c"]


def test_sensitivity_and_impact_are_not_made_up():
    found = grouped({f"layer{i}": noise(seed=i) for i in range(6)})

    for group in found.layer_groups:
        assert group.group_characteristics.learning_rate_sensitivity is None
        assert group.group_characteristics.unexplained() == []
    for level in found.hierarchy_levels:
        assert level.optimization_impact is None
        assert level.unexplained() == []


def test_a_layer_with_other_records_is_left_out_of_correlations_only():
    layers = {"a": noise(100), "b": noise(100, seed=1), "c": noise(40, seed=2)}

    assert whitened(signals_of_histories(layers).layers).names == ("a", "b")


@pytest.mark.parametrize("columns", [2, 64, 65, 300])
@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_the_largest_eigenvalue_alone_is_that_of_all(columns, shared):
    random = np.random.default_rng(columns)
    values = random.normal(size=(200, columns)) + shared * random.normal(size=(200, 1))
    gram = values.T @ values

    assert _largest(gram) == pytest.approx(np.linalg.eigvalsh(gram)[-1], rel=1e-10)
    assert _largest(gram) == _largest(gram.copy())
