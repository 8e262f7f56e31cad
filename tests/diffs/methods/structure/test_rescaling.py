import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, tuned
from diffs.methods.structure.records import found, kinds

MODEL = decoder(2, width=64, hidden=96)
NORM = "model.layers.0.input_layernorm.weight"
READERS = [f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkv"]


def factors(size, seed=1):
    return np.exp(np.random.default_rng(seed).normal(0, 0.7, size)).astype(np.float32)


def smoothed(model):
    """Divide a gain by factors, and multiply the columns of the next matrices by them."""
    by = factors(64)
    right = model | {NORM: model[NORM] / by}
    return right | {name: model[name] * by for name in READERS}


def between(model):
    """Divide the rows of one matrix, and multiply the columns of the next."""
    by, block = factors(96), "model.layers.1.mlp"
    return model | {
        f"{block}.up_proj.weight": model[f"{block}.up_proj.weight"] / by[:, None],
        f"{block}.down_proj.weight": model[f"{block}.down_proj.weight"] * by,
    }


def folded(model):
    """Multiply a gain into the next matrices, and leave ones."""
    right = model | {NORM: np.ones_like(model[NORM])}
    return right | {name: model[name] * model[NORM] for name in READERS}


def cast(model):
    return {name: value.astype(ml_dtypes.bfloat16) for name, value in model.items()}


@pytest.mark.parametrize("after", [lambda model: model, cast])
@pytest.mark.parametrize(
    ("change", "kind", "tensors"),
    [
        (smoothed, "rescaled_channels", 4),
        (between, "rescaled_channels", 2),
        (folded, "norms_folded", 4),
    ],
)
def test_factors_that_moved_to_a_neighbour_are_recognised(change, kind, tensors, after):
    (record,) = found(MODEL, after(change(MODEL)))

    assert record.kind == kind
    assert len(record.names) == tensors
    assert record.share > 0.98


def test_both_at_once_are_one_record_of_all_their_tensors():
    (record,) = found(MODEL, between(smoothed(MODEL)))

    assert len(record.names) == 6
    assert record.share == pytest.approx(1)


@pytest.mark.parametrize("width", [8, 16])
def test_heads_that_share_their_values_are_followed(width):
    """Each head of values is read by two heads of queries."""
    values, outputs = (f"model.layers.0.self_attn.{part}_proj.weight" for part in "vo")
    left, by = MODEL | {values: MODEL[values][:32]}, factors(32)
    right = left | {
        values: left[values] / by[:, None],
        outputs: left[outputs] * np.repeat(by.reshape(-1, width), 2, axis=0).ravel(),
    }

    (record,) = found(left, right)

    assert (record.kind, set(record.names)) == ("rescaled_channels", {values, outputs})


def test_a_gain_of_negative_factors_folds_too():
    model = MODEL | {NORM: MODEL[NORM] * np.where(np.arange(64) % 3, 1, -1).astype("f4")}

    assert kinds(model, folded(model)) == ["norms_folded"]


def test_an_offset_goes_into_the_biases_of_the_next_matrices():
    offset = NORM.replace("weight", "bias")
    biases = [name.replace("weight", "bias") for name in READERS]
    random = np.random.default_rng(2)
    left = MODEL | {name: random.normal(0, 0.1, 64).astype("f4") for name in (offset, *biases)}
    right = folded(left) | {offset: np.zeros(64, np.float32)}
    for name, bias in zip(READERS, biases, strict=True):
        right[bias] = left[bias] + left[name] @ left[offset]

    (record,) = found(left, right)

    assert {offset, *biases} <= set(record.names)
    assert record.share == pytest.approx(1)


def test_an_offset_that_nobody_took_in_is_not_explained():
    offset = NORM.replace("weight", "bias")
    left = MODEL | {offset: np.full(64, 0.1, np.float32)}

    (record,) = found(left, folded(left) | {offset: np.zeros(64, np.float32)})

    assert offset not in record.names


@pytest.mark.parametrize("relative", [1e-4, 0.02, 0.5])
def test_training_rescales_nothing(relative):
    assert kinds(MODEL, tuned(MODEL, relative)) == []


def test_a_stranger_is_not_rescaled():
    assert kinds(MODEL, decoder(2, width=64, hidden=96, seed=4)) == []


def test_one_factor_for_all_is_no_matter_of_channels():
    assert kinds(MODEL, {name: value * np.float32(1.1) for name, value in MODEL.items()}) == []


def test_columns_that_nothing_undoes_are_not_explained():
    right = MODEL | {READERS[0]: MODEL[READERS[0]] * factors(64)}

    assert kinds(MODEL, right) == []


def test_factors_that_do_not_undo_each_other_are_not_explained():
    right = smoothed(MODEL) | {NORM: MODEL[NORM] / factors(64, seed=2)}

    assert kinds(MODEL, right) == []


def test_a_cast_alone_moves_no_factor():
    assert kinds(MODEL, cast(MODEL)) == []


@pytest.mark.parametrize("axis", [1, 2])
def test_gains_folded_into_stacked_experts_are_explained(axis):
    random = np.random.default_rng(3)
    experts = "model.layers.0.mlp.experts.gate_up_proj"
    norm = "model.layers.0.post_attention_layernorm.weight"
    shape = (6, 64, 48) if axis == 1 else (6, 48, 64)
    stack = random.normal(size=shape).astype(np.float32)
    gain = factors(64)
    wide = gain[:, None] if axis == 1 else gain
    left = MODEL | {experts: stack, norm: gain}
    right = left | {experts: stack * wide, norm: np.ones_like(gain)}

    (record,) = found(left, right)

    assert record.kind == "norms_folded"
    assert set(record.names) == {experts, norm}
