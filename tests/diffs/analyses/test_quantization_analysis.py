"""Quantised models through real files: what they cost, and that their own copy costs nothing."""

import ml_dtypes
import numpy as np
import pytest
import torch
from diffs.analyses.small import decoder
from gguf import GGMLQuantizationType, GGUFWriter, quants
from models.test_quantised_packages import package
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff

NAME = "model.layers.0.mlp.up_proj.weight"
WEIGHT = np.random.default_rng(0).normal(0, 0.02, (1024, 1024)).astype(np.float32)


def quantisation(left, right, thresholds=None, **options):
    policy = Policy({"quantization_analysis": thresholds or {}})
    return analyse("quantization_analysis", diff(left, right, **options), policy=policy)


def plain(folder, weight=WEIGHT):
    path = folder / "plain.safetensors"
    save_file({NAME: np.ascontiguousarray(weight)}, path)
    return path


def in_gguf(folder, scheme, weight=WEIGHT, name=NAME):
    kind = GGMLQuantizationType[scheme]
    path = folder / f"{scheme}.gguf"
    writer = GGUFWriter(path, "none")
    writer.add_tensor(name, quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def in_nf4(folder):
    functional = package("bitsandbytes.functional")
    codes, state = functional.quantize_4bit(
        torch.from_numpy(WEIGHT), blocksize=64, quant_type="nf4", compress_statistics=False
    )
    parts = {NAME: codes}
    parts |= {f"{NAME}.{key}": value for key, value in state.as_dict(packed=True).items()}
    path = folder / "nf4.safetensors"
    save_torch({key: value.contiguous() for key, value in parts.items()}, path)
    return path


def in_int8(folder):
    most = np.abs(WEIGHT).max(1)
    codes = np.rint(WEIGHT / most[:, None] * 127).astype(np.int8)
    path = folder / "int8.safetensors"
    save_file({NAME: codes, NAME.removesuffix("weight") + "SCB": most}, path)
    return path


def in_gptq(folder):
    """Pack a plain rounding to 4 bits as GPTQ would: groups of 128 along the inputs."""
    groups = WEIGHT.T.reshape(8, 128, 1024)
    scales = (np.abs(groups).max(1) / 7).astype(np.float16)
    codes = np.clip(np.rint(groups / scales[:, None].astype(np.float32)), -8, 7) + 8
    stem = NAME.removesuffix("weight")
    flat = codes.reshape(1024, 1024).astype(np.uint32)
    packed = np.zeros((128, 1024), np.uint32)
    for place in range(8):
        packed |= flat[place::8] << np.uint32(4 * place)
    zeros = np.full((8, 128), 0x77777777, np.uint32)
    path = folder / "gptq.safetensors"
    arrays = {"qweight": packed.view(np.int32), "qzeros": zeros.view(np.int32), "scales": scales}
    save_file({f"{stem}{key}": np.ascontiguousarray(each) for key, each in arrays.items()}, path)
    return path


MAKERS = {
    "Q8_0": (lambda folder: in_gguf(folder, "Q8_0"), 45.4, 8.5),
    "Q4_0": (lambda folder: in_gguf(folder, "Q4_0"), 21.3, 4.5),
    "NF4": (in_nf4, 20.7, 4.5),
    "int8 per row": (in_int8, 42.1, 8.03),
}


@pytest.mark.parametrize("scheme", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_real_quantisers_cost_a_gaussian_what_the_table_says(tmp_path, scheme):
    make, decibels, width = MAKERS[scheme]

    fields = quantisation(plain(tmp_path), make(tmp_path)).fields

    assert fields["sqnr_db"] == pytest.approx(decibels, abs=0.3)
    assert fields["expected_sqnr_db"] == pytest.approx(decibels, abs=1e-9)
    (layer,) = fields["layers"]
    assert layer["difference_db"] == pytest.approx(fields["sqnr_db"] - decibels)
    assert fields["bits_per_weight"]["right"] == pytest.approx(width, abs=0.01)
    assert fields["compression"] == pytest.approx(1 - width / 32, abs=0.001)
    assert fields["worse_than_round_to_nearest"] == []


def test_a_cast_to_bf16_is_rounding_of_55_6_decibels():
    right = {NAME: WEIGHT.astype(ml_dtypes.bfloat16)}

    fields = quantisation({NAME: WEIGHT}, right).fields

    assert fields["sqnr_db"] == pytest.approx(55.6, abs=0.1)
    (layer,) = fields["layers"]
    assert layer["within_storage_rounding"]
    assert (layer["scheme"], layer["distribution"]) == ("BF16", "gaussian")
    assert fields["compression"] == 0.5


@pytest.mark.parametrize("scheme", ["Q8_0", "Q4_0", "NF4", "int8 per row"])
@pytest.mark.filterwarnings("ignore")
def test_a_quantised_model_against_its_own_dequantised_copy_loses_nothing(tmp_path, scheme):
    quantised = MAKERS[scheme][0](tmp_path)
    copy = plain(tmp_path, diff(quantised, quantised).values("left", NAME).array())

    envelope = quantisation(copy, quantised)

    assert envelope.fields["precision_loss"] == {"relative_error": 0.0, "layers": 1}
    assert envelope.fields["sqnr_db"] is None
    assert envelope.findings == ()


def test_more_noise_than_rounding_makes_is_found(tmp_path):
    noise = np.random.default_rng(1).normal(0, 0.004, WEIGHT.shape).astype(np.float32)
    quantised = in_gguf(tmp_path, "Q4_0", WEIGHT + noise)

    envelope = quantisation(plain(tmp_path), quantised)

    assert envelope.fields["worse_than_round_to_nearest"] == [NAME]
    (finding,) = envelope.findings
    assert finding.evidence["sqnr_db"] < finding.evidence["expected_sqnr_db"] - 3
    assert quantisation(plain(tmp_path), quantised, {"below_expected_db": 60.0}).findings == ()


def test_gptq_is_not_judged_in_weight_space(tmp_path):
    envelope = quantisation(plain(tmp_path), in_gptq(tmp_path))

    assert envelope.fields["not_comparable_in_weight_space"] == [NAME]
    assert envelope.fields["expected_sqnr_db"] is None
    assert envelope.fields["sqnr_db"] == pytest.approx(18.6, abs=0.3)
    assert envelope.findings == ()


def test_swapping_the_sides_keeps_the_decibels_and_turns_the_compression(tmp_path):
    paths = plain(tmp_path), in_gguf(tmp_path, "Q8_0")

    there, back = quantisation(*paths).fields, quantisation(*reversed(paths)).fields

    assert there["sqnr_db"] == pytest.approx(back["sqnr_db"])
    assert 1 - back["compression"] == pytest.approx(1 / (1 - there["compression"]))
    assert [there["layers"][0]["side"], back["layers"][0]["side"]] == ["right", "left"]


def test_the_layer_furthest_below_its_table_is_the_most_sensitive():
    left = {f"layers.{i}.up.weight": WEIGHT[:256] * (i + 1) for i in range(4)}
    right = {name: value.astype(np.float16) for name, value in left.items()}
    worst = "layers.2.up.weight"
    right[worst] = (left[worst] * np.float32(1.01)).astype(np.float16)

    fields = quantisation(left, right, {"sensitive_count": 2}).fields

    assert fields["sensitive_layers"][0] == worst
    assert len(fields["sensitive_layers"]) == 2


def test_scaling_both_sides_by_a_power_of_two_moves_no_decibel():
    left, right = ({NAME: WEIGHT}, {NAME: WEIGHT.astype(ml_dtypes.bfloat16)})
    larger = [{NAME: side[NAME] * side[NAME].dtype.type(4)} for side in (left, right)]

    assert quantisation(*larger).fields["sqnr_db"] == pytest.approx(
        quantisation(left, right).fields["sqnr_db"], rel=1e-12
    )


def test_models_stored_alike_have_no_loss_to_tell():
    envelope = quantisation(decoder(), decoder(seed=1))

    assert envelope.fields["precision_loss"] is None
    assert envelope.fields["compression"] == 0
    assert envelope.fields["layers"] == []


def test_headers_alone_tell_sizes_and_schemes(tmp_path):
    fields = quantisation(plain(tmp_path), in_gguf(tmp_path, "Q4_0"), shape_only=True).fields

    assert fields["compression"] == pytest.approx(1 - 4.5 / 32)
    assert fields["scheme"] == {"left": {"F32": 1}, "right": {"Q4_0": 1}}
    assert fields["layers"] is None


def test_fake_quantised_floats_are_named():
    steps = np.abs(WEIGHT).max(1, keepdims=True) / 7
    fake = (np.rint(WEIGHT / steps) * steps).astype(np.float32)

    fields = quantisation({NAME: WEIGHT}, {NAME: fake}).fields

    assert fields["fake_quantised"]["left"] == []
    (found,) = fields["fake_quantised"]["right"]
    assert (found["name"], found["bits"], found["group"]) == (NAME, 4, 0)
