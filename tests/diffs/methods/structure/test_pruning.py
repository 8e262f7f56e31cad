import json

import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, trained, tuned
from diffs.methods.structure.records import found, kinds
from hypothesis import given
from hypothesis import strategies as st

MODEL = decoder(3)


def without_units(model, kept, layer=0):
    """Keep these units of a feed-forward layer."""
    right, block = dict(model), f"model.layers.{layer}.mlp"
    for part in ("gate", "up"):
        right[f"{block}.{part}_proj.weight"] = model[f"{block}.{part}_proj.weight"][kept]
    right[f"{block}.down_proj.weight"] = model[f"{block}.down_proj.weight"][:, kept]
    return right


def without_heads(model, kept, layer=0):
    """Keep these rows of q, k and v, and columns of o."""
    right, block = dict(model), f"model.layers.{layer}.self_attn"
    for part in "qkv":
        right[f"{block}.{part}_proj.weight"] = model[f"{block}.{part}_proj.weight"][kept]
    right[f"{block}.o_proj.weight"] = model[f"{block}.o_proj.weight"][:, kept]
    return right


def narrower(model, kept, width=32):
    """Keep these dimensions of the residual stream."""
    right = {}
    for name, value in model.items():
        is_reader = value.ndim == 2 and not name.endswith(("o_proj.weight", "down_proj.weight"))
        right[name] = value[:, kept] if is_reader else value[kept] if len(value) == width else value
    return right


def convolutions(seed=0):
    random = np.random.default_rng(seed)
    return {
        "conv1.weight": trained(random, (16, 3, 3, 3)),
        "bn1.weight": trained(random, (16,)),
        "bn1.running_var": np.abs(trained(random, (16,))),
        "conv2.weight": trained(random, (24, 16, 3, 3)),
        "fc.weight": trained(random, (10, 24)),
    }


@given(st.sets(st.integers(0, 47), min_size=1, max_size=40))
def test_the_units_that_were_removed_are_recovered(gone):
    kept = sorted(set(range(48)) - gone)

    (record,) = found(MODEL, without_units(MODEL, kept))

    assert record.kind == "pruned_structurally"
    assert record.numbers["removed"] == sorted(gone)
    assert sorted(record.names) == [
        f"model.layers.0.mlp.{part}_proj.weight" for part in ("down", "gate", "up")
    ]


def test_units_of_several_layers_are_one_record():
    random = np.random.default_rng(3)
    right = MODEL
    for layer in range(3):
        right = without_units(right, np.sort(random.permutation(48)[:36]), layer)

    (record,) = found(MODEL, right)

    assert record.numbers == {"what": "units", "from": 48, "to": 36, "places": 3}
    assert record.text == (
        "12 of 48 units removed in each of 3 places: attention of layers 0-2".replace(
            "attention", "mlp"
        )
    )


def test_what_was_trained_on_after_pruning_is_still_recognised():
    record, *_ = found(MODEL, tuned(without_units(MODEL, list(range(8, 48)))))

    assert record.numbers["removed"] == list(range(8))
    assert 0.01 < record.numbers["relative_l2"] < 0.03


def test_what_was_cast_after_pruning_was_only_rounded():
    right = without_units(MODEL, list(range(8, 48)))
    right = {name: value.astype(ml_dtypes.bfloat16) for name, value in right.items()}

    record, *_ = found(MODEL, right)

    assert record.text.endswith("(what is left moved by rounding only)")


def test_heads_are_counted_where_the_settings_say_how_wide_they_are(tmp_path):
    from safetensors.numpy import save_file

    kept = [row for row in range(32) if row // 8 != 2]
    for side, model, heads in (("l", MODEL, 4), ("r", without_heads(MODEL, kept), 3)):
        (tmp_path / side).mkdir()
        save_file(
            {name: np.ascontiguousarray(value) for name, value in model.items()},
            tmp_path / side / "model.safetensors",
        )
        config = {"hidden_size": 32, "num_attention_heads": heads, "head_dim": 8}
        (tmp_path / side / "config.json").write_text(json.dumps(config))

    record, *_ = found(tmp_path / "l", tmp_path / "r")

    assert record.numbers == {
        "what": "heads", "from": 4, "to": 3, "places": 1, "removed": [2]
    }  # fmt: skip
    assert record.text.startswith("1 of 4 heads removed")


def test_without_settings_heads_are_not_counted():
    (record,) = found(MODEL, without_heads(MODEL, [r for r in range(32) if r // 8 != 2]))

    assert record.numbers["what"] == "heads"
    assert record.text.startswith("8 of 32 rows removed with attention heads")


def test_the_width_of_the_residual_stream_is_a_dimension_of_everything():
    kept = sorted(set(range(32)) - {1, 5, 6, 30})

    (record,) = found(MODEL, narrower(MODEL, kept))

    assert record.numbers["what"] == "width"
    assert record.numbers["removed"] == [1, 5, 6, 30]
    assert len(record.names) == len(MODEL)


def test_channels_of_convolutions_take_their_norms_with_them():
    left, kept = convolutions(), [0, 1, 2, 5, 6, 9, 10, 11, 15]
    right = left | {name: left[name][kept] for name in left if "1." in name}
    right["conv2.weight"] = left["conv2.weight"][:, kept]

    record, *_ = found(left, right)

    assert record.numbers["what"] == "channels"
    assert (record.numbers["from"], record.numbers["to"]) == (16, 9)
    assert {"conv1.weight", "conv2.weight", "bn1.weight"} <= set(record.names)


def test_chained_convolutions_that_all_lost_channels_are_followed():
    left = convolutions()
    one, two = [0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    right = left | {name: left[name][one] for name in left if "1." in name}
    right["conv2.weight"] = left["conv2.weight"][two][:, one]
    right["fc.weight"] = left["fc.weight"][:, two]

    record, *_ = found(left, right)

    assert record.numbers["places"] == 2
    assert "conv2.weight" in record.names


def test_rows_and_columns_that_do_not_belong_together_are_no_pruning():
    right = without_units(MODEL, list(range(36)))
    right["model.layers.0.mlp.down_proj.weight"] = MODEL["model.layers.0.mlp.down_proj.weight"][
        :, 12:
    ]

    assert kinds(MODEL, right) == ["reshaped"]


@pytest.mark.parametrize("seed", [5, 6])
def test_a_smaller_stranger_was_not_pruned(seed):
    assert kinds(MODEL, decoder(3, hidden=36, seed=seed)) == []
    assert kinds(MODEL, decoder(3, width=24, seed=seed)) == []


def test_layers_that_were_drawn_anew_in_a_smaller_size_were_not_pruned():
    other = decoder(3, hidden=36, seed=5)

    right = {name: other[name] if "mlp" in name else value for name, value in MODEL.items()}

    assert kinds(MODEL, right) == ["reshaped"]


def test_rows_alone_are_no_pruning():
    name = "model.layers.0.mlp.up_proj.weight"

    assert kinds(MODEL, MODEL | {name: MODEL[name][:40]}) == ["reshaped"]
