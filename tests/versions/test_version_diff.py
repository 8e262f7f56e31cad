import numpy as np
import pytest
from versions.recorded import BUILT, bare, examples, snapshot

from difflens.versions.differences import FIELDS
from difflens.versions.records.comparisons import VersionDiff
from difflens.versions.records.snapshots import DifferentialDebuggingConfig as Config
from difflens.versions.snapshot import snapshot_of
from difflens.versions.version_diff import version_diff


def model(seed=0, **given):
    random = np.random.default_rng(seed)
    return {
        "layers.0.weight": random.normal(size=(16, 8)).astype("f4"),
        "layers.1.weight": random.normal(size=(4, 16)).astype("f4"),
        **given,
    }


def between(left, right, **given):
    one, other = (snapshot_of("net", at, weights=side) for at, side in (("1", left), ("2", right)))
    return version_diff(one, other, **given)


def test_accuracy_up_is_a_positive_delta_and_latency_down_a_negative_one():
    right = snapshot(version="2", day=2,
                     metrics={"val_accuracy": 0.95, "inference_latency_ms": 40.0})  # fmt: skip
    found = version_diff(snapshot(), right).performance_delta

    assert found.accuracy_delta == pytest.approx(0.05)
    assert found.latency_delta == -10.0
    assert found.deltas["val_accuracy"].change == "improved"
    assert found.deltas["inference_latency_ms"].relative == pytest.approx(-0.2)
    assert found.deltas["val_loss"].change == "unchanged"


def test_custom_and_test_metrics_have_deltas_too():
    left = snapshot(custom={"f1": 0.7}, metrics={"test_accuracy": 0.8, "flops": 100})
    right = snapshot(version="2", custom={"f1": 0.8}, metrics={"test_accuracy": 0.7, "flops": 90})
    found = version_diff(left, right).performance_delta

    assert found.custom_deltas == {"f1": pytest.approx(0.1)}
    assert found.deltas["test_accuracy"].change == "worse"
    assert found.deltas["flops"].change == "improved"


def test_samples_give_a_delta_its_interval():
    random = np.random.default_rng(0)
    left = bare(evals=examples(random.random(500) < 0.9))
    right = bare(version="2", evals=examples(random.random(500) < 0.7))
    found = version_diff(left, right).performance_delta.deltas["accuracy"]

    assert found.interval.low < found.difference < found.interval.high < 0
    assert (found.change, found.significant, found.evidence) == ("worse", True, "evals")


def test_a_metric_of_one_side_only_is_listed_without_a_difference():
    found = version_diff(snapshot(custom={"f1": 1.0}), snapshot(version="2")).performance_delta

    assert found.deltas["f1"].difference is None
    assert found.deltas["f1"].change == "not_testable"
    assert "f1" not in found.custom_deltas


def test_without_performance_delta_there_is_none_and_the_reason():
    found = version_diff(snapshot(), snapshot(version="2"), Config(enable_performance_delta=False))

    assert found.performance_delta is None
    assert found.missing[0].field == "performance_delta"


@pytest.mark.parametrize("field", FIELDS[:8])
def test_every_field_of_the_architecture_is_compared(field):
    left = snapshot(architecture={**BUILT, field: 8})
    right = snapshot(version="2", architecture={**BUILT, field: 16})
    found = version_diff(left, right).architecture_changes

    assert [(each.field, each.left, each.right) for each in found] == [(field, 8, 16)]


def test_tensors_added_removed_reshaped_recast_and_renamed_are_told():
    left = model(gone=np.ones(3, "f4"), moved=np.arange(9, dtype="f4"))
    right = model(come=np.zeros(3, "f4"), here=np.arange(9, dtype="f4"))
    right["layers.0.weight"] = np.ones((16, 9), "f4")
    right["layers.1.weight"] = right["layers.1.weight"].astype("f2")
    found = between(left, right)
    tensors = found.weight_changes.tensors

    assert (tensors.added, tensors.removed) == (("come",), ("gone",))
    assert tensors.renamed == {"moved": "here"}
    assert (tensors.reshaped, tensors.recast) == (("layers.0.weight",), ("layers.1.weight",))
    assert {each.field for each in found.architecture_changes} >= {
        "tensors.added", "tensors.removed", "tensors.renamed", "tensors.reshaped", "tensors.recast",
    }  # fmt: skip


def test_every_setting_is_compared_however_deep_it_lies():
    left = snapshot(training_config={
        "learning_rate": 0.1, "epochs": 3, "optimizer": "sgd", "regularization": {"dropout": 0.1},
        "settings": {"data": {"seed": 1, "sizes": [1, 2]}, "note": "x"},
    })  # fmt: skip
    right = snapshot(version="2", training_config={
        "learning_rate": 0.1 * (1 + 1e-12), "epochs": 6, "optimizer": "adam",
        "regularization": {"weight_decay": 0.01},
        "settings": {"data": {"seed": 1, "sizes": [1, 3]}, "note": "x"},
    })  # fmt: skip
    found = {each.parameter: each for each in version_diff(left, right).config_changes}

    assert set(found) == {"epochs", "optimizer", "regularization.dropout",
                          "regularization.weight_decay", "data.sizes.1"}  # fmt: skip
    assert found["regularization.dropout"].kind == "removed"
    assert found["regularization.weight_decay"].kind == "added"
    assert found["epochs"].impact == "every example is seen 2 times as often"
    assert found["optimizer"].impact is None


