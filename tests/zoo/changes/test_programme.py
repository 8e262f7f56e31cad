"""The dev part as a set, and the programme on a handful of pairs that need no download."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from zoo.changes import bases, edits
from zoo.changes.__main__ import main
from zoo.changes.dev import PAIRS
from zoo.changes.evaluate import score
from zoo.changes.model import Model, safetensors_bytes
from zoo.changes.pairs import Pair, edited, make

KINDS = set(
    """
    cast quantised palette scaled sign_flipped pruned zeroed sparse_edit row_edit low_rank
    outer_product abliterated noise trained permuted permuted_inconsistently transposed exchanged
    rotated rescaled_channels reinitialised corrupted unrelated averaged slerp extrapolated
    task_arithmetic ties dare ema vocabulary_resized layers_removed layers_duplicated
    layers_reordered layers_swapped pruned_structurally norms_folded weight_norm_folded
    head_replaced tensors_added tensors_removed reshaped config_changed tokens_changed
    state_changed unchanged
    """.split()
)


def a_base():
    rng = np.random.default_rng(0)
    return Model(
        {
            f"layers.{index}.{name}.weight": rng.standard_normal((48, 48)).astype(np.float32)
            for index in range(2)
            for name in ("q", "v")
        },
        {"model_type": "none"},
    )


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFLENS_ZOO", str(tmp_path / "zoo"))
    monkeypatch.setitem(bases.BASES, "tiny", a_base)
    bases.load.cache_clear()
    yield
    bases.load.cache_clear()


def test_the_dev_part_has_every_kind_and_at_least_two_hundred_pairs():
    kinds = {part for pair in PAIRS for part in pair.kind.split(" + ")}

    assert kinds >= KINDS
    assert len(PAIRS) >= 200


def test_pairs_have_names_of_their_own():
    names = Counter((pair.base, pair.id) for pair in PAIRS)

    assert [name for name, count in names.items() if count > 1] == []


def test_no_pair_of_the_dev_part_has_a_base_of_the_held_back_part():
    assert {pair.part for pair in PAIRS} == {"dev"}
    assert not {pair.base for pair in PAIRS} & bases.HELD_BACK


@pytest.mark.usefixtures("tiny")
def test_a_scale_is_found_through_python_and_through_the_command_line():
    pair = make("dev", "scaled", "tiny", "scaled", edits.scale(".", 1.25))

    results = [score(pair, command_line=line) for line in (False, True)]

    assert [each.verdict.outcome for each in results] == ["right", "right"]
    assert results[0].sentence == results[1].sentence


@pytest.mark.usefixtures("tiny")
def test_an_unchanged_pair_is_right_and_nothing_is_left_in_the_temporary_folder(
    tmp_path, monkeypatch
):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))

    result = score(make("dev", "same", "tiny", "unchanged"))

    assert result.verdict.outcome == "right"
    assert list(scratch.iterdir()) == []


@pytest.mark.usefixtures("tiny")
def test_evidence_reaches_difflens():
    def build(base):
        one = edited(base, edits.add_noise(".", 0.1, 1)).right
        right = edits.average([base, one], [0.5, 0.5])
        return edits.merged_pair("averaged", one, right, {"base": base})

    result = score(Pair("halfway", "dev", "tiny", "averaged", build))

    assert result.verdict.outcome == "right"
    assert result.said[0].startswith("averaged")


@pytest.mark.usefixtures("tiny")
def test_the_programme_prints_tables_and_writes_every_answer(tmp_path, monkeypatch, capsys):
    pairs = [
        make("dev", "scaled", "tiny", "scaled", edits.scale("q", 2.0)),
        make("dev", "lora", "tiny", "low_rank", edits.lora("q", 2, 1, relative=0.1)),
    ]
    monkeypatch.setattr("zoo.changes.dev.PAIRS", pairs)
    out = tmp_path / "results.json"

    assert main(["--processes", "1", "--json", str(out)]) == 0
    assert main(["--only", "noise", "--json", str(out)]) == 2

    text = capsys.readouterr().out
    assert "what was done" in text
    assert [each["id"] for each in json.loads(out.read_text())] == ["scaled", "lora"]


def test_a_file_of_the_zoo_is_read_back_by_difflens(tmp_path):
    left = edited(a_base(), edits.cast("BF16", where="q")).right
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes(left.tensors))

    tensors = bases.read(path)

    assert list(tensors) == list(left.tensors)
    assert all(array.tobytes() == left.tensors[name].tobytes() for name, array in tensors.items())


@pytest.mark.usefixtures("tiny")
def test_training_is_kept_and_a_tuned_head_is_the_head_alone(tmp_path):
    pytest.importorskip("torch")
    from zoo.changes import training

    built = edited(training.trained("mlp"), training.tune("mlp", only=r"^6\.", steps=3))
    (expected,) = built.expected

    assert (expected.kind, expected.names) == ("trained", {"6.weight", "6.bias"})
    assert len(list((tmp_path / "zoo" / "bases" / "trained").glob("*.npz"))) == 2
    again = edited(training.trained("mlp"), training.tune("mlp", only=r"^6\.", steps=3))
    assert (again.right.tensors["6.weight"] == built.right.tensors["6.weight"]).all()
