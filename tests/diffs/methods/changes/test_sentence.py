import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import GENERATORS, changed, decoder, nudged, poked

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff

MODEL = decoder()
WHOLE = len(MODEL)


def said(left, right, **options):
    return analyse("change_summary", diff(left, right, **options)).fields["sentence"]


def test_the_same_model_twice():
    assert said(MODEL, MODEL) == f"every one of {WHOLE} tensors is bit-identical"


def test_a_model_of_one_tensor():
    one = {"a": np.ones(2, np.float32)}

    assert said(one, one) == "the tensor is bit-identical"
    assert said(one, {"a": np.array([1, 2], np.float32)}) == "1 element of a changed"


def test_a_cast():
    assert said(MODEL, GENERATORS["dtype_cast"](MODEL)) == (
        f"cast from F32 to BF16: all {WHOLE} tensors, nothing moved by more than storage rounding"
    )


def test_a_cast_that_loses_nothing():
    half = decoder(dtype=np.float16)

    assert said(half, {k: v.astype(np.float32) for k, v in half.items()}).endswith("no value moved")


def test_a_cast_of_some():
    other = {k: v.astype(ml_dtypes.bfloat16) if "mlp" in k else v for k, v in MODEL.items()}

    assert said(MODEL, other) == (
        f"cast from F32 to BF16: 9 of {WHOLE} tensors, nothing moved by more than storage rounding;"
        " everything else bit-identical"
    )


def test_a_scale():
    assert said(MODEL, GENERATORS["uniform_scale"](MODEL)) == (
        f"every one of {WHOLE} tensors was multiplied by 1.1"
    )


def test_a_scale_of_some():
    other = changed(MODEL, lambda value: value * np.float32(2), "up_proj")

    assert said(MODEL, other) == (
        f"3 of {WHOLE} tensors were multiplied by 2 (all in mlp.up_proj of layers 0-2);"
        " everything else bit-identical"
    )


def test_a_change_in_one_kind_of_module():
    sentence = said(MODEL, GENERATORS["mixed"](MODEL))

    assert sentence.startswith(
        f"3 of {WHOLE} tensors changed, all in mlp.up_proj of layers 0-2 (relative L2 "
    )
    assert sentence.endswith("; everything else bit-identical")


def test_a_change_in_one_tensor_names_it():
    sentence = said(MODEL, GENERATORS["head_only"](MODEL))

    assert sentence.startswith(f"1 of {WHOLE} tensors changed: lm_head.weight (relative L2 ")


def test_a_change_of_biases_says_so():
    sentence = said(MODEL, GENERATORS["bias_only"](MODEL))

    assert f"9 of {WHOLE} tensors changed, all biases in attention of layers 0-2" in sentence


def test_a_sparse_change_says_how_sparse():
    assert "(only 0.39 % of their elements, " in said(MODEL, changed(MODEL, poked, "q_proj.weight"))


def test_tensors_that_came_went_and_were_resized():
    other = {name: value for name, value in MODEL.items() if "layernorm" not in name}
    other |= {"extra.weight": np.ones(2, np.float32)}
    other["lm_head.weight"] = np.ones((50, 16), np.float32)

    assert said(MODEL, other) == (
        "lm_head replaced: 48 to 50 outputs; 3 tensors of input_layernorm of layers 0-2 removed;"
        " extra.weight added; everything else bit-identical"
    )


def test_new_nans_are_said_right_after_the_change():
    other = changed(MODEL, nudged, "1.mlp.up_proj")
    other["model.layers.1.mlp.up_proj.weight"].flat[:12] = np.nan

    assert (
        "; 12 NaN/Inf values appeared in model.layers.1.mlp.up_proj.weight; "
        in said(MODEL, other)
    )  # fmt: skip


def test_new_nans_in_many_tensors_name_the_worst():
    other = changed(MODEL, nudged, "mlp.up_proj")
    for i in range(3):
        other[f"model.layers.{i}.mlp.up_proj.weight"].flat[: i + 1] = np.inf

    assert (
        "6 NaN/Inf values appeared in 3 tensors, most in model.layers.2.mlp.up_proj.weight"
        in said(MODEL, other)
    )


def test_a_prefix_on_all_names_is_mentioned_last():
    other = {f"module.{name}": value for name, value in MODEL.items()}

    assert said(MODEL, other) == (
        f"every one of {WHOLE} tensors is bit-identical; {WHOLE} tensors renamed (prefix +module.)"
    )


def test_a_tied_head_is_neither_added_nor_removed():
    tied = MODEL | {"lm_head.weight": MODEL["model.embed_tokens.weight"]}
    other = {name: value for name, value in tied.items() if name != "lm_head.weight"}

    sentence = said(tied, other)

    assert "1 tensor tied to another of its side (lm_head.weight)" in sentence
    assert "removed" not in sentence


def test_what_moved_within_epsilon_is_not_a_change():
    sentence = said(MODEL, changed(MODEL, nudged, "up_proj"), epsilon=1.0)

    assert sentence == (
        "3 tensors moved by no more than epsilon; everything else bit-identical"
    )  # fmt: skip


@pytest.mark.parametrize("tag", GENERATORS)
def test_a_sentence_fits_two_lines(tag):
    assert len(said(MODEL, GENERATORS[tag](MODEL))) <= 200


def test_no_models_at_all():
    envelope = analyse("change_summary", diff({}, {}))

    assert envelope.status == "not_applicable"


def test_a_tensor_that_became_all_zeros_is_named():
    left = {"a.weight": np.ones((2, 2), np.float32), "b.weight": np.ones(3, np.float32)}
    right = {"a.weight": np.zeros((2, 2), np.float32), "b.weight": np.ones(3, np.float32)}

    said = analyse("change_summary", diff(left, right)).fields["sentence"]

    assert "a.weight is all zeros now" in said
