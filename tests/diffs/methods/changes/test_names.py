"""Every change by its name, on matrices whose rows and columns differ in size as real ones do."""

import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff

BF16 = ml_dtypes.bfloat16
QV = ("q_proj.weight", "v_proj.weight")


def trained_like(width=96, layers=3, seed=0):
    """Scale each row and column of a decoder by a size of its own, with heavy tails."""
    random = np.random.default_rng(seed)
    model = {}
    for name, value in decoder(layers, seed=seed, width=width).items():
        sizes = [np.exp(random.normal(0, 0.5, length)) for length in value.shape]
        tails = random.standard_t(5, value.shape)
        scale = np.outer(*sizes) if value.ndim > 1 else sizes[0]
        model[name] = (0.03 * tails * scale).astype(np.float32)
    return model


MODEL = trained_like()


def answer(left, right):
    return analyse("change_summary", diff(left, right)).fields


def kinds(left, right):
    return [record["kind"] for record in answer(left, right)["changes"]]


def stored(model, dtype, back=np.float32):
    return {name: value.astype(dtype).astype(back) for name, value in model.items()}


def truncated(value):
    bits = value.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


def adapted(rank, relative=0.03, seed=1):
    """Merge a LoRA that is so large, relative to the weights."""

    def merge(value):
        random = np.random.default_rng([seed, value.size])
        wide = value.astype(np.float64)
        up, down = (np.linalg.qr(random.normal(size=(size, rank)))[0] for size in value.shape)
        added = (up * 0.8 ** np.arange(rank)) @ down.T
        return wide + added * relative * np.linalg.norm(wide) / np.linalg.norm(added)

    return merge


def halved(value):
    return np.where(np.abs(value) <= np.median(np.abs(value)), 0, value)


def drawn(value):
    random = np.random.default_rng(value.size)
    return random.normal(0, value.std(), value.shape)


CAST = {"from": "F32", "to": "BF16", "stored": "F32", "rounding": "nearest", "lossless": False}


def test_values_rounded_and_stored_as_before_are_a_cast_and_no_fine_tune():
    (record,) = answer(MODEL, stored(MODEL, BF16))["changes"]

    assert record["kind"] == "cast"
    assert record["numbers"] == CAST
    assert record["tensors"] == len(MODEL)
    assert record["share"] == pytest.approx(1)


