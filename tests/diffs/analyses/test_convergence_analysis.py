import json

import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged
from diffs.analyses.trajectories import (
    cycle,
    geometric,
    line,
    runaway,
    squares,
    stationary,
    trajectory,
    walk,
)
from hypothesis import given
from hypothesis import strategies as st
from simulation import replicates

from difflens.core.policy import Policy
from difflens.diffs.analyses import ask
from difflens.diffs.analyses.convergence_analysis import action
from difflens.diffs.evidence.records import Evidence, Log, Trajectory
from difflens.diffs.story import diff

MODEL = decoder()
TUNED = changed(MODEL, nudged, "mlp")
PAIR = diff(MODEL, TUNED)
CONSTANT = Log({"learning_rate": tuple((10.0 * at, 1e-3) for at in range(200))})


def convergence(path=None, log=None):
    return ask("convergence_analysis", PAIR, Evidence(trajectory=path, log=log), Policy())


@pytest.mark.parametrize(
    ("path", "cosine", "tolerance"),
    [
        (line, 1.0, 1e-9),
        (geometric, 1.0, 1e-9),
        (walk, 0.0, 0.01),
        (stationary, -0.5, 0.01),
        (cycle, -1.0, 1e-9),
    ],
)
def test_successive_moves_turn_as_the_path_does(path, cosine, tolerance):
    fields = convergence(trajectory(path)).fields

    assert fields["cos_successive"] == pytest.approx(cosine, abs=tolerance)


@pytest.mark.parametrize(
    ("path", "exponent", "tolerance"), [(line, 2.0, 1e-9), (walk, 1.0, 0.02), (stationary, 0, 0.01)]
)
def test_displacement_grows_with_time_as_the_path_does(path, exponent, tolerance):
    fields = convergence(trajectory(path)).fields

    assert fields["msd_exponent"] == pytest.approx(exponent, abs=tolerance)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (line, "stable"),
        (walk, "stable"),
        (stationary, "converged"),
        (cycle, "oscillating"),
        (runaway, "diverging"),
    ],
)
def test_the_status_names_the_motion(path, status):
    envelope = convergence(trajectory(path, seed=2), CONSTANT)

    assert envelope.fields["status"] == status
    assert bool(envelope.findings) is (status == "diverging")


@pytest.mark.parametrize("path", [stationary, lambda *how: 0.001 * geometric(*how)])
def test_without_a_learning_rate_nothing_is_called_converged(path):
    near = trajectory(path, origin=1.0, seed=2)

    assert convergence(near, CONSTANT).fields["status"] == "converged"
    blind = convergence(near)
    assert blind.fields["status"] == "slowing"
    assert blind.fields["lr_confounded"] is True
    assert any("annealed" in line for line in blind.assumptions)


def test_moves_that_shrink_only_as_the_learning_rate_does_have_not_slowed():
    steps = tuple(100.0 * at for at in range(9))
    rates = tuple((float(step), 1e-3 * 0.5 ** (step / 100)) for step in range(0, 801, 10))
    path = trajectory(_annealed, points=9, steps=steps)

    blind, told = convergence(path), convergence(path, Log({"learning_rate": rates}))

    assert blind.fields["decay_rate"] == pytest.approx(0.5, rel=1e-6)
    assert told.fields["decay_rate"] == pytest.approx(1, rel=1e-3)
    assert told.fields["lr_confounded"] is False


def _annealed(random, points, size):
    return (1 - 0.5 ** np.arange(points))[:, None] * random.normal(size=size)


def test_what_remains_of_a_geometric_approach_is_what_it_lacks():
    path = trajectory(geometric, points=8)
    whole = np.sqrt(sum(each[0][-1] for each in path.distances.values())) / (1 - 0.6**7)

    remaining = convergence(path).fields["remaining_distance"]

    assert remaining == pytest.approx(whole * 0.6**7, rel=1e-6)


def test_a_path_that_does_not_slow_has_no_end_to_tell():
    envelope = convergence(trajectory(runaway))

    assert envelope.fields["remaining_distance"] is None
    assert "remaining_distance" in {each.field for each in envelope.missing}


def test_new_nans_are_a_divergence():
    path = trajectory(line, nonfinite=(0,) * 9 + (3,))
    masked = trajectory(line, nonfinite=(3,) * 10)

    assert convergence(path).fields["status"] == "diverging"
    assert convergence(masked).fields["status"] == "stable"


