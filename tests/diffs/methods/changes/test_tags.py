import struct

import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import (
    adapted,
    ancestor,
    between,
    changed,
    decoder,
    evidence,
    halved,
    nudged,
)

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

MODEL = decoder(2, width=128)


def told(left, right, handed=None):
    return analyse("change_summary", diff(left, right), handed or Evidence())


@pytest.mark.parametrize("rank", [4, 8, 16])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_rank_of_a_merged_lora_is_found(rank, dtype):
    model = {name: value.astype(dtype) for name, value in MODEL.items()}

    found = told(model, changed(model, adapted(rank), "q_proj.weight", "v_proj.weight")).fields

    assert found["evidence"]["low_rank"]["rank"] == rank
    assert found["sentence"] == (
        f"a rank-{rank} LoRA merged into q_proj and v_proj of all 2 layers;"
        " everything else bit-identical"
    )


def test_a_rank_whose_factors_are_no_smaller_than_the_change_is_not_low():
    other = changed(MODEL, adapted(70), "q_proj.weight")

    assert told(MODEL, other).fields["patterns"] == ["mixed"]


def test_a_lora_and_a_trained_norm_are_not_explained_by_the_rank():
    other = changed(changed(MODEL, adapted(4), "q_proj.weight"), nudged, "norm")

    assert told(MODEL, other).fields["patterns"] == ["mixed"]


def test_one_outer_product_is_an_edit():
    found = told(MODEL, changed(MODEL, adapted(1), "1.mlp.down_proj")).fields

    assert found["patterns"] == ["row_edit"]
    assert found["also"] == []
    assert found["sentence"].startswith("one outer product added to down_proj of layer 1")


def test_magnitude_pruning_and_random_pruning_are_told_apart():
    random = np.random.default_rng(0)
    smallest = changed(MODEL, lambda v: np.where(np.abs(v) < np.median(np.abs(v)), 0, v), "up_proj")
    anyhow = changed(MODEL, lambda v: np.where(random.random(v.shape) < 0.5, 0, v), "up_proj")

    by_size, by_chance = (
        told(MODEL, side).fields["evidence"]["pruned"] for side in (smallest, anyhow)
    )

    assert by_size["pruning_auc"] == pytest.approx(1, abs=1e-3)
    assert by_chance["pruning_auc"] == pytest.approx(0.5, abs=0.02)
    assert by_chance["two_of_four"] == pytest.approx(0.6875, abs=0.01)


def test_pruning_in_order_is_named_and_only_then():
    ordered = told(MODEL, changed(MODEL, halved, "up_proj")).fields["sentence"]
    other = changed(MODEL, lambda v: np.where(np.abs(v) < 0.0135, 0, v), "up_proj")

    assert ordered.startswith("50 % of the weights of 2 of 25 tensors pruned (2:4), ")
    assert "2:4" not in told(MODEL, other).fields["sentence"]


def test_pruning_with_one_survivor_retrained_is_no_mere_pruning():
    other = changed(MODEL, halved, "up_proj")
    other["model.layers.0.mlp.up_proj.weight"][0] += 0.1

    assert "pruned" not in told(MODEL, other).fields["evidence"]


def q8_0(values):
    """Quantise as GGUF's Q8_0 does: 32 values share a scale."""
    groups = values.reshape(-1, 32).astype(np.float32)
    scales = (np.abs(groups).max(axis=1) / 127).astype(np.float16)
    codes = np.rint(groups / scales[:, None].astype(np.float32)).astype(np.int8)
    return b"".join(struct.pack("<e", s) + c.tobytes() for s, c in zip(scales, codes, strict=True))


def test_weights_stored_in_blocks_are_named_with_their_scheme(tmp_path):
    gguf = pytest.importorskip("gguf")
    from safetensors.numpy import save_file

    matrix = np.random.default_rng(0).normal(0, 0.02, (64, 64)).astype(np.float32)
    left, right = tmp_path / "left.safetensors", tmp_path / "right.gguf"
    save_file({"blk.0.ffn_up.weight": matrix, "output_norm.weight": matrix[0].copy()}, left)
    writer = gguf.GGUFWriter(right, "llama")
    blocks = np.frombuffer(q8_0(matrix), np.uint8).reshape(64, -1)
    writer.add_tensor("blk.0.ffn_up.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", matrix[0].copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    found = told(left, right).fields

    assert found["patterns"] == ["quantised"]
    assert found["evidence"]["quantised"]["sqnr_db"] == pytest.approx(45.4, abs=0.5)
    assert found["sentence"].startswith("weights quantised to Q8_0: 1 of 2 tensors")


@pytest.mark.parametrize("part", [0.25, 0.5, 0.8])
def test_the_part_of_the_way_from_the_base_is_found(part):
    other = between(MODEL, part)

    found = told(MODEL, other, evidence("averaged", MODEL, other)).fields

    assert found["evidence"]["averaged"]["coefficient"] == pytest.approx(part, abs=1e-5)


def test_a_model_gone_back_to_its_base_is_no_average():
    base = ancestor(MODEL)
    handed = Evidence(base=(diff(base, MODEL), diff(base, base)))

    assert told(MODEL, base, handed).fields["patterns"] == ["full_finetune"]


def test_what_could_not_be_tested_is_said():
    lines = told(MODEL, changed(MODEL, nudged, "mlp")).assumptions

    assert "averaged was not tested: it needs --base" in lines
    assert "averaged" not in lines[0]
