"""`difflens find`: the relatives of a model among those that are recorded, the nearest first."""

import json
import sys

import numpy as np
import pytest
from cli.command import assert_refused
from models.small import arrays, tensor, write


@pytest.fixture(autouse=True)
def _no_store_of_the_user(monkeypatch):
    monkeypatch.delenv("DIFFLENS_STORE", raising=False)


def family(seed):
    random = np.random.default_rng(seed)
    model = {f"layers.{i}.w": random.standard_normal((60, 40)) for i in range(4)}
    return model | {"norm.weight": np.ones(60)}


def moved(model, by, seed=9):
    random = np.random.default_rng(seed)
    return {name: each + by * random.standard_normal(each.shape) for name, each in model.items()}


def record(difflens, tmp_path, key, model):
    path = write(tmp_path / f"{key}.safetensors", model)
    done = difflens("snapshot", "add", key, "--version", "1", "--weights", path)
    assert done.code == 0, done.err
    return path


@pytest.fixture
def store(difflens, tmp_path):
    """Record a base, a near and a far child, one with half its layers, a cast, and a stranger."""
    base = family(0)
    near = moved(base, 0.01)
    frozen = base | {name: near[name] for name in ("layers.2.w", "layers.3.w")}
    record(difflens, tmp_path, "base", arrays(**base))
    record(difflens, tmp_path, "far", arrays(**moved(base, 0.3, 5)))
    record(difflens, tmp_path, "stranger", arrays(**family(1)))
    record(difflens, tmp_path, "near", arrays(**near))
    record(difflens, tmp_path, "frozen", arrays(**frozen))
    record(difflens, tmp_path, "cast", {n: tensor(each, "BF16") for n, each in base.items()})
    return write(tmp_path / "q.safetensors", arrays(**base))


def relatives(difflens, *arguments):
    done = difflens("find", *arguments, "-o", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_the_nearest_relatives_come_first_and_strangers_not_at_all(difflens, store):
    answer = relatives(difflens, store, "--limit", "10")

    keys = [each["key"] for each in answer["relatives"]]
    assert keys[0] == "base@1"
    assert set(keys[1:3]) == {"cast@1", "frozen@1"}
    assert keys[3:] == ["near@1", "far@1"]
    assert (answer["searched"], answer["unsearched"]) == (6, 0)


def test_what_is_shared_is_proved_and_distances_are_estimates(difflens, store):
    every = {each["key"]: each for each in relatives(difflens, store, "--limit", "10")["relatives"]}

    assert (every["base@1"]["same"], every["base@1"]["relative_l2"]) == (5, 0.0)
    assert every["base@1"]["estimated_error"] is None
    assert (every["frozen@1"]["same"], every["frozen@1"]["moved"]) == (3, 2)
    assert every["frozen@1"]["shared"] == pytest.approx(0.5)
    assert every["near@1"]["relative_l2"] == pytest.approx(0.01, rel=0.1)
    assert every["near@1"]["estimated_error"] == pytest.approx(0.0221, abs=1e-4)
    assert all(each["same_architecture"] for each in every.values())


def test_a_fingerprint_is_searched_for_without_its_model(difflens, store):
    difflens("fingerprint", store, "-o", "q.fingerprint")
    wanted = relatives(difflens, store)
    store.unlink()

    assert relatives(difflens, "q.fingerprint") == wanted | {"model": "q.fingerprint"}


@pytest.mark.usefixtures("store")
def test_wrapped_renamed_and_resized_models_are_relatives(difflens, tmp_path):
    base = family(0)
    wrapped = {f"module.model.{name}": each for name, each in base.items()}
    renamed = {f"other.{i}": each for i, each in enumerate(base.values())}
    resized = moved(base, 0.01) | {"layers.0.w": np.random.default_rng(3).standard_normal((61, 40))}
    for model, architecture in ((wrapped, True), (renamed, False), (resized, False)):
        path = write(tmp_path / "other.safetensors", arrays(**model))
        nearest = relatives(difflens, path)["relatives"][0]
        assert nearest["key"] in {"base@1", "near@1", "frozen@1"}
        assert nearest["same_architecture"] is architecture


def test_tensors_of_one_value_show_no_kinship(difflens, tmp_path):
    random = np.random.default_rng(4)
    for key in ("one", "two"):
        model = {"ones.weight": np.ones(5000), "w.weight": random.standard_normal((50, 50))}
        record(difflens, tmp_path, key, arrays(**model))

    every = relatives(difflens, tmp_path / "one.safetensors")["relatives"]

    assert {each["key"]: each["shared"] for each in every}.get("two@1", 0.0) == 0.0


def test_text_says_how_many_were_searched(difflens, store):
    done = difflens("find", store)

    assert done.lines[0].startswith("the nearest relatives of ")
    assert "±2.2%" in done.out
    assert done.lines[-1] == "5 relatives among 6 recorded models"


@pytest.mark.usefixtures("store")
def test_a_store_without_relatives_says_so(difflens, tmp_path):
    path = write(tmp_path / "new.safetensors", arrays(**family(77)))

    done = difflens("find", path)

    assert (done.code, done.lines[-1]) == (0, "no relative among 6 recorded models")


def test_snapshots_without_a_fingerprint_are_counted(difflens, store, monkeypatch):
    difflens("snapshot", "add", "bare", "--version", "1")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "blake3", None)
        done = difflens("snapshot", "add", "late", "--version", "1", "--weights", store)
        assert done.code == 0
        assert "recorded without a fingerprint" in done.err
        assert len(done.err.splitlines()) == 1

    assert relatives(difflens, store)["unsearched"] == 2
    assert "2 have no fingerprint" in difflens("find", store).out
    difflens("snapshot", "add", "late", "--version", "1", "--weights", store, "--replace")
    assert relatives(difflens, store)["unsearched"] in {1, 2}


def test_removed_and_replaced_versions_are_not_found(difflens, store, tmp_path):
    difflens("snapshot", "remove", "base")
    other = write(tmp_path / "other.safetensors", arrays(**family(50)))
    difflens("snapshot", "add", "near", "--version", "1", "--weights", other, "--replace")

    keys = [each["key"] for each in relatives(difflens, store, "--limit", "10")["relatives"]]

    assert "base@1" not in keys
    assert "near@1" not in keys


def test_bad_inputs_are_one_line(difflens, store, tmp_path):
    difflens("fingerprint", store, "-o", "q.fingerprint")
    add = difflens("snapshot", "add", "x", "--version", "1", "--weights", "q.fingerprint")
    assert_refused(add, "--weights names a fingerprint")
    assert_refused(difflens("find", tmp_path / "absent.safetensors"), "no such file")
    assert_refused(difflens("find", store, "--store", "nowhere.db"), "there is no store")
