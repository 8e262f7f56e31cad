"""Quantised weights as the packages that write them do it, and what that should cost."""

import json
import warnings
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models.quantised.test_weights import opened, packed, values, words


def package(name: str) -> Any:
    """Import what is installed; what it warns of at its import is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def packing_of_compressed_tensors() -> Any:
    """Load the one file that packs: the whole package wants transformers, which is large."""
    found = find_spec("compressed_tensors")
    if found is None or found.origin is None:
        pytest.skip("compressed-tensors is not installed")
    file = Path(found.origin).parent / "compressors" / "pack_quantized" / "helpers.py"
    spec = spec_from_file_location("packing_of_compressed_tensors", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def decibels(weight: Any, found: Any) -> float:
    return float(10 * np.log10((weight**2).sum() / ((weight - found) ** 2).sum()))


def gauss(outputs: int = 256, inputs: int = 1024) -> Any:
    return np.random.default_rng(0).normal(size=(outputs, inputs)).astype(np.float32)


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_bitsandbytes_agrees_on_four_bits(kind, nested):
    functional = package("bitsandbytes.functional")
    weight = gauss(64, 1000)
    codes, state = functional.quantize_4bit(
        torch.from_numpy(weight), blocksize=64, quant_type=kind, compress_statistics=nested
    )
    wanted = functional.dequantize_4bit(codes, state).numpy()
    arrays = {"a.weight": codes}
    arrays |= {f"a.weight.{name}": each for name, each in state.as_dict(packed=True).items()}
    source = opened(arrays)
    found = values(source, "a.weight")

    assert list(source.tensors) == ["a.weight"]
    assert np.allclose(found, wanted, rtol=2e-6, atol=1e-7)
    if kind == "nf4":
        assert abs(decibels(weight, found) - 20.7) < 0.3


@pytest.mark.filterwarnings("ignore")
def test_bitsandbytes_agrees_on_eight_bits():
    functional = package("bitsandbytes.functional")
    weight = gauss()
    codes, rows, _ = functional.int8_vectorwise_quant(torch.from_numpy(weight).half())
    found = values(opened({"a.weight": codes, "a.SCB": rows}), "a.weight")

    assert np.allclose(found, functional.int8_vectorwise_dequant(codes, rows), rtol=1e-6)
    assert abs(decibels(weight, found) - 42.1) < 0.3


@pytest.mark.parametrize("bits", [3, 4, 8])
@pytest.mark.filterwarnings("ignore")
def test_compressed_tensors_packs_as_we_unpack(bits):
    helpers = packing_of_compressed_tensors()
    generator = np.random.default_rng(0)
    low = -(1 << bits - 1)
    q = generator.integers(low, -low, (40, 96)).astype(np.int8)
    zero = generator.integers(low, -low, (40, 3)).astype(np.int8)
    scale = generator.uniform(0.1, 1, (40, 3)).astype(np.float32)
    source = opened({
        "a.weight_packed": helpers.pack_to_int32(torch.from_numpy(q), bits),
        "a.weight_zero_point": helpers.pack_to_int32(torch.from_numpy(zero), bits, packed_dim=0),
        "a.weight_scale": scale,
        "a.weight_shape": np.array([40, 96]),
    })  # fmt: skip
    wanted = (q.reshape(40, 3, 32).astype(np.float32) - zero[:, :, None]) * scale[:, :, None]

    assert np.array_equal(values(source, "a.weight"), wanted.reshape(40, 96))


def test_rounding_to_int8_rows_costs_what_it_should():
    weight = gauss()
    scale = np.abs(weight).max(1, keepdims=True) / 127
    q = np.round(weight / scale).astype(np.int8)

    found = values(opened({"a.weight": q, "a.weight_scale": scale}), "a.weight")
    assert abs(decibels(weight, found) - 42.1) < 0.3


def test_rounding_to_groups_of_int4_costs_what_it_should():
    weight = gauss()
    groups = weight.reshape(256, 8, 128)
    low, high = groups.min(2), groups.max(2)
    scale = (high - low) / 15
    zero = np.round(-low / scale)
    q = np.clip(np.round(groups / scale[:, :, None]) + zero[:, :, None], 0, 15)
    rows = q.reshape(256, 1024).astype(int).T
    stored = ((zero.T - 1) % 16).astype(int)
    source = opened({
        "a.qweight": words([packed(each, 4) for each in rows.T.tolist()]).T.copy(),
        "a.qzeros": words([packed(each, 4) for each in stored.tolist()]),
        "a.scales": scale.T.astype(np.float16),
    })  # fmt: skip

    assert source.tensors["a.weight"].stored == "GPTQ int4 g128"
    assert abs(decibels(weight, values(source, "a.weight")) - 20.0) < 0.3


def test_a_folder_of_quantised_weights_is_decoded_by_its_settings(tmp_path):
    from safetensors.numpy import save_file

    from difflens.models.describe import metadata
    from difflens.models.formats import open_model
    from difflens.models.quantised.weights import decode_quantised

    q = np.arange(64).reshape(2, 32) % 8
    save_file(
        {
            "a.weight_packed": words([packed(row, 3) for row in q.tolist()]),
            "a.weight_scale": np.full((2, 1), 0.5, np.float32),
            "a.weight_shape": np.array([2, 32]),
        },
        tmp_path / "model.safetensors",
    )
    settings = {"config_groups": {"group_0": {"weights": {"num_bits": 3}}}}
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": settings}))
    plain = open_model(str(tmp_path))
    source = decode_quantised(plain, metadata(str(tmp_path), plain))

    assert np.array_equal(values(source, "a.weight"), (q - 4) * np.float32(0.5))
    source.confirm()
    source.close()
