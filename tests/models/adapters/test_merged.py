"""Adapters: the merged model is what torch makes of base, A and B."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from difflens.models import computed
from difflens.models.adapters import adapter_config, apply_adapter, is_adapter
from difflens.models.describe import metadata
from difflens.models.formats import open_model
from difflens.models.opening import MemorySource, resolve_weights

CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 16}
HOME = "base_model.model.model.layers.0.q_proj"
WEIGHT = "model.layers.0.q_proj.weight"


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def lora(outputs: int = 24, inputs: int = 40, rank: int = 4, home: str = HOME) -> dict[str, Any]:
    return {
        f"{home}.lora_A.weight": random(rank, inputs),
        f"{home}.lora_B.weight": random(outputs, rank),
    }


def values(source: Any, name: str, step: int = 1000) -> Any:
    info = source.tensors[name]
    raw = bytearray(info.size_bytes)
    for start in range(0, len(raw), step):
        stop = min(start + step, len(raw))
        assert source.read_into(name, start, stop, memoryview(raw)[start:stop]) == stop - start
    return np.frombuffer(raw, np.float32).reshape(info.shape)


def merged(base: dict[str, Any], adapter: dict[str, Any], **config: Any) -> Any:
    return apply_adapter(MemorySource(base), MemorySource(adapter), CONFIG | config)


def product(adapter: dict[str, Any], home: str = HOME) -> torch.Tensor:
    return adapter[f"{home}.lora_B.weight"] @ adapter[f"{home}.lora_A.weight"]


def close(found: Any, wanted: torch.Tensor) -> bool:
    return np.allclose(found, wanted.numpy(), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("strip", [1, 100, 10**6])
def test_the_product_is_added_to_the_base(dtype, strip, monkeypatch):
    monkeypatch.setattr(computed, "_STRIP", strip)
    base, adapter = {WEIGHT: random(24, 40).to(dtype), "model.norm": torch.ones(3)}, lora()
    source = merged(base, adapter)

    info = source.tensors[WEIGHT]
    assert (info.dtype, info.shape) == ("F32", (24, 40))
    assert info.stored.endswith("+ LoRA rank 4")
    assert list(source.tensors) == list(base)
    assert close(values(source, WEIGHT), base[WEIGHT].float() + 4 * product(adapter))
    assert values(source, "model.norm").tolist() == [1, 1, 1]
    assert source.warnings == []


def test_rank_stabilised_adapters_divide_by_the_root():
    base, adapter = {WEIGHT: random(24, 40)}, lora()

    assert close(
        values(merged(base, adapter, use_rslora=True), WEIGHT), base[WEIGHT] + 8 * product(adapter)
    )


@pytest.mark.parametrize("sizes", [(24, 40), (32, 32)])
def test_a_weight_with_its_inputs_first_gets_the_transpose(sizes):
    outputs, inputs = sizes
    base, adapter = {WEIGHT: random(inputs, outputs)}, lora(outputs, inputs)
    source = merged(base, adapter, fan_in_fan_out=True)

    assert close(values(source, WEIGHT), base[WEIGHT] + 4 * product(adapter).T)


def test_an_embedding_gets_the_transpose():
    base = {"model.embed.weight": random(50, 12)}
    adapter = {
        "base_model.model.model.embed.lora_embedding_A": random(4, 50),
        "base_model.model.model.embed.lora_embedding_B": random(12, 4),
    }
    down, up = adapter.values()
    source = merged(base, adapter)

    wanted = base["model.embed.weight"] + 4 * (up @ down).T
    assert close(values(source, "model.embed.weight"), wanted)


def test_a_convolution_is_a_matrix_too():
    base = {"conv.weight": random(8, 6, 3, 3)}
    down, up = random(4, 6, 3, 3), random(8, 4, 1, 1)
    adapter = {
        "base_model.model.conv.lora_A.weight": down,
        "base_model.model.conv.lora_B.weight": up,
    }
    wanted = torch.nn.functional.conv2d(down.permute(1, 0, 2, 3), up).permute(1, 0, 2, 3)

    found = values(merged(base, adapter), "conv.weight")
    assert close(found, base["conv.weight"] + 4 * wanted)


@pytest.mark.parametrize(
    "name",
    ["layers.0.q_proj.weight", "model.layers.0.q_proj.weight",
     "model.language_model.model.layers.0.q_proj.weight"],
)  # fmt: skip
def test_the_base_may_have_more_or_fewer_prefixes(name):
    base, adapter = {name: random(24, 40)}, lora()

    assert close(values(merged(base, adapter), name), base[name] + 4 * product(adapter))


def test_a_module_that_may_be_two_of_the_bases_is_left_with_a_warning():
    base = {f"{tower}.{WEIGHT}": random(24, 40) for tower in ("text", "vision")}
    base["model.layers.1.q_proj.weight"] = random(24, 40)
    adapter = lora() | lora(home="base_model.model.model.layers.1.q_proj")
    source = merged(base, adapter)

    assert list(source._computed) == ["model.layers.1.q_proj.weight"]
    assert "the base has no such weight" in source.warnings[0]


def test_patterns_give_modules_their_own_rank_and_alpha():
    other = "base_model.model.model.layers.1.q_proj"
    base = {WEIGHT: random(24, 40), "model.layers.1.q_proj.weight": random(24, 40)}
    adapter = lora() | lora(rank=8, home=other)
    source = merged(
        base,
        adapter,
        rank_pattern={"layers.1.q_proj": 8},
        alpha_pattern={r"layers\.1.q_proj": 32.0},
    )

    wanted = base["model.layers.1.q_proj.weight"] + 4 * product(adapter, other)
    assert close(values(source, "model.layers.1.q_proj.weight"), wanted)
    assert close(values(source, WEIGHT), base[WEIGHT] + 4 * product(adapter))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"alpha_pattern": {"(a+)+$": 3}}, "regular expression"),
        ({"alpha_pattern": [1]}, "mapping"), ({"r": 5}, "its rank is 4"),
    ],
)  # fmt: skip
def test_what_the_settings_leave_unclear_is_not_applied(config, reason):
    other = "base_model.model.model.embed"
    embedding = {
        f"{other}.lora_embedding_A": random(5, 9),
        f"{other}.lora_embedding_B": random(3, 5),
    }
    base = {WEIGHT: random(24, 40), "model.embed.weight": random(9, 3)}
    source = merged(base, lora() | (embedding if "r" in config else {}), **config)

    assert WEIGHT not in source.tensors or source.tensors[WEIGHT].stored is None
    assert len(source.warnings) == 1
    assert reason in source.warnings[0]


@pytest.mark.parametrize(
    "adapter",
    [
        lora(outputs=23), lora(inputs=41), {f"{HOME}.lora_A.weight": random(4, 40)},
        lora() | {f"{HOME}.lora_B.weight": random(24, 5)},
        lora() | {f"{HOME}.lora_B.weight": torch.zeros(24, 4, dtype=torch.int8)},
    ],
)  # fmt: skip
def test_matrices_that_do_not_fit_are_not_applied(adapter):
    base = {WEIGHT: random(24, 40), "model.layers.1.q_proj.weight": random(24, 40)}
    source = merged(base, adapter | lora(home="base_model.model.model.layers.1.q_proj"))

    assert close(values(source, WEIGHT), base[WEIGHT])
    assert len(source.warnings) == 1
    assert "'model.layers.0.q_proj'" in source.warnings[0]


def test_an_adapter_of_another_model_is_not_taken_for_no_change():
    adapter = MemorySource(lora())
    source = apply_adapter(MemorySource({"conv.weight": random(3, 3)}), adapter, CONFIG)

    assert source is adapter
    assert "no part of it can be applied: the base has no such weight" in source.warnings[0]


@pytest.mark.parametrize("first", [True, False])
def test_an_adapter_beside_its_base_stands_for_the_merged_model(first):
    base, adapter = {WEIGHT: random(24, 40)}, lora()
    settings = {f"adapter_config.json: {key}": json.dumps(each) for key, each in CONFIG.items()}
    sources, about = (MemorySource(adapter), MemorySource(base)), (settings, dict[str, str]())
    plain, both = (
        resolve_weights(*sources, about)[::-1]
        if first
        else resolve_weights(*sources[::-1], about[::-1])
    )

    assert plain is sources[1]
    assert close(values(both, WEIGHT), base[WEIGHT] + 4 * product(adapter))


def test_two_adapters_are_what_they_hold():
    one, other = MemorySource(lora()), MemorySource(lora(rank=8))

    assert resolve_weights(one, other, ({}, {})) == (one, other)


def test_an_adapter_of_a_quantised_base_is_added_to_what_was_decoded():
    codes = torch.randint(-127, 128, (24, 40), dtype=torch.int8)
    base = {WEIGHT: codes, f"{WEIGHT}_scale": torch.tensor([0.5])}
    settings = {f"adapter_config.json: {key}": json.dumps(each) for key, each in CONFIG.items()}
    adapter = lora()
    plain, both = resolve_weights(MemorySource(base), MemorySource(adapter), ({}, settings))

    assert close(values(plain, WEIGHT), codes * 0.5)
    assert close(values(both, WEIGHT), codes * 0.5 + 4 * product(adapter))


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("base_model.model.score.weight", "score.weight"),
        ("base_model.model.score.modules_to_save.weight", "score.weight"),
        ("base_model.model.score.modules_to_save.default.weight", "score.weight"),
        ("base_model.model.score.modules_to_save.dense.weight", "score.dense.weight"),
        ("base_model.model.model.layers.0.q_proj.bias", "model.layers.0.q_proj.bias"),
        ("base_model.model.model.embed.base_layer.weight", "model.embed.weight"),
    ],
)
def test_what_was_trained_whole_replaces_the_bases(name, home):
    base = {WEIGHT: random(24, 40), home: torch.zeros(5)}
    source = merged(base, lora() | {name: torch.ones(7)})

    assert source.tensors[home].shape == (7,)
    assert values(source, home).tolist() == [1] * 7
    assert not hasattr(source.encoding(home), "place")
    assert list(source.tensors) == list(base)


def test_what_is_no_plain_lora_is_named():
    source = merged({WEIGHT: random(24, 40)}, lora() | {f"{HOME}.lora_B.bias": torch.ones(24)})

    assert "lora_B.bias" in source.warnings[0]
    assert list(source.tensors) == [WEIGHT]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (None, "no adapter_config.json, so its scale is unknown"),
        (CONFIG | {"use_dora": True}, "DoRA"),
        (CONFIG | {"peft_type": "LOHA"}, "only LORA is known"),
        ({"r": 4}, "no lora_alpha"),
    ],
)
def test_an_adapter_that_cannot_be_merged_stays_what_it_is(config, reason):
    adapter = MemorySource(lora())
    source = apply_adapter(MemorySource({WEIGHT: random(24, 40)}), adapter, config)

    assert source is adapter
    assert len(source.warnings) == 1
    assert reason in source.warnings[0]


@pytest.mark.parametrize("last", ["", ".weight", ".default.weight"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dora_gives_every_row_of_the_sum_its_length(last, dtype):
    """As PEFT merges it: magnitude x (W + s B A) / norm of each row of that."""
    base, adapter = {WEIGHT: random(24, 40).to(dtype)}, lora()
    magnitude = random(24, seed=5).abs() + 0.5
    source = merged(base, adapter | {f"{HOME}.lora_magnitude_vector{last}": magnitude})
    wanted = base[WEIGHT].float() + 4 * product(adapter)
    wanted = magnitude[:, None] * wanted / wanted.norm(dim=1, keepdim=True)

    assert close(values(source, WEIGHT), wanted)
    assert source.tensors[WEIGHT].stored.endswith("+ DoRA rank 4")
    assert source.warnings == []


def test_magnitudes_of_another_size_are_refused():
    wrong = {f"{HOME}.lora_magnitude_vector": torch.ones(7)}
    source = merged({WEIGHT: random(24, 40)}, lora() | wrong)

    assert "magnitudes [7] do not fit [24, 40]" in source.warnings[0]


def test_an_adapter_is_told_from_a_model():
    assert is_adapter(MemorySource(lora()))
    assert is_adapter(MemorySource({"a.lora_embedding_A": random(2, 2)}))
    assert not is_adapter(MemorySource({WEIGHT: random(2, 2)}))
    assert not is_adapter(MemorySource({f"{HOME}.base_layer.weight": random(2, 2)} | lora()))


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_a_folder_alone_is_what_it_holds_and_its_settings_are_read(tmp_path, suffix):
    from safetensors.torch import save_file

    file = tmp_path / f"adapter_model.{suffix}"
    (save_file if suffix == "safetensors" else torch.save)(lora(), file)
    (tmp_path / "adapter_config.json").write_text(json.dumps(CONFIG))
    source = open_model(str(tmp_path))
    about = metadata(str(tmp_path), source)

    assert is_adapter(source)
    assert set(source.tensors) == set(lora())
    assert about["adapter_config.json: lora_alpha"] == "16"
    assert adapter_config(about) == CONFIG
    base = {WEIGHT: random(24, 40)}
    both = apply_adapter(MemorySource(base), source, adapter_config(about))
    assert close(values(both, WEIGHT), base[WEIGHT] + 4 * product(lora()))
    both.confirm()
    both.close()


def test_settings_that_are_none_are_none():
    assert adapter_config({}) is None
    assert adapter_config({"config.json: r": "4"}) is None
    assert adapter_config({"adapter_config.json: r": "{"}) is None