@pytest.mark.parametrize("to", [np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_every_coarser_float_is_a_cast(to):
    assert kinds(MODEL, stored(MODEL, to)) == ["cast"]


@pytest.mark.parametrize("back", [np.float32, BF16])
def test_a_truncating_cast_is_told_from_one_to_nearest(back):
    other = {name: truncated(value).astype(back) for name, value in MODEL.items()}

    (record,) = answer(MODEL, other)["changes"]

    assert record["kind"] == "cast"
    assert record["numbers"]["rounding"] == "truncated"


@pytest.mark.parametrize("dtype", [None, BF16, np.float16])
@pytest.mark.parametrize("rank", [1, 4, 8])
def test_the_rank_of_a_lora_is_exact(rank, dtype):
    left = MODEL if dtype is None else {k: v.astype(dtype) for k, v in MODEL.items()}

    (record,) = answer(left, changed(left, adapted(rank, 0.05), *QV))["changes"]

    assert record["kind"] == "low_rank"
    assert record["numbers"]["rank"] == rank
    assert sorted(record["names"]) == sorted(n for n in MODEL if n.endswith(QV))


@pytest.mark.parametrize("relative", [0.001, 0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_no_rank_is_above_the_truth(dtype, relative):
    left = {name: value.astype(dtype) for name, value in MODEL.items()}
    other = changed(left, adapted(6, relative), *QV)

    for record in answer(left, other)["changes"]:
        if record["kind"] == "low_rank":
            assert record["numbers"]["least_rank"] <= 6


def test_directions_that_rounding_may_hide_leave_the_rank_open():
    left = {name: value.astype(BF16) for name, value in MODEL.items()}

    said = answer(left, changed(left, adapted(12, 0.01), *QV))

    (record,) = said["changes"]
    assert record["numbers"]["rank"] is None
    assert "or more" in said["sentence"]


def test_one_element_and_a_cast_are_no_lora():
    other = {name: value.copy() for name, value in MODEL.items()}
    other["model.layers.1.self_attn.q_proj.weight"][3, 5] = 5.0

    found = answer(MODEL, stored(other, BF16))["changes"]

    assert [record["kind"] for record in found] == ["sparse_edit", "cast"]
    assert found[0]["numbers"]["elements"] == 1
    assert found[0]["names"] == ["model.layers.1.self_attn.q_proj.weight"]


@pytest.mark.parametrize("back", [np.float32, BF16])
@pytest.mark.parametrize(
    ("change", "parts", "kind"),
    [
        (halved, ("proj.weight",), "pruned"),
        (nudged, ("layers.2.",), "trained"),
        (adapted(4, 0.05), QV, "low_rank"),
        (drawn, ("layers.2.mlp",), "reinitialised"),
    ],
)
def test_a_change_and_a_cast_are_both_named(change, parts, kind, back):
    other = changed(MODEL, change, *parts)
    cast = {name: value.astype(BF16).astype(back) for name, value in other.items()}

    found = answer(MODEL, cast)["changes"]

    assert [record["kind"] for record in found] == [kind, "cast"]
    names = [name for name in MODEL if any(part in name for part in parts)]
    assert sorted(found[0]["names"]) == sorted(names)
    assert found[1]["tensors"] == len(MODEL)


def test_pruning_then_a_cast_says_how_much():
    found = answer(MODEL, stored(changed(MODEL, halved, "proj.weight"), BF16))

    assert found["changes"][0]["numbers"]["sparsity"] == pytest.approx(0.5, abs=0.01)
    assert "50 % of the weights" in found["sentence"]
    assert "then rounded to BF16" in found["sentence"]
    assert "fine-tune" not in found["sentence"]


def test_zeros_that_change_their_sign_are_no_change():
    left = {name: value.copy() for name, value in MODEL.items()}
    for value in left.values():
        value.flat[::7] = -0.0
    other = {name: value + 0.0 for name, value in left.items()}

    found = answer(left, other)

    assert found["changes"] == []
    assert found["sentence"].startswith("only the sign of zeros changed in")


def test_pruning_to_a_plain_zero_where_a_negative_one_was_is_still_pruning():
    left = {name: value.copy() for name, value in MODEL.items()}
    left["model.layers.0.mlp.up_proj.weight"][0, :9] = -0.0
    other = changed(left, lambda value: halved(value) + 0.0, "up_proj")

    assert kinds(left, other) == ["pruned"]


def test_a_fine_tune_of_everything_is_called_one():
    found = answer(MODEL, changed(MODEL, nudged, ""))

    assert [record["kind"] for record in found["changes"]] == ["trained"]
    assert found["sentence"].startswith("full fine-tune")
    assert found["unexplained"] == 0


def test_noise_on_everything_is_no_training():
    random = np.random.default_rng(3)
    other = changed(MODEL, lambda v: v + random.normal(0, 0.05 * v.std(), v.shape), "")

    assert kinds(MODEL, other) == ["noise"]


def test_a_strange_model_is_unrelated_and_nothing_else():
    assert kinds(MODEL, trained_like(seed=9)) == ["unrelated"]


def test_one_matrix_drawn_anew_is_named():
    name = "model.layers.1.mlp.up_proj.weight"

    (record,) = answer(MODEL, changed(MODEL, drawn, name))["changes"]

    assert (record["kind"], record["names"]) == ("reinitialised", [name])


def test_a_transposed_matrix_is_named():
    name = "model.layers.1.self_attn.q_proj.weight"

    assert kinds(MODEL, changed(MODEL, lambda value: value.T, name)) == ["transposed"]


def test_two_matrices_exchanged_are_named():
    one, two = (f"model.layers.1.self_attn.{part}_proj.weight" for part in "qk")
    other = MODEL | {one: MODEL[two], two: MODEL[one]}

    (record,) = answer(MODEL, other)["changes"]

    assert record["kind"] == "exchanged"
    assert sorted(record["names"]) == sorted([one, two])


def test_flipped_signs_are_named():
    assert kinds(MODEL, changed(MODEL, lambda value: -value, "1.mlp.up")) == ["sign_flipped"]


def test_bytes_in_reverse_order_are_corruption():
    other = changed(MODEL, lambda value: value.byteswap(), "1.mlp.up")

    found = answer(MODEL, other)

    assert [record["kind"] for record in found["changes"]] == ["corrupted"]
    assert "bytes of every value are in reverse" in found["sentence"]


def test_one_direction_removed_from_all_is_no_lora():
    random = np.random.default_rng(2)
    away = random.normal(size=96)
    away /= np.linalg.norm(away)
    other = changed(
        MODEL, lambda value: value - np.outer(away, away @ value), "o_proj", "down_proj"
    )

    (record,) = answer(MODEL, other)["changes"]

    assert record["kind"] == "abliterated"
    assert record["numbers"]["matrices"] == 6


def test_orders_that_do_not_fit_each_other_change_the_outputs():
    random = np.random.default_rng(4)
    names = [f"model.layers.0.mlp.{part}_proj.weight" for part in ("up", "down")]
    other = dict(MODEL)
    other[names[0]] = MODEL[names[0]][random.permutation(192)]
    other[names[1]] = MODEL[names[1]][:, random.permutation(192)]

    found = answer(MODEL, other)

    assert [record["kind"] for record in found["changes"]] == ["permuted_inconsistently"]
    assert "outputs differ" in found["sentence"]


def by_group(value, size, onto):
    groups = value.astype(np.float64).reshape(-1, size or value.shape[1])
    return onto(groups).reshape(value.shape)


def absmax(top):
    return lambda g: np.rint(g / (s := np.abs(g).max(1, keepdims=True) / top)) * s


def nf4(groups):
    from difflens.diffs.methods.changes.grids import _NF4

    table, scale = np.array(_NF4), np.abs(groups).max(1, keepdims=True)
    return table[np.abs((groups / scale)[..., None] - table).argmin(-1)] * scale


@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize(
    ("size", "onto", "bits", "group"),
    [
        (0, absmax(127), 8, "row"),
        (32, absmax(127), 8, 32),
        (32, absmax(7), 4, 32),
        (32, nf4, 4, 32),
    ],
)
def test_floats_on_a_grid_are_named_with_bits_and_group(size, onto, bits, group, dtype):
    left = {name: value.astype(dtype) for name, value in MODEL.items()}

    (record,) = answer(left, changed(left, lambda v: by_group(v, size, onto), "proj.weight"))[
        "changes"
    ]

    assert record["kind"] == "quantised"
    assert (record["numbers"]["bits"], record["numbers"]["group"]) == (bits, group)


def test_a_palette_is_no_grid():
    random = np.random.default_rng(5)

    def onto(value):
        colours = np.sort(random.choice(value.ravel(), 16, replace=False))
        return colours[np.abs(value[..., None] - colours).argmin(-1)]

    (record, *_) = answer(MODEL, changed(MODEL, onto, "1.mlp.up"))["changes"]

    assert record["kind"] == "palette"
    assert record["numbers"]["colours"] == 16


def test_elements_that_moved_far_between_others_that_did_not_are_no_fine_tune():
    random = np.random.default_rng(6)
    tuned = changed(MODEL, nudged, "proj.weight")
    other = {
        name: np.where(random.random(value.shape) < 0.2, 5 * tuned[name] - 4 * value, value)
        for name, value in MODEL.items()
    }

    found = answer(MODEL, other)

    assert "fine-tune" not in found["sentence"]
    assert "--base would tell" in found["sentence"]


def test_the_size_of_a_change_says_over_what_it_is():
    name = "model.layers.0.self_attn.q_proj.bias"
    found = answer(MODEL, changed(MODEL, drawn, name))

    assert found["magnitude"] > 0.5
    assert found["magnitude_over"]["tensors"] == 1
    assert found["magnitude_over"]["of_parameters"] == sum(v.size for v in MODEL.values())
    assert found["whole_magnitude"] < 0.05


def test_a_matrix_that_is_not_square_is_transposed_and_not_reshaped():
    name = next(name for name in MODEL if "up_proj" in name)
    turned = {**MODEL, name: np.ascontiguousarray(MODEL[name].T)}

    (record,) = answer(MODEL, turned)["changes"]

    assert (record["kind"], record["names"]) == ("transposed", [name])


def test_units_in_another_order_are_still_named_after_a_cast():
    order = np.random.default_rng(3).permutation(len(MODEL["model.layers.1.mlp.up_proj.weight"]))
    turned = dict(MODEL)
    for name in ("gate_proj", "up_proj"):
        key = f"model.layers.1.mlp.{name}.weight"
        turned[key] = MODEL[key][order]
    key = "model.layers.1.mlp.down_proj.weight"
    turned[key] = np.ascontiguousarray(MODEL[key][:, order])

    assert sorted(kinds(MODEL, stored(turned, BF16, BF16))) == ["cast", "permuted"]


def test_groups_that_run_from_row_to_row_have_their_size():
    def onto(value):
        groups = value.reshape(-1, 64).astype(np.float64)
        scale = np.abs(groups).max(axis=1, keepdims=True) / 7
        return (np.rint(groups / scale) * scale).reshape(value.shape)

    wide = trained_like(width=96)
    (record,) = answer(wide, changed(wide, onto, *QV))["changes"]

    assert 96 % 64
    assert (record["kind"], record["numbers"]["group"]) == ("quantised", 64)


def test_many_zeros_keep_to_a_pattern_by_chance_and_are_not_said_to():
    def sparse(value):
        return np.where(np.abs(value) <= np.quantile(np.abs(value), 0.98), 0, value)

    (record,) = answer(MODEL, changed(MODEL, sparse, "mlp"))["changes"]

    assert (record["kind"], record["numbers"]["pattern"]) == ("pruned", "unstructured")


def test_training_in_directions_that_fade_is_no_lora():
    def fading(value):
        random = np.random.default_rng(value.size)
        wide = value.astype(np.float64)
        up, down = (np.linalg.qr(random.normal(size=(n, 48)))[0] for n in value.shape)
        added = (up * 0.85 ** np.arange(48)) @ down.T + 0.004 * random.normal(size=value.shape)
        return wide + 0.05 * added * np.linalg.norm(wide) / np.linalg.norm(added)

    found = answer(MODEL, changed(MODEL, fading, "_proj.weight"))

    assert {record["kind"] for record in found["changes"]} <= {"trained", "noise"}
