import numpy as np
import pytest
from diffs.analyses.networks import resnet, sizes, vit
from diffs.analyses.small import decoder
from diffs.analyses.test_architecture_comparison import headers

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

CONFIG = {"num_attention_heads": 4, "num_key_value_heads": 4}


def speed(left, right, thresholds=None, config=None, hardware=None, **options):
    side = Side(config=config)
    evidence = Evidence(left=side, right=side, hardware=hardware)
    policy = Policy({"inference_speed_estimate": thresholds or {}})
    return analyse("inference_speed_estimate", diff(left, right, **options), evidence, policy)


def halved(model):
    return {name: value.astype(np.float16) for name, value in model.items()}


def test_without_a_machine_there_is_work_and_a_ratio_but_no_time():
    envelope = speed(decoder(), halved(decoder()))

    fields = envelope.fields
    assert (fields["speedup"], fields["speedup_if_compute_bound"]) == (2.0, 1.0)
    assert fields["time_per_token_ms"] is fields["bound"] is None
    needs = {each.field: each.needs for each in envelope.missing}
    assert needs["time_per_token_ms"].startswith("--measure-hardware")


def test_the_ratio_lies_between_memory_bound_and_compute_bound_whatever_the_machine():
    limits = speed(decoder(), halved(decoder())).uncertainty["speedup"]

    for hardware in ((1e9, 1e15), (1e15, 1e9), (1e10, 1e10)):
        machine = dict(zip(("bandwidth_bytes", "peak_flops"), hardware, strict=True))
        found = speed(decoder(), halved(decoder()), hardware=machine).fields["speedup"]
        assert limits.low - 1e-12 <= found <= limits.high + 1e-12


def test_measured_hardware_gives_times_and_what_bounds_them():
    machine = {"bandwidth_bytes": 1e9, "peak_flops": 1e12}

    fields = speed(decoder(), halved(decoder()), hardware=machine).fields

    assert fields["bound"] == {"left": "memory", "right": "memory"}
    assert fields["time_per_token_ms"]["left"] == pytest.approx(fields["bytes"]["left"] / 1e6)
    assert fields["speedup"] == 2.0


def test_a_datasheet_is_an_upper_bound_and_says_so():
    machine = {"bandwidth_bytes": 1e9, "peak_flops": 1e12}

    envelope = speed(decoder(), decoder(), thresholds=machine)

    assert "upper_bound" in envelope.basis["time_per_token_ms"]


def test_a_model_against_itself_is_as_fast():
    fields = speed(decoder(), decoder(), config=CONFIG).fields

    assert fields["speedup"] == fields["speedup_if_compute_bound"] == 1.0


def test_swapping_the_sides_turns_the_ratio_over():
    there, back = speed(decoder(2), decoder(4)), speed(decoder(4), decoder(2))

    assert there.fields["speedup"] == pytest.approx(1 / back.fields["speedup"])


def test_a_longer_context_reads_more_of_the_cache():
    short, long = (
        speed(decoder(), decoder(), {"context": context}, CONFIG).fields for context in (10, 1000)
    )

    cache = 2 * 3 * 16 * 2 * 990
    assert long["bytes"]["left"] - short["bytes"]["left"] == cache


def test_kernels_need_output_sizes_and_224_is_never_guessed(tmp_path):
    path = headers(tmp_path, "resnet", resnet((2, 2, 2, 2), bottleneck=False))

    envelope = speed(path, path, shape_only=True)

    assert envelope.fields["flops"] is None
    assert "output_sizes" in {each.field: each.needs for each in envelope.missing}["flops"]


def test_resnet_50_does_two_operations_a_multiply_add(tmp_path):
    parts = list(resnet((3, 4, 6, 3), bottleneck=True))
    path = headers(tmp_path, "resnet", parts)

    fields = speed(path, path, {"output_sizes": sizes(parts)}, shape_only=True).fields

    assert fields["flops"]["left"] / 2e9 == pytest.approx(4.089, abs=0.001)


def test_a_vision_transformer_needs_the_image_and_its_heads(tmp_path):
    path = headers(tmp_path, "vit", vit(16))
    config = {"num_attention_heads": 12, "hidden_size": 768, "num_hidden_layers": 12}

    fields = speed(path, path, {"input_size": [224, 224]}, config, shape_only=True).fields

    assert fields["flops"]["left"] / 2e9 == pytest.approx(17.564, abs=0.001)


def test_unknown_heads_leave_attention_out_and_say_so():
    envelope = speed(decoder(), decoder())

    assert any("attention over the context is not counted" in said for said in envelope.assumptions)
    assert envelope.fields["prefill"] is None
