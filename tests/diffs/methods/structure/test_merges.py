import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, tuned
from diffs.methods.structure.records import found

from difflens import diff
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.gather import gather
from difflens.diffs.methods.structure.merges import _labels

BASE = decoder(2, width=64, hidden=96, words=300)
LEFT, SECOND, THIRD = (tuned(BASE, 0.1, seed) for seed in (1, 2, 3))


def summed(*parts):
    """Add up models, each with its weight."""
    return {
        name: sum(weight * model[name].astype("f8") for weight, model in parts).astype("f4")
        for name in BASE
    }


def moves(models, name):
    return np.stack([model[name].astype("f8") - BASE[name] for model in models])


def dropped(model, share, *, rescale=True):
    """Drop a random part of what a model learned, as DARE does."""
    random = np.random.default_rng(7)
    factor = 1 / (1 - share) if rescale else 1
    return {
        name: (BASE[name] + factor * (random.random(value.shape) >= share) * (value - BASE[name]))
        .astype("f4")
        for name, value in model.items()
    }  # fmt: skip


def elected(models, density, scale=1.0):
    """Trim, elect signs, and average what agrees, as TIES does."""
    right = {}
    for name in BASE:
        parts = moves(models, name)
        kept = max(1, int(density * parts[0].size))
        bars = [np.sort(np.abs(part).ravel())[-kept] for part in parts]
        trimmed = np.stack(
            [np.where(np.abs(part) >= bar, part, 0) for part, bar in zip(parts, bars, strict=True)]
        )
        agreeing = np.where(np.sign(trimmed) == np.sign(trimmed.sum(axis=0)), trimmed, 0)
        number = np.maximum((agreeing != 0).sum(axis=0), 1)
        right[name] = (BASE[name] + scale * agreeing.sum(axis=0) / number).astype("f4")
    return right


def between(one, other, t):
    """Walk along the arc, as SLERP does."""
    right = {}
    for name, value in one.items():
        a, b = value.astype("f8").ravel(), other[name].astype("f8").ravel()
        angle = np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        sines = np.sin((1 - t) * angle) * a + np.sin(t * angle) * b
        right[name] = (sines / np.sin(angle)).reshape(value.shape).astype("f4")
    return right


def told(right, *, left=LEFT, base=BASE, checkpoints=()):
    evidence = gather(left, right, base=base, checkpoints=checkpoints, discovery=False)
    return [each for each in found(left, right, evidence) if not each.kind.startswith("head")]


def test_an_average_with_the_base_names_both_and_their_weights():
    (record,) = told(summed((0.3, BASE), (0.7, LEFT)))

    assert record.kind == "averaged"
    assert record.numbers["weights"] == pytest.approx({"base": 0.3, "left": 0.7}, abs=1e-5)
    assert record.text == "the average of 2 models: 0.7 x left + 0.3 x base"
    assert record.share == pytest.approx(1)


def test_what_lies_beyond_both_is_an_extrapolation_and_no_average():
    (record,) = told(summed((-0.5, BASE), (1.5, LEFT)))

    assert record.kind == "extrapolated"
    assert record.numbers["c"] == pytest.approx(1.5, abs=1e-5)
    assert record.text == "extrapolated: 1.5 x left - 0.5 x base"


@pytest.mark.parametrize("base", [None, BASE])
def test_a_soup_is_an_average_of_all_with_or_without_a_base(base):
    third = 1 / 3
    right = summed((third, LEFT), (third, SECOND), (third, THIRD))

    (record,) = told(right, base=base, checkpoints=[SECOND, THIRD])

    assert record.kind == "averaged"
    assert record.numbers["weights"]["checkpoint 2"] == pytest.approx(third, abs=1e-5)


def test_moves_added_to_a_base_are_task_arithmetic():
    right = summed((-0.2, BASE), (0.6, LEFT), (0.6, SECOND))

    (record,) = told(right, checkpoints=[SECOND])

    assert record.kind == "task_arithmetic"
    assert record.text == (
        "task arithmetic: base + 0.6 x (left - base) + 0.6 x (checkpoint 1 - base)"
    )


