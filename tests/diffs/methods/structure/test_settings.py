import json

import numpy as np
import pytest
from diffs.methods.structure.models import decoder
from diffs.methods.structure.records import found

MODEL = decoder(2)


@pytest.fixture
def folders(tmp_path):
    """Write a model with its config into two folders, and change the right config."""
    from safetensors.numpy import save_file

    def make(**changes):
        config = {"model_type": "llama", "rope_theta": 10000.0, "rms_norm_eps": 1e-5}
        paths = []
        for side, settings in (("left", config), ("right", {**config, **changes})):
            path = tmp_path / side
            path.mkdir()
            save_file(MODEL, path / "model.safetensors")
            (path / "config.json").write_text(json.dumps(settings))
            paths.append(path)
        return paths

    return make


def test_settings_that_change_the_function_are_a_change(folders):
    (record,) = found(*folders(rope_theta=500000.0, hidden_act="silu"))

    assert record.kind == "config_changed"
    assert record.numbers["keys"] == ["hidden_act", "rope_theta"]
    assert record.names == []
    assert "rope_theta 10000.0 -> 500000.0" in record.text


def test_settings_that_change_no_function_are_none(folders):
    assert found(*folders(transformers_version="9.9", attention_dropout=0.1)) == []


def test_the_same_settings_are_no_change(folders):
    assert found(*folders()) == []


def test_a_model_without_settings_has_no_change_of_them():
    assert found(MODEL, {name: np.array(value) for name, value in MODEL.items()}) == []
