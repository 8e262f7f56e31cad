import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged
from diffs.analyses.trajectories import cycle, geometric, line, runaway, trajectory, walk
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence, Example, Log, Side
from difflens.diffs.story import diff

MODEL = decoder()
TUNED = changed(MODEL, nudged, "mlp")
PAIR = diff(MODEL, TUNED)


def progress(evidence=None, policy=None, pair=PAIR):
    return ask("learning_progress", pair, evidence or Evidence(), policy or Policy())


def logged(values, name="loss", left=0, right=None):
    points = tuple((10.0 * at, float(value)) for at, value in enumerate(values))
    last = 10 * (len(points) - 1) if right is None else right
    return Evidence(left=Side(step=left), right=Side(step=last), log=Log({name: points}))


def scored(left, right, metric="accuracy"):
    sides = [tuple(Example(f"q{at}", float(score), metric) for at, score in enumerate(side))
             for side in (left, right)]  # fmt: skip
    return Evidence(left=Side(evals=sides[0]), right=Side(evals=sides[1]))


def falling(n=60, slope=-0.01, noise=0.02, seed=0):
    return 2 + slope * np.arange(n) + np.random.default_rng(seed).normal(0, noise, n)


def test_a_model_against_itself_has_not_moved_and_its_trend_is_unknown():
    fields = progress(pair=diff(MODEL, MODEL)).fields

    assert (fields["magnitude"], fields["rel_l2"]) == (0, 0)
    assert fields["trend"] is None
    assert fields["speed"] is None


def test_magnitude_is_over_all_parameters_also_those_that_stood_still():
    fields = progress().fields

    flat = [np.concatenate([each.ravel() for each in side.values()]).astype(float)
            for side in (MODEL, TUNED)]  # fmt: skip
    moved, before, after = (np.linalg.norm(each) for each in (flat[1] - flat[0], *flat))
    assert fields["magnitude"] == pytest.approx(moved / (before + after), rel=1e-9)
    assert fields["rel_l2"] == pytest.approx(moved / before, rel=1e-9)


@given(st.floats(-3, 3), st.floats(-3, 3), st.sampled_from([2.0, 0.25, 1024.0]))
def test_magnitude_lies_between_0_and_1_and_forgets_a_common_scale(one, other, scale):
    left, right = ({"w": np.full(5, value, np.float32)} for value in (one, other))
    scaled = [{"w": side["w"] * np.float32(scale)} for side in (left, right)]

    plain = progress(pair=diff(left, right)).fields["magnitude"]

    assert plain is None or 0 <= plain <= 1
    assert progress(pair=diff(*scaled)).fields["magnitude"] == plain


def test_a_model_and_its_negative_are_as_far_apart_as_can_be():
    fields = progress(pair=diff(MODEL, {name: -each for name, each in MODEL.items()})).fields

    assert fields["magnitude"] == pytest.approx(1)


def test_two_weight_files_do_not_tell_a_trend_and_say_what_would():
    envelope = progress()

    missing = {each.field: each.needs for each in envelope.missing}
    assert missing["trend"] == "--log, --eval-left/--eval-right or --metrics-left/--metrics-right"
    assert missing["speed"] == "--checkpoint"


def test_headers_alone_tell_no_magnitude():
    envelope = progress(pair=diff(MODEL, TUNED, shape_only=True))

    assert envelope.status == "not_enough_information"
    assert envelope.fields["magnitude"] is None


@pytest.mark.parametrize(
    ("slope", "name", "word"),
    [
        (-0.01, "loss", "improving"),
        (0.01, "loss", "degrading"),
        (0.01, "eval_accuracy", "improving"),
        (-0.01, "accuracy", "degrading"),
    ],
)
def test_a_logged_metric_tells_the_trend_by_its_direction(slope, name, word):
    envelope = progress(logged(falling(slope=slope), name))

    assert envelope.fields["trend"] == word
    assert envelope.fields["trend_basis"] == "log"
    assert envelope.uncertainty["trend"].low * envelope.uncertainty["trend"].high > 0


def test_checkpoints_in_the_other_order_turn_the_trend():
    forward = logged(falling())
    backward = Evidence(left=forward.right, right=forward.left, log=forward.log)

    assert progress(forward).fields["trend"] == "improving"
    assert progress(backward).fields["trend"] == "degrading"
    assert progress(backward).fields["steps_between"] == -progress(forward).fields["steps_between"]


def test_only_the_log_between_the_two_steps_counts():
    values = np.concatenate([falling(60), falling(60, slope=0.01)])

    assert progress(logged(values, left=0, right=590)).fields["trend"] == "improving"
    assert progress(logged(values, left=600, right=1190)).fields["trend"] == "degrading"


