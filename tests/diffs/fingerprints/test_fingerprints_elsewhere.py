"""Fingerprints of models that lie elsewhere, and made by other processes: the same ones."""

import json

import numpy as np
import pytest
from laws.elsewhere import Elsewhere
from models.small import arrays, write
from storage.servers.files import serve_files

import difflens
from difflens.core.addresses import ALLOW_HTTP
from difflens.core.errors import ModelError
from difflens.diffs.fingerprints.file import write_fingerprint
from difflens.diffs.fingerprints.sides import fingerprint_of, open_side


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Serve a folder with two models; yield the folder and its address."""
    monkeypatch.setenv(ALLOW_HTTP, "1")
    before, moves = np.random.default_rng(0).standard_normal((2, 2, 900, 700))
    folder = tmp_path / "served"
    write(folder / "l.safetensors", arrays(a=before[0], b=before[1]))
    write(folder / "r.safetensors", arrays(a=before[0], b=before[1] + 1e-3 * moves[0]))
    with serve_files(folder) as server:
        yield folder, server.url


def made(model):
    return fingerprint_of(open_side(model), 2, None)


def test_a_model_elsewhere_has_the_fingerprint_of_the_same_one_here(served):
    folder, url = served

    there, here = made(f"{url}/l.safetensors"), made(folder / "l.safetensors")

    assert there.tensors == here.tensors
    assert there.model.path == f"{url}/l.safetensors"
    assert there.identity not in {"", here.identity}


def test_a_recorded_model_elsewhere_is_compared_and_asked_for_exact_figures(served, tmp_path):
    folder, url = served
    write_fingerprint(made(f"{url}/l.safetensors"), tmp_path / "l.fingerprint")
    wanted = difflens.diff(folder / "l.safetensors", folder / "r.safetensors")

    found = difflens.diff(tmp_path / "l.fingerprint", f"{url}/r.safetensors")
    exact = difflens.diff(tmp_path / "l.fingerprint", f"{url}/r.safetensors", exact=True)

    assert [each.kind for each in found] == ["identical", "changed"]
    assert found["b"].relative_l2 == pytest.approx(wanted["b"].relative_l2, rel=0.12)
    assert exact["b"].to_row() == wanted["b"].to_row()


def test_exact_figures_of_a_file_elsewhere_that_has_changed_are_refused(served, tmp_path):
    folder, url = served
    write_fingerprint(made(f"{url}/l.safetensors"), tmp_path / "l.fingerprint")
    (folder / "l.safetensors").write_bytes((folder / "r.safetensors").read_bytes())

    with pytest.raises(ModelError, match="has changed since"):
        difflens.diff(tmp_path / "l.fingerprint", f"{url}/r.safetensors", exact=True)


def test_exact_figures_of_an_index_elsewhere_are_refused(served, tmp_path):
    """Whether its shards have changed is not known there: a web server lists nothing."""
    folder, url = served
    homes = dict.fromkeys("ab", "l.safetensors")
    (folder / "l.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    write_fingerprint(made(f"{url}/l.safetensors.index.json"), tmp_path / "l.fingerprint")

    with pytest.raises(ModelError, match="cannot be told"):
        difflens.diff(tmp_path / "l.fingerprint", f"{url}/r.safetensors", exact=True)


def test_another_process_makes_the_same_fingerprint(served):
    folder, _ = served
    engine = Elsewhere()
    try:
        found = open_side(folder / "l.safetensors").read(engine)
    finally:
        engine.close()

    assert found.tensors == made(folder / "l.safetensors").tensors