def test_a_setting_that_is_not_a_number_on_both_sides_has_not_changed():
    nan = {"regularization": {"dropout": float("nan")}}
    found = version_diff(snapshot(training_config=nan), snapshot(version="2", training_config=nan))

    assert found.config_changes == ()


def test_commit_metadata_and_evaluation_are_compared():
    left = snapshot(commit_hash="abc", metadata={"owner": "x"}, evaluation={"n": 10})
    right = snapshot(version="2", commit_hash="def", evaluation={"n": 20})
    found = {each.parameter: each.kind for each in version_diff(left, right).metadata_changes}

    assert found == {"commit_hash": "changed", "evaluation.n": "changed",
                     "metadata.owner": "removed"}  # fmt: skip


def test_weights_turned_round_moved_by_twice_their_length():
    left = model()
    right = {name: -each for name, each in left.items()}
    found = between(left, right, left_weights=left, right_weights=right).weight_changes

    assert found.basis == "elements"
    assert found.relative_l2 == pytest.approx(2.0)
    assert found.cosine == pytest.approx(-1.0)
    assert found.layer_changes == pytest.approx(dict.fromkeys(left, 2.0))
    assert found.significant_change_ratio == 1.0


def test_a_permutation_of_weights_is_a_change():
    left = model()
    right = {name: each[::-1].copy() for name, each in left.items()}
    found = between(left, right, left_weights=left, right_weights=right).weight_changes

    assert found.relative_l2 > 1
    assert found.avg_magnitude > 0.5


def test_figures_of_the_whole_are_numpys():
    left, right = model(), model(1)
    right["layers.1.weight"] = left["layers.1.weight"]
    found = between(left, right, left_weights=left, right_weights=right).weight_changes
    flat = [np.concatenate([side[name].ravel() for name in left]).astype(float)
            for side in (left, right)]  # fmt: skip
    moved = flat[1] - flat[0]

    assert found.avg_magnitude == pytest.approx(np.abs(moved).mean())
    assert found.max_change == pytest.approx(np.abs(moved).max())
    assert found.relative_l2 == pytest.approx(np.linalg.norm(moved) / np.linalg.norm(flat[0]))
    assert list(found.layer_changes) == ["layers.0.weight"]


def test_without_files_fingerprints_say_which_tensors_changed():
    left, right = model(), model()
    right["layers.1.weight"] = right["layers.1.weight"] + 1
    found = between(left, right).weight_changes

    assert found.basis == "hashes"
    assert found.layer_changes == {"layers.1.weight": None}
    assert found.avg_magnitude is None
    assert "summary only" in found.missing[0].why
    assert found.distribution_distance > 0


def test_equal_fingerprints_are_no_change_at_all():
    found = between(model(), model()).weight_changes

    assert (found.avg_magnitude, found.max_change, found.relative_l2) == (0.0, 0.0, 0.0)


def test_percentiles_alone_give_a_distance_between_distributions():
    weights = {"mean": 0.0, "std_dev": 1.0, "min": -2.0, "max": 2.0, "percentiles": {"p50": 0.0}}
    moved = {"mean": 1.0, "std_dev": 1.0, "min": -1.0, "max": 3.0, "percentiles": {"p50": 1.0}}
    found = version_diff(bare(weights_summary=weights), bare(version="2", weights_summary=moved))

    assert found.weight_changes.basis == "summary"
    assert found.weight_changes.distribution_distance == pytest.approx(1.0)


def test_weights_too_large_to_square_are_no_infinity():
    left, right = {"w": np.full(3, 1e200)}, {"w": np.full(3, 3e200)}
    found = between(left, right, left_weights=left, right_weights=right).weight_changes

    assert found.max_change == pytest.approx(2e200)
    assert found.relative_l2 is None
    assert "too large" in found.missing[0].why


def test_nothing_recorded_of_the_weights_is_said():
    found = version_diff(snapshot(), snapshot(version="2")).weight_changes

    assert found.basis == "none"
    assert {each.field for each in found.missing} >= {"avg_magnitude", "max_change"}


def test_the_files_that_were_recorded_are_used_where_they_are_still_there(tmp_path):
    from safetensors.numpy import save_file

    paths = [tmp_path / f"{name}.safetensors" for name in ("left", "right")]
    for seed, path in enumerate(paths):
        save_file(model(seed), path)
    left, right = (snapshot_of("net", str(at), weights=path) for at, path in enumerate(paths))

    assert version_diff(left, right).weight_changes.basis == "elements"
    save_file(model(7), paths[1])
    found = version_diff(left, right)
    assert found.weight_changes.basis == "hashes"
    assert any("is not the file that was recorded" in said for said in found.warnings)


def test_every_result_survives_json():
    left, right = model(), model(1)
    found = between(left, right, left_weights=left, right_weights=right)

    assert VersionDiff.from_json(found.to_json()) == found
    assert (found.from_version, found.to_version) == ("1", "2")


def test_an_older_right_side_is_warned_of():
    found = version_diff(snapshot(day=2), snapshot(version="2", day=1))

    assert any("recorded before" in said for said in found.warnings)