def test_a_flat_log_is_stable_only_within_the_margin():
    flat = falling(200, slope=0, noise=0.01)
    noisy = falling(20, slope=0, noise=0.5)

    assert progress(logged(flat)).fields["trend"] == "stable"
    assert progress(logged(noisy)).fields["trend"] == "inconclusive"
    tight = Policy(metrics={"loss": MetricRule(margin=1e-6)})
    assert progress(logged(flat), tight).fields["trend"] == "inconclusive"


@replicates
def test_autocorrelated_noise_is_seldom_called_a_trend(repeats):
    random = np.random.default_rng(1)
    called = 0
    for _ in range(repeats):
        noise = random.normal(size=60)
        for at in range(1, 60):
            noise[at] += 0.5 * noise[at - 1]
        called += progress(logged(2 + 0.05 * noise)).fields["trend"] in ("improving", "degrading")

    assert called / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


def test_few_points_of_a_log_leave_it_to_the_examples():
    random = np.random.default_rng(0)
    answers = scored(random.random(300) < 0.5, np.ones(300))
    both = Evidence(left=answers.left, right=answers.right, log=logged([2, 1.9, 1.8]).log)

    assert progress(both).fields["trend_basis"] == "evals"
    assert progress(logged([2, 1.9, 1.8])).fields["trend"] == "inconclusive"


@pytest.mark.parametrize(("better", "word"), [(True, "improving"), (False, "degrading")])
def test_examples_are_compared_in_pairs(better, word):
    random = np.random.default_rng(3)
    base = random.random(400)
    other = base + (0.05 if better else -0.05) + random.normal(0, 0.1, 400)

    envelope = progress(scored(base, other))

    assert envelope.fields["trend"] == word
    assert envelope.fields["significance"] < 1e-6


def test_two_single_numbers_give_a_direction_and_no_significance():
    sides = [Side(metrics={"loss": value}) for value in (2.0, 1.5)]

    envelope = progress(Evidence(left=sides[0], right=sides[1]))

    assert envelope.fields["trend"] == "improving"
    assert envelope.fields["significance"] is None
    assert envelope.uncertainty["trend"] == "none_available: two single numbers, noise unknown"
    same = progress(Evidence(left=sides[0], right=sides[0]))
    assert same.fields["trend"] == "inconclusive"


def test_a_metric_nobody_knows_has_no_winner():
    sides = [Side(metrics={"sparkle": value}) for value in (2.0, 1.5)]
    declared = Policy(metrics={"sparkle": MetricRule("higher")})
    evidence = Evidence(left=sides[0], right=sides[1])

    assert progress(evidence).fields["trend"] is None
    assert progress(evidence, declared).fields["trend"] == "degrading"


def test_a_geometric_approach_has_the_speed_it_was_made_with():
    fields = progress(Evidence(trajectory=trajectory(geometric))).fields

    assert fields["speed"] == pytest.approx(0.4, abs=1e-9)
    assert fields["motion"] == "slowing"


@pytest.mark.parametrize(
    ("path", "word"),
    [(line, "steady"), (cycle, "steady"), (geometric, "slowing"), (runaway, "accelerating")],
)
def test_motion_says_how_the_weights_move(path, word):
    assert progress(Evidence(trajectory=trajectory(path))).fields["motion"] == word


def test_a_move_over_twice_the_steps_is_no_faster():
    path = trajectory(line, points=5, steps=(0.0, 1.0, 2.0, 3.0, 4.0))
    uneven = {name: _kept(each, (0, 1, 2, 4)) for name, each in path.distances.items()}
    norms = dict.fromkeys(uneven, (0.0,) * 4)
    shorter = type(path)(("a", "b", "c", "d"), (0.0, 1.0, 2.0, 4.0), uneven, norms, (0,) * 4)

    fields = progress(Evidence(trajectory=shorter)).fields

    assert fields["motion"] == "steady"
    assert fields["speed"] == pytest.approx(0, abs=1e-9)


def _kept(rows, places):
    return tuple(tuple(rows[i][j] for j in places) for i in places)


@replicates
def test_the_interval_of_the_speed_covers_it(repeats):
    covered = 0
    for seed in range(repeats):
        path = trajectory(_noisy, points=6, tensors=20, size=30, seed=seed)
        sure = progress(Evidence(trajectory=path)).uncertainty["speed"]
        covered += sure.low <= 0.4 <= sure.high

    # A bootstrap of 20 tensors is a little short.
    assert near(covered / repeats, 0.95, repeats, slack=0.05)


def _noisy(random, points, size):
    sizes = np.exp(random.normal(0, 0.1, points - 1))
    moves = 0.6 ** np.arange(points - 1) * sizes
    steps = np.concatenate([[0.0], moves.cumsum()])
    return steps[:, None] * random.normal(size=size)


def test_a_walk_goes_on_as_fast_as_it_began():
    fields = progress(Evidence(trajectory=trajectory(walk, size=20000))).fields

    assert fields["motion"] in ("steady", "inconclusive")
    assert fields["speed"] == pytest.approx(0, abs=0.01)