@pytest.mark.parametrize(("points", "p"), [(4, "0.333"), (5, "0.0833")])
def test_few_checkpoints_are_said_to_show_no_trend(points, p):
    envelope = convergence(trajectory(runaway, points=points))

    assert envelope.fields["status"] == "stable"
    assert f"{points - 1} moves cannot show a trend" in envelope.assumptions[0]
    assert p in envelope.assumptions[0]


def test_two_checkpoints_tell_only_how_evenly_tensors_moved():
    envelope = convergence()

    assert envelope.fields["status"] is None
    assert {each.needs for each in envelope.missing} == {"--checkpoint"}
    assert envelope.fields["stability_basis"] == "across_tensors"
    moved = [np.linalg.norm((TUNED[name] - MODEL[name]).astype(float))
             / np.linalg.norm(MODEL[name].astype(float)) for name in MODEL
             if (TUNED[name] != MODEL[name]).any()]  # fmt: skip
    assert envelope.fields["stability"] == pytest.approx(np.var(moved, ddof=1), rel=1e-4)


def test_stability_is_the_spread_of_the_moves():
    path = trajectory(geometric, points=6)
    sizes = 0.6 ** np.arange(5)

    fields = convergence(path).fields

    expected = np.var(sizes / sizes.mean(), ddof=1)
    assert fields["stability"] == pytest.approx(expected, rel=1e-9)
    assert [each["norm"] for each in fields["update_norms"]] == pytest.approx(
        fields["update_norms"][0]["norm"] * sizes, rel=1e-9
    )


def test_a_frozen_tensor_changes_no_figure_and_no_interval():
    path = trajectory(walk, points=7)
    still = {"frozen": squares(np.ones((7, 3)))} | dict(path.distances)
    norms = {"frozen": (3.0,) * 7} | dict(path.norms)
    beside = Trajectory(path.points, path.steps, still, norms, path.nonfinite)

    plain, more = convergence(path), convergence(beside)

    assert more.fields == plain.fields
    assert more.uncertainty == plain.uncertainty


@given(st.permutations(range(8)), st.sampled_from([0.25, 8.0]))
def test_names_and_a_common_scale_do_not_matter(order, scale):
    path = trajectory(walk, points=7, size=50)
    names = list(path.distances)
    renamed = {f"other.{names[at]}": tuple(tuple(scale * each for each in row) for row in
               path.distances[names[at]]) for at in order}  # fmt: skip
    norms = {f"other.{name}": tuple(scale * each for each in path.norms[name]) for name in names}
    other = Trajectory(path.points, path.steps, renamed, norms, path.nonfinite)

    plain, told = convergence(path), convergence(other)

    assert told.fields["status"] == plain.fields["status"]
    for field in ("cos_successive", "msd_exponent", "decay_rate", "stability"):
        assert told.fields[field] == pytest.approx(plain.fields[field], rel=1e-9)


def test_without_any_move_there_is_nothing_to_call():
    envelope = convergence(trajectory(lambda _random, points, size: np.ones((points, size))))

    assert envelope.status == "not_enough_information"
    assert envelope.findings == ()


@pytest.mark.parametrize("status", ["diverging", "oscillating", "converged", "slowing", "stable"])
def test_the_action_follows_the_loss_where_there_is_one(status):
    told = {action(status, word) for word in ("improving", "degrading", "stable")}
    blind = action(status, None)

    assert len(told) == 3
    assert blind not in told
    assert blind.startswith("look at")
    assert action(status, "inconclusive") == blind


def test_the_loss_of_the_log_is_read_over_the_checkpoints():
    losses = tuple((float(step), 3 - step / 500 + 0.01 * (step % 3)) for step in range(0, 901, 10))

    envelope = convergence(trajectory(line), Log({"loss": losses}))

    assert envelope.fields["loss_trend"] == "improving"
    assert envelope.fields["action"] == action("stable", "improving")


@replicates
def test_noise_about_a_point_is_called_so_and_a_walk_is_not(repeats):
    noise = walks = 0
    for seed in range(repeats):
        how = {"points": 8, "tensors": 12, "size": 50, "seed": seed}
        noise += (
            convergence(trajectory(stationary, **how), CONSTANT).fields["status"] == "converged"
        )
        walks += convergence(trajectory(walk, **how), CONSTANT).fields["status"] != "stable"

    # Two intervals of 95 % must cover; a bootstrap of 12 tensors is a little short.
    assert noise / repeats >= 0.8
    assert walks / repeats <= 0.05


def test_the_envelope_is_plain_json():
    for path in (line, cycle, runaway, stationary):
        json.dumps(convergence(trajectory(path)).to_dict(), allow_nan=False)
