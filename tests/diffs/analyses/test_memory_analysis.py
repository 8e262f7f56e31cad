import numpy as np
import pytest
import torch
from diffs.analyses.networks import LLAMA_2_7B, llama
from diffs.analyses.small import decoder
from diffs.analyses.test_architecture_comparison import headers
from gguf import GGMLQuantizationType, GGUFWriter, quants

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff


def memory(left, right, config=None, thresholds=None, **options):
    evidence = Evidence(left=Side(config=config), right=Side(config=config))
    policy = Policy({"memory_analysis": thresholds or {}})
    return analyse("memory_analysis", diff(left, right, **options), evidence, policy)


@pytest.mark.parametrize(
    ("dtype", "efficiency"), [(np.float32, 0.25), (np.float16, 0.5), (np.float64, 0.125)]
)
def test_parameters_a_byte_are_what_the_dtype_says(dtype, efficiency):
    model = decoder(dtype=dtype)

    fields = memory(model, model).fields

    assert fields["efficiency"] == efficiency
    assert fields["delta_bytes"] == 0


def test_half_precision_saves_half_the_bytes_exactly():
    left = decoder()
    right = {name: value.astype(np.float16) for name, value in left.items()}
    whole = sum(value.nbytes for value in left.values())

    envelope = memory(left, right)

    assert envelope.fields["delta_bytes"] == -whole // 2
    assert envelope.fields["delta"] == -whole / 2e6
    assert envelope.uncertainty["delta"] == "exact"


def test_swapping_the_sides_flips_the_sign():
    left, right = decoder(2), decoder(3)

    there, back = memory(left, right).fields, memory(right, left).fields

    assert there["delta_bytes"] == -back["delta_bytes"] > 0


def test_without_settings_the_estimate_is_the_weights_alone():
    fields = memory(decoder(), decoder()).fields

    assert fields["scope"] == {"left": "weights_only", "right": "weights_only"}
    assert fields["gpu_est"] * 1e6 == pytest.approx(fields["bytes"]["right"])


def test_llama_2_7b_from_headers_and_its_config(tmp_path):
    path = headers(tmp_path, "llama", llama(LLAMA_2_7B))

    fields = memory(path, path, LLAMA_2_7B, {"tokens": 4096}, shape_only=True).fields

    assert fields["parameters"]["right"] == 6_738_415_616
    assert fields["kv_bytes_per_token"]["right"] == 524_288
    parts = fields["breakdown"]["right"]
    assert parts["weights"] == 4 * 6_738_415_616
    assert parts["kv_cache"] == 4096 * 524_288
    assert parts["activations"] == 4096 * (2 * 4096 + 11008) * 2
    assert fields["gpu_est"] * 1e6 == pytest.approx(sum(parts.values()))
    assert fields["training"]["right"]["mixed_precision_adam"] == 16 * 6_738_415_616


def test_what_is_not_in_the_estimate_is_said():
    (said, *_) = memory(decoder(), decoder()).assumptions

    assert "CUDA context" in said
    assert "fragmentation" in said


def test_quantised_blocks_count_as_they_lie_in_the_file(tmp_path):
    weight = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "llama")
    kind = GGMLQuantizationType.Q4_0
    writer.add_tensor("blk.0.ffn_up.weight", quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    fields = memory(path, path).fields

    assert fields["bytes"]["right"] == 64 * 256 * 18 // 32
    assert fields["efficiency"] == pytest.approx(32 / 18)


def test_a_head_on_the_storage_of_its_embedding_counts_once(tmp_path):
    table = torch.randn(100, 8)
    torch.save({"wte.weight": table, "lm_head.weight": table}, tmp_path / "tied.pt")
    torch.save({"wte.weight": table, "lm_head.weight": table + 1}, tmp_path / "untied.pt")

    envelope = memory(tmp_path / "tied.pt", tmp_path / "untied.pt")

    assert envelope.fields["bytes"] == {"left": 3200, "right": 6400}
    assert any("lm_head.weight" in said for said in envelope.assumptions)


def test_thresholds_of_the_user_are_in_force_and_marked():
    config = {"num_attention_heads": 4}
    one = memory(decoder(), decoder(), config, {"batch": 1})
    three = memory(decoder(), decoder(), config, {"batch": 3})

    assert three.policy["batch"] == {"value": 3, "source": "user"}
    cached = [each.fields["breakdown"]["right"]["kv_cache"] for each in (one, three)]
    assert cached[1] == 3 * cached[0]
