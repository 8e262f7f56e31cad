"""What lies beside a checkpoint: its own where nobody else could own it."""

import json

import pytest
from models.small import arrays, write

from difflens.diffs.evidence.discovery import beside, inside, step_in_name

MODEL = arrays(w=[1])


@pytest.fixture
def folder(tmp_path):
    """Return a folder with files beside which a model may lie."""
    home = tmp_path / "model"
    home.mkdir()
    for name in ("config.json", "trainer_state.json", "optimizer.pt", "tokenizer.json", "LICENSE"):
        (home / name).write_text("{}")
    return home


KINDS = {"config", "log", "optimizer", "tokens", "licence"}


def test_a_folder_owns_what_lies_in_it(folder):
    write(folder / "a.safetensors", MODEL)
    write(folder / "b.safetensors", MODEL)

    assert beside(folder).keys() == KINDS


@pytest.mark.parametrize(
    "names",
    [
        ["model.safetensors"],
        ["model.safetensors", "pytorch_model.bin"],
        ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
        ["model.safetensors.index.json", "model-00001-of-00001.safetensors"],
    ],
)
def test_the_one_model_of_a_folder_owns_what_lies_beside_it(folder, names):
    for name in names:
        write(folder / name, MODEL)

    assert beside(folder / names[0]).keys() == KINDS


@pytest.mark.parametrize("other", ["right.safetensors", "right.gguf", "right.pt"])
def test_two_models_in_one_folder_own_nothing(folder, other):
    write(folder / "left.safetensors", MODEL)
    write(folder / other, MODEL)

    assert beside(folder / "left.safetensors") == {}


def test_what_is_compared_with_its_neighbour_owns_nothing(folder):
    left = write(folder / "model.safetensors", MODEL)

    assert beside(left, folder / "pytorch_model.bin") == {}


@pytest.mark.parametrize("model", [{"w": [1]}, "", "nowhere/model.safetensors", 3])
def test_what_is_no_file_has_nothing_beside_it(model):
    assert beside(model) == {}


def test_a_cache_of_the_hub_leads_to_its_snapshot(tmp_path):
    home = tmp_path / "models--a--b"
    write(home / "snapshots" / "abc" / "model.safetensors", MODEL)
    (home / "snapshots" / "abc" / "config.json").write_text(json.dumps({"a": 1}))
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc")

    assert beside(home) == {"config": home / "snapshots" / "abc" / "config.json"}


def test_some_files_hold_evidence_themselves(tmp_path):
    assert inside(tmp_path / "a.gguf") == {"tokens": tmp_path / "a.gguf"}
    assert inside(tmp_path / "a.ckpt") == {"optimizer": tmp_path / "a.ckpt"}
    assert inside(tmp_path / "a.safetensors") == {}
    assert inside({"w": [1]}) == {}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500),
        ("checkpoint-500/model.safetensors", 500),
        ("global_step1000/x.pt", 1000),
        ("epoch=3-step=1200.ckpt", 1200),
        ("iter_0000500.pt", 500),
        ("step_5_checkpoint_6.pt", None),
        ("llama-2-7b.safetensors", None),
        ("model.safetensors", None),
    ],
)
def test_a_step_is_read_from_a_name_only_where_it_is_called_one(name, step):
    assert step_in_name(name) == step
