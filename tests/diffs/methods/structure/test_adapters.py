import json

import numpy as np
import pytest
from diffs.methods.structure.models import decoder, tuned
from diffs.methods.structure.records import found

from difflens.diffs.evidence.gather import gather

MODEL = decoder(2)
MODULES = [f"model.layers.{i}.self_attn.{part}_proj" for i in (0, 1) for part in "qv"]
RANK, ALPHA = 4, 8


def factors(seed=0, rank=RANK):
    random = np.random.default_rng(seed)
    made = {}
    for module in MODULES:
        home = f"base_model.model.{module}"
        made[f"{home}.lora_A.weight"] = random.normal(0, 0.1, (rank, 32)).astype("f4")
        made[f"{home}.lora_B.weight"] = random.normal(0, 0.1, (32, rank)).astype("f4")
    return made


def merged(model, adapter, strength=1.0, scale=ALPHA / RANK):
    right = dict(model)
    for module in MODULES:
        home = f"base_model.model.{module}"
        product = adapter[f"{home}.lora_B.weight"] @ adapter[f"{home}.lora_A.weight"]
        name = f"{module}.weight"
        right[name] = (model[name] + strength * scale * product).astype("f4")
    return right


@pytest.fixture
def written(tmp_path):
    """Write models and adapters, as PEFT lays them down."""
    from safetensors.numpy import save_file

    def write(name, tensors, **config):
        folder = tmp_path / name
        folder.mkdir()
        is_adapter = any("lora_A" in each for each in tensors)
        save_file(
            tensors, folder / ("adapter_model" if is_adapter else "model").__add__(".safetensors")
        )
        if is_adapter:
            settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA} | config
            (folder / "adapter_config.json").write_text(json.dumps(settings))
        return folder

    return write


def verified(base, right, adapter):
    evidence = gather(base, right, checkpoints=[adapter], discovery=False)
    return found(base, right, evidence)


def test_a_merged_model_is_its_base_and_the_adapter(written):
    base, adapter = written("base", MODEL), written("adapter", factors())
    right = written("right", merged(MODEL, factors()))

    (record,) = verified(base, right, adapter)

    assert record.kind == "adapter_merged"
    assert record.numbers["rank"] == RANK
    assert record.numbers["strength"] == pytest.approx(1, abs=1e-4)
    assert record.names == [f"{module}.weight" for module in sorted(MODULES)]
    assert record.share == pytest.approx(1)
    assert record.text.endswith("(verified)")


def test_an_adapter_merged_at_half_its_strength_is_said(written):
    right = written("right", merged(MODEL, factors(), 0.5))

    (record,) = verified(written("base", MODEL), right, written("adapter", factors()))

    assert "merged times 0.5 into" in record.text


@pytest.mark.parametrize(
    "right", [merged(MODEL, factors(seed=5)), tuned(MODEL), tuned(merged(MODEL, factors()), 0.5)]
)
def test_another_change_is_not_that_adapter(written, right):
    base, adapter = written("base", MODEL), written("adapter", factors())

    assert verified(base, written("right", right), adapter) == []


def test_a_base_against_an_adapter_is_the_adapter_merged(written):
    (record,) = found(written("base", MODEL), written("adapter", factors()))

    assert (record.kind, record.numbers["rank"]) == ("adapter_merged", RANK)
    assert record.text == (
        "the adapter (LoRA, rank 4) merged in self_attn.q_proj and self_attn.v_proj of layers 0-1"
    )


def test_adapters_that_add_the_same_by_other_factors_are_said_to(written):
    other = {}
    for name, value in factors().items():
        other[name] = value * np.float32(3) if "lora_B" in name else value / np.float32(3)

    (record,) = found(written("a", factors()), written("b", other))

    assert record.kind == "adapter_changed"
    assert record.text == "the adapters add the same to 4 modules, though their factors differ"


def test_the_scale_of_an_adapter_counts(written):
    left, right = written("a", factors()), written("b", factors(seed=5), lora_alpha=2 * ALPHA)

    record, settings = found(left, right)

    assert record.numbers["cosine"] == pytest.approx(0, abs=0.1)
    assert "differs by relative L2" in record.text
    assert settings.numbers["keys"] == ["lora_alpha"]


def test_the_same_adapter_twice_is_no_change(written):
    assert found(written("a", factors()), written("b", factors())) == []