def test_weights_that_fade_are_a_moving_average():
    right = summed((0.81, LEFT), (0.09, SECOND), (0.1, THIRD))

    (record,) = told(right, base=None, checkpoints=[SECOND, THIRD])

    assert record.kind == "ema"
    assert record.numbers["decay"] == pytest.approx(0.9, abs=1e-4)


def test_an_arc_is_told_from_a_line():
    other = tuned(BASE, 1.5, 9)

    (record,) = told(between(BASE, other, 0.3), left=other)

    assert record.kind == "slerp"
    assert record.numbers["t"] == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_elements_dropped_at_random_and_rescaled_are_dare(share):
    record, *_ = told(dropped(LEFT, share))

    assert record.kind == "dare"
    assert record.numbers["drop"] == pytest.approx(share, abs=0.02)
    assert record.numbers["scale"] == pytest.approx(1 / (1 - share), rel=1e-3)
    assert record.text.startswith("DARE: base + ")


def test_dropping_without_rescaling_is_said():
    record, *_ = told(dropped(LEFT, 0.5, rescale=False))

    assert record.text.startswith("random dropping: base + 50")


def test_the_largest_elements_of_one_move_are_trimming():
    record, *_ = told(elected([LEFT], 0.2))

    assert record.kind == "ties"
    assert record.numbers["density"] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("base", [BASE, None])
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_elected_signs_of_several_models_are_ties(base, scale):
    """Without a base the left one is the origin, where the others are handed in."""
    left, others = (LEFT, [SECOND]) if base else (BASE, [LEFT, SECOND])

    record, *_ = told(elected([LEFT, SECOND], 0.3, scale), left=left, base=base, checkpoints=others)

    assert record.kind == "ties"
    assert record.numbers["density"] == pytest.approx(0.3, abs=0.01)
    assert record.numbers["scale"] == pytest.approx(scale, abs=0.01)


@pytest.mark.parametrize(
    ("right", "kind"),
    [(summed((0.3, BASE), (0.7, LEFT)), "averaged"), (dropped(LEFT, 0.5), "dare")],
)
def test_a_merge_that_was_cast_afterwards_is_still_recognised(right, kind):
    stored = {name: value.astype(ml_dtypes.bfloat16) for name, value in right.items()}
    floats = {name: value.astype("f4") for name, value in stored.items()}

    assert told(stored)[0].kind == kind
    assert told(floats)[0].kind == kind


@pytest.mark.parametrize("checkpoints", [[], [SECOND]])
def test_a_further_model_is_no_merge_of_the_others(checkpoints):
    assert told(THIRD, checkpoints=checkpoints) == []


def test_a_merge_that_was_trained_on_is_no_merge():
    assert told(tuned(summed((0.3, BASE), (0.7, LEFT)), 0.05, 8)) == []


@pytest.mark.parametrize("right", [BASE, LEFT])
def test_the_base_or_the_left_itself_is_no_merge(right):
    assert told(right) == []


def test_nothing_is_looked_for_without_a_base_or_checkpoints():
    assert found(LEFT, summed((0.3, BASE), (0.7, LEFT))) == []
    assert diff(LEFT, LEFT).pairs


def test_models_are_called_by_their_files_or_folders():
    paths = ["runs/a/model.safetensors", "runs/b/model.safetensors", "x/tuned.pt", "y/tuned.pt"]

    assert _labels(paths, has_base=True) == ["a", "b", "x/tuned", "y/tuned"]
    assert _labels(["(in memory)", "(in memory)"], has_base=False) == ["left", "checkpoint 1"]


def test_the_dtype_that_an_average_is_stored_in_is_named_beside_it():
    right = {
        name: value.astype(ml_dtypes.bfloat16)
        for name, value in summed((0.5, LEFT), (0.5, SECOND)).items()
    }

    answer = analyse(
        "change_summary", diff(LEFT, right), gather(LEFT, right, base=SECOND, discovery=False)
    ).fields

    assert [each["kind"] for each in answer["changes"]] == ["averaged", "cast"]
    assert f"then cast from F32 to BF16: {len(BASE)} of {len(BASE)} tensors" in answer["sentence"]
