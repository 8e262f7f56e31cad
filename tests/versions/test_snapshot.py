import os
import subprocess
from math import sqrt

import numpy as np
import pytest
from diffs.analyses.networks import gpt2, infos, llama
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save_file

from difflens.core.errors import DifflensError, SnapshotError
from difflens.diffs.evidence.records import Example, Latency
from difflens.versions import weights
from difflens.versions.records.snapshots import ModelMetrics, ModelSnapshot, TrainingConfig
from difflens.versions.snapshot import commit_of, read_architecture, snapshot_of

LLAMA = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32}  # fmt: skip


def tiny(seed=0):
    random = np.random.default_rng(seed)
    return {
        "layers.0.weight": random.normal(size=(8, 4)).astype("f4"),
        "layers.0.bias": np.zeros(8, "f4"),
        "layers.1.weight": random.normal(size=(3, 8)).astype("f4"),
    }


def test_numbers_are_read_and_not_typed_in():
    model = tiny()
    found = snapshot_of("net", "1", weights=model)
    flat = np.concatenate([each.ravel() for each in model.values()]).astype(float)
    summary = found.weights_summary

    assert summary.mean == pytest.approx(flat.mean())
    assert summary.std_dev == pytest.approx(flat.std())
    assert (summary.min, summary.max) == (flat.min(), flat.max())
    assert (summary.zero_count, summary.count) == (8, flat.size)
    assert summary.sparsity == pytest.approx(8 / flat.size)
    assert found.architecture.parameter_count == flat.size
    assert (found.architecture.layer_count, found.architecture.depth) == (2, 2)
    assert (found.architecture.hidden_size, found.architecture.kind) == (8, "mlp")
    assert found.metrics.model_size_mb == pytest.approx(flat.size * 4 / 1e6)


@given(arrays.arrays("f4", st.integers(1, 200), elements=st.floats(-8, 8, width=32)))
def test_percentiles_are_numpys_of_type_7(values):
    found = snapshot_of("net", "1", weights={"weight": values}).weights_summary
    expected = np.quantile(values.astype(float), [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])

    assert list(found.percentiles) == ["p1", "p5", "p25", "p50", "p75", "p95", "p99"]
    assert list(found.percentiles.values()) == pytest.approx(expected.tolist(), abs=1e-6)
    assert found.percentile_error == 0.0


def test_percentiles_of_many_weights_are_sampled_and_say_how_well(monkeypatch):
    monkeypatch.setattr(weights, "SAMPLE", 20_000)
    values = np.random.default_rng(0).normal(size=200_000).astype("f4")
    found = snapshot_of("net", "1", weights={"weight": values}).weights_summary
    below = (values < found.percentiles["p95"]).mean()

    assert 0 < found.percentile_error < 0.011
    assert abs(below - 0.95) < found.percentile_error


def test_values_that_are_not_finite_are_counted_and_left_out():
    model = {"weight": np.array([1.0, np.nan, 3.0, np.inf], "f4")}
    found = snapshot_of("net", "1", weights=model).weights_summary

    assert (found.mean, found.min, found.max) == (2.0, 1.0, 3.0)
    assert (found.nonfinite, found.count) == (2, 4)
    assert found.percentiles["p50"] == 2.0
    assert found.tensors[0].l2 is None


def test_every_tensor_has_a_fingerprint_and_the_whole_one_too():
    one, same, other = (snapshot_of("net", "1", weights=each).weights_summary
                        for each in (tiny(), tiny(), tiny(1)))  # fmt: skip

    assert one.content_hash == same.content_hash != other.content_hash
    assert all(len(each.sha256) == 64 for each in one.tensors)
    matrix = next(each for each in one.tensors if each.name == "layers.0.weight")
    assert matrix.l2 == pytest.approx(sqrt((tiny()["layers.0.weight"].astype(float) ** 2).sum()))


def test_the_format_does_not_change_the_fingerprint(tmp_path):
    save_file(tiny(), tmp_path / "model.safetensors")
    np.savez(tmp_path / "model.npz", **tiny())
    stored = [snapshot_of("net", "1", weights=tmp_path / f"model.{kind}").weights_summary
              for kind in ("safetensors", "npz")]  # fmt: skip

    assert stored[0].content_hash == stored[1].content_hash
    assert stored[0].source == str(tmp_path / "model.safetensors")
    assert [each.format for each in stored] == ["safetensors", "npz"]


def test_gpt2_is_read_off_its_shapes_and_config():
    config = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "model_type": "gpt2"}
    found = read_architecture(infos(gpt2()), {}, config)

    assert found.parameter_count == 124_439_808
    assert (found.depth, found.hidden_size, found.num_heads) == (12, 768, 12)
    assert (found.vocab_size, found.max_seq_length, found.kind) == (50257, 1024, "gpt2")


