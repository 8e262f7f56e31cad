import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, trained, tuned
from diffs.methods.structure.records import found, kinds

WIDTH = 64
MODEL = decoder(2, width=WIDTH, hidden=96, words=300)


def orthogonal(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def gain_of(name):
    """Name the gain that stands before a matrix."""
    if name.startswith("lm_head"):
        return "model.norm.weight"
    part = "input_layernorm" if "self_attn" in name else "post_attention_layernorm"
    return f"{'.'.join(name.split('.')[:3])}.{part}.weight"


def rotated(model, *, fold=True, seed=3):
    """Fold the gains, then see the residual stream in other axes, as QuaRot does."""
    turn, right = orthogonal(WIDTH, seed), {}
    for name, value in model.items():
        if "norm" in name:
            right[name] = np.ones_like(value) if fold else value
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            right[name] = (turn.T @ value).astype("f4")
        else:
            gain = model[gain_of(name)] if fold and "embed" not in name else 1
            right[name] = ((value * gain) @ turn).astype("f4")
    return right


def turned_inside(model):
    """Turn the values of a head too, and the units before the last matrix."""
    right = dict(model)
    for layer in range(2):
        block = f"model.layers.{layer}"
        values, units = orthogonal(WIDTH, 10 + layer), orthogonal(96, 20 + layer)
        for name, change in (
            (f"{block}.self_attn.v_proj.weight", lambda w, q=values: q @ w),
            (f"{block}.self_attn.o_proj.weight", lambda w, q=values: w @ q.T),
            (f"{block}.mlp.down_proj.weight", lambda w, q=units: w @ q),
        ):
            right[name] = change(model[name]).astype("f4")
    return right


def cast(model):
    return {name: value.astype(ml_dtypes.bfloat16) for name, value in model.items()}


@pytest.mark.parametrize("after", [lambda model: model, cast])
@pytest.mark.parametrize("fold", [True, False])
def test_a_rotated_residual_stream_is_recognised_whatever_the_rotation(fold, after):
    (record,) = found(MODEL, after(rotated(MODEL, fold=fold)))

    assert record.kind == "rotated"
    assert record.numbers["width"] == WIDTH
    assert record.numbers["gains"] == (5 if fold else 0)
    assert len([name for name in record.names if "norm" not in name]) == 16
    assert record.share == pytest.approx(1, abs=1e-3)


def test_matrices_that_were_turned_on_both_sides_belong_to_it():
    (record,) = found(MODEL, turned_inside(rotated(MODEL)))

    assert len(record.names) == len(MODEL)
    assert "turned on the other side too" in record.text


def test_a_matrix_that_was_turned_by_another_rotation_is_left_out():
    name = "model.layers.1.mlp.up_proj.weight"
    right = rotated(MODEL) | {name: rotated(MODEL, seed=4)[name]}

    record = found(MODEL, right)[0]

    assert name not in record.names


def test_an_embedding_that_was_turned_alone_is_no_rotation_of_the_stream():
    name = "model.embed_tokens.weight"

    assert "rotated" not in kinds(MODEL, MODEL | {name: rotated(MODEL)[name]})


def test_a_matrix_that_was_drawn_anew_is_not_a_rotated_one():
    random = np.random.default_rng(0)
    name = "model.layers.0.mlp.down_proj.weight"
    right = rotated(MODEL)
    right[name] = trained(random, right[name].shape) * right[name].std()

    assert name not in found(MODEL, right)[0].names


@pytest.mark.parametrize(
    "right",
    [
        decoder(2, width=WIDTH, hidden=96, words=300, seed=4),
        tuned(MODEL, 0.02),
        tuned(MODEL, 1.0),
        {name: -value for name, value in MODEL.items()},
        {name: value[..., ::-1].copy() for name, value in MODEL.items()},
    ],
    ids=["stranger", "tuned", "noise", "signs", "order"],
)
def test_nothing_else_is_a_rotation(right):
    assert "rotated" not in kinds(MODEL, right)