def test_llama_without_a_config_leaves_its_heads_unknown():
    found = read_architecture(infos(llama(LLAMA)), {}, None)

    assert found.parameter_count == 6_738_415_616
    assert (found.depth, found.hidden_size, found.ff_dim) == (32, 4096, 11008)
    assert found.num_heads is None
    missing = {each.field: each for each in found.missing}
    assert missing["num_heads"].needs == "--config"
    assert "cut into heads" in missing["num_heads"].why


def test_metrics_without_a_field_are_custom_ones():
    found = snapshot_of("net", "1", metrics={"val_accuracy": 0.9, "f1": 0.8, "loss": float("nan")})

    assert found.metrics.val_accuracy == 0.9
    assert found.metrics.custom_metrics == {"f1": 0.8, "loss": "NaN"}


def test_settings_without_a_field_are_kept_as_they_came():
    found = snapshot_of("net", "1", training={"learning_rate": 0.1, "warmup": {"steps": 10}})

    assert found.training_config.learning_rate == 0.1
    assert found.training_config.settings == {"warmup": {"steps": 10}}


def test_records_are_taken_as_they_are():
    metrics, training = ModelMetrics(val_loss=1.0), TrainingConfig(epochs=3)
    found = snapshot_of("net", "1", metrics=metrics, training=training)

    assert (found.metrics, found.training_config) == (metrics, training)


def test_a_stated_size_is_not_overwritten():
    found = snapshot_of("net", "1", weights=tiny(), metrics={"model_size_mb": 7.0})

    assert found.metrics.model_size_mb == 7.0


def test_everything_that_was_measured_is_kept_and_survives_json():
    found = snapshot_of(
        "net", "1", weights=tiny(), evals=[Example("q", 1.0)], latency=[Latency(3.0, "r")],
        replicates={"f1": [0.1, 0.2]}, replicate_ids=["s0", "s1"], meta={"owner": "x"},
        evaluation={"dataset": "d", "n": 10}, commit="abc",
    )  # fmt: skip

    assert ModelSnapshot.from_json(found.to_json()) == found
    assert (found.commit_hash, found.metadata) == ("abc", {"owner": "x"})
    assert found.evaluation.dataset == "d"


def test_a_config_alone_tells_what_it_says():
    found = snapshot_of("net", "1", config={"n_layer": 6, "n_head": 4, "n_embd": 32}).architecture

    assert (found.depth, found.num_heads, found.hidden_size) == (6, 4, 32)
    assert found.parameter_count is None


def test_a_model_without_plain_numbers_has_no_mean_and_the_reason():
    found = snapshot_of("net", "1", weights={"ids": np.arange(4)}).weights_summary

    assert found.mean is None
    assert {each.field for each in found.missing} >= {"mean", "std_dev"}


def test_figures_that_contradict_themselves_are_refused():
    with pytest.raises(SnapshotError, match="val_accuracy"):
        snapshot_of("net", "1", metrics={"val_accuracy": 90.0})


@pytest.fixture
def repository(tmp_path):
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                "GIT_COMMITTER_EMAIL": "a@b"}  # fmt: skip

    def git(*words):
        done = subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True,
                              text=True, env={**os.environ, **identity})  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "train.py").write_text("x = 1\n")
    git("add", "train.py")
    git("commit", "-q", "-m", "first")
    return tmp_path, git


def test_auto_asks_git_for_the_commit(repository, monkeypatch):
    folder, git = repository
    monkeypatch.chdir(folder)
    clean = snapshot_of("net", "1", commit="auto")
    (folder / "train.py").write_text("x = 2\n")
    dirty = snapshot_of("net", "2", commit="auto")

    assert clean.commit_hash == dirty.commit_hash == git("rev-parse", "HEAD")
    assert clean.metadata == {}
    assert dirty.metadata == {"commit_state": "uncommitted changes"}


def test_a_folder_that_is_no_repository_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(DifflensError, match="commit: git says: not a git repository"):
        commit_of(tmp_path)


def test_a_machine_without_git_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DifflensError, match="git is not installed"):
        commit_of(tmp_path)


@given(arrays.arrays("f8", st.integers(1, 20), elements=st.floats(width=64)))
def test_any_doubles_at_all_are_recorded(values):
    found = snapshot_of("net", "1", weights={"a": values, "b": values[:3]})

    assert ModelSnapshot.from_json(found.to_json()) == found
    assert found.weights_summary.nonfinite == sum(
        int((~np.isfinite(each)).sum()) for each in (values, values[:3])
    )
