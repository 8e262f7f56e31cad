"""Names of less usual changes: other sizes, strengths, formats and combinations."""

import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import changed, nudged

from .test_names import BF16, MODEL, adapted, answer, by_group, drawn, kinds, stored, trained_like

LAYER = "model.layers.1"
UP, DOWN = f"{LAYER}.mlp.up_proj.weight", f"{LAYER}.mlp.down_proj.weight"


def symmetric(bits):
    def onto(groups):
        step = np.abs(groups).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
        return np.rint(groups / step) * step

    return onto


def asymmetric(bits):
    def onto(groups):
        low, high = (end(groups, axis=1, keepdims=True) for end in (np.min, np.max))
        step = (high - low) / (2**bits - 1)
        zero = np.rint(-low / step)
        return (np.clip(np.rint(groups / step) + zero, 0, 2**bits - 1) - zero) * step

    return onto


@pytest.mark.parametrize(
    ("onto", "bits", "size", "dtype"),
    [
        (symmetric(5), 5, 48, np.float32),
        (symmetric(3), 3, 12, np.float16),
        (asymmetric(4), 4, 24, np.float16),
        (asymmetric(2), 2, 8, BF16),
        (asymmetric(6), 6, 32, np.float32),
        (symmetric(7), 7, "tensor", BF16),
        (symmetric(7), 7, "row", np.float32),
    ],
)
def test_a_grid_of_any_bits_and_groups_is_named(onto, bits, size, dtype):
    left = {name: value.astype(dtype) for name, value in MODEL.items()}
    right = changed(
        left, lambda v: by_group(v, {"tensor": v.size, "row": None}.get(size, size), onto), "mlp"
    )

    (record,) = answer(left, right)["changes"]

    assert record["kind"] == "quantised"
    assert record["numbers"]["bits"] == bits
    assert record["numbers"]["group"] == size
    assert record["tensors"] == 9


def test_one_scheme_is_said_of_a_model_even_where_a_row_is_one_group():
    left = {"a.weight": MODEL[UP], "b.weight": MODEL[UP][:, :64].copy()}
    right = changed(left, lambda v: by_group(v, 32, symmetric(4)), "weight")
    left["b.weight"], right["b.weight"] = (
        np.ascontiguousarray(side["b.weight"][:, :32]) for side in (left, right)
    )

    (record,) = answer(left, right)["changes"]

    assert record["numbers"]["group"] == 32
    assert record["tensors"] == 2


def test_a_lora_on_a_grid_is_a_lora_and_no_way_back_from_the_grid():
    left = changed(MODEL, lambda v: by_group(v, 32, symmetric(4)), "proj.weight")
    right = changed(left, adapted(4, 0.1), "q_proj.weight", "v_proj.weight")

    (record,) = answer(left, right)["changes"]

    assert (record["kind"], record["numbers"]["rank"]) == ("low_rank", 4)


def test_the_floats_before_a_grid_are_named_as_such():
    left = changed(MODEL, lambda v: by_group(v, 32, symmetric(4)), "proj.weight")

    assert kinds(left, MODEL) == ["dequantised"]


@pytest.mark.parametrize("rows", [1, 7, 12])
def test_rows_that_were_rewritten_are_no_lora(rows):
    right = changed(MODEL, lambda v: np.concatenate([v[:rows] * 1.5 + 0.01, v[rows:]]), "up_proj")

    (record,) = answer(MODEL, right)["changes"]

    assert record["kind"] == "row_edit"
    assert record["numbers"]["rows"] == 3 * rows


def test_a_part_of_the_elements_that_were_set_is_no_training():
    def set_some(value):
        places = np.random.default_rng(value.size).random(value.shape) < 0.03
        return np.where(places, value.std(), value)

    assert kinds(MODEL, changed(MODEL, set_some, "up_proj")) == ["sparse_edit"]


@pytest.mark.parametrize("back", [np.float32, BF16])
def test_order_is_found_after_a_cast(back):
    order = np.random.default_rng(1).permutation(len(MODEL[UP]))
    right = dict(MODEL)
    for name in (UP, f"{LAYER}.mlp.gate_proj.weight"):
        right[name] = right[name][order]
    right[DOWN] = right[DOWN][:, order]

    assert kinds(MODEL, stored(right, BF16, back)) == ["permuted", "cast"]


def test_an_exchange_is_found_after_a_cast():
    names = [f"{LAYER}.self_attn.{part}_proj.weight" for part in "qk"]
    right = MODEL | {names[0]: MODEL[names[1]], names[1]: MODEL[names[0]]}

    assert kinds(MODEL, stored(right, np.float16)) == ["exchanged", "cast"]


def test_orders_of_matrices_that_no_other_shares_do_not_fit():
    left = {"one.a": MODEL[UP], "two.b": MODEL[DOWN], "three.c": MODEL[DOWN].copy()}
    random = np.random.default_rng(2)
    right = left | {
        "one.a": left["one.a"][random.permutation(len(left["one.a"]))],
        "two.b": left["two.b"][:, random.permutation(left["two.b"].shape[1])],
    }

    assert kinds(left, right) == ["permuted_inconsistently"]


@pytest.mark.parametrize(("left_of", "size"), [(1, 2), (1, 4), (3, 4), (2, 8), (4, 8)])
def test_a_mask_says_how_many_of_how_many_are_left(left_of, size):
    def mask(value):
        groups = np.abs(value).reshape(-1, size)
        rank = groups.argsort(axis=1).argsort(axis=1)
        return np.where((rank < size - left_of).reshape(value.shape), 0, value)

    (record,) = answer(MODEL, changed(MODEL, mask, "up_proj"))["changes"]

    assert record["numbers"]["pattern"] == f"{left_of}:{size}"


@pytest.mark.parametrize("factor", [1.01, 0.97])
def test_a_factor_that_rounding_hides_much_of_is_found(factor):
    left = {name: value.astype(BF16) for name, value in MODEL.items()}
    right = changed(left, lambda v: v.astype(np.float64) * factor, "up_proj")

    (record,) = answer(left, right)["changes"]

    assert record["kind"] == "scaled"
    assert record["numbers"]["c"] == pytest.approx(factor, rel=0.005)


def test_values_of_one_size_that_were_cut_off_are_no_scale():
    random = np.random.default_rng(3)
    left = MODEL | {"model.norm.weight": (1 + random.random(96) / 2).astype(np.float32)}
    bits = {name: value.view(np.uint32) & np.uint32(0xFFFF0000) for name, value in left.items()}

    assert kinds(left, {name: value.view(np.float32) for name, value in bits.items()}) == ["cast"]


def test_a_matrix_that_hardly_moved_has_the_update_of_its_peers():
    right = changed(MODEL, adapted(5, 0.05), "1.mlp.up", "1.mlp.gate")
    right = changed(right, adapted(5, 2e-7), "0.mlp.up")

    (record,) = answer(MODEL, right)["changes"]

    assert (record["kind"], record["numbers"]["rank"]) == ("low_rank", 5)
    assert record["tensors"] == 3


def test_a_rank_is_low_for_a_narrow_matrix_where_its_factors_are_smaller():
    left = {"narrow.weight": MODEL["lm_head.weight"][:, :32].copy(), "wide.weight": MODEL[UP]}

    (record,) = answer(left, changed(left, adapted(12), "narrow"))["changes"]

    assert (record["kind"], record["numbers"]["rank"]) == ("low_rank", 12)


def test_small_updates_that_few_values_show_are_training():
    left = {name: value.astype(BF16) for name, value in MODEL.items()}

    def step(value):
        wide = value.astype(np.float64)
        return wide + 2e-5 * np.sign(np.random.default_rng(value.size).normal(size=wide.shape))

    assert set(kinds(left, changed(left, step, "up_proj"))) == {"trained"}


def test_every_matrix_drawn_anew_beside_shared_vectors_makes_no_strangers():
    vectors = {name for name, value in MODEL.items() if value.ndim == 1}
    right = {k: v if k in vectors else drawn(v).astype(v.dtype) for k, v in MODEL.items()}
    right = {
        k: np.where(np.abs(v) > 0.05, v * 3, v) if k not in vectors else v for k, v in right.items()
    }

    assert kinds(MODEL, right) == ["reinitialised"]


def test_zero_biases_beside_matrices_drawn_anew_are_of_the_initialisation():
    right = {k: drawn(v).astype(v.dtype) if v.ndim > 1 else v * 0 for k, v in MODEL.items()}

    assert set(kinds(MODEL, right)) == {"reinitialised"}


def test_the_size_of_training_is_without_the_rounding_that_came_after():
    tuned = changed(MODEL, nudged, "up_proj")
    plain, cast = (answer(MODEL, each)["changes"] for each in (tuned, stored(tuned, BF16)))

    assert cast[0]["kind"] == "trained"
    assert cast[0]["numbers"]["relative_l2"] == pytest.approx(
        plain[0]["numbers"]["relative_l2"], rel=0.05
    )


def test_rounding_beside_one_outer_product_is_explained():
    left = {name: value.astype(BF16) for name, value in MODEL.items()}
    found = answer(left, changed(left, adapted(1, 0.004), "1.mlp.down"))

    assert [record["kind"] for record in found["changes"]] == ["outer_product"]
    assert not found["unexplained"] or found["unexplained"] < 0.1


def test_a_tensor_on_a_grid_is_cast_like_the_others():
    right = stored(
        changed(MODEL, lambda v: by_group(v, 32, symmetric(4)), "mlp"), np.float16, np.float16
    )

    records = {record["kind"]: record for record in answer(MODEL, right)["changes"]}

    assert records["cast"]["tensors"] == len(MODEL)


def test_eight_bit_floats_keep_their_name():
    right = stored(MODEL, ml_dtypes.float8_e4m3fn)

    assert kinds(MODEL, right) == ["cast"]


@pytest.mark.parametrize("rank", [20, 40])
def test_an_exact_rank_is_low_as_long_as_its_factors_are_smaller(rank):
    (record,) = answer(MODEL, changed(MODEL, adapted(rank), "0.self_attn.q_proj.weight"))["changes"]

    assert (record["kind"], record["numbers"]["rank"]) == ("low_rank", rank)


def test_small_tensors_have_the_palette_of_the_others():
    def shared(value):
        ends = np.quantile(value, np.linspace(0, 1, 65))
        places = np.clip(np.searchsorted(ends, value) - 1, 0, 63)
        return ((ends[:-1] + ends[1:]) / 2)[places]

    left = {f"{name}.weight": MODEL[UP][:rows] for name, rows in (("a", 96), ("b", 80), ("c", 8))}
    (record,) = answer(left, changed(left, shared, "weight"))["changes"]

    assert record["kind"] == "palette"
    assert record["tensors"] == 3


def test_single_elements_that_moved_alike_share_no_factor():
    left = MODEL | {"a.bias": np.array([0.5], "f4"), "b.bias": np.array([0.25], "f4")}
    right = left | {"a.bias": np.array([0.512], "f4"), "b.bias": np.array([0.2565], "f4")}

    assert "scaled" not in kinds(left, right)


def test_experts_and_their_router_in_another_order_compute_the_same():
    random = np.random.default_rng(4)
    stem = "model.layers.0.mlp"
    experts = {
        f"{stem}.gate.weight": random.normal(size=(6, 96)).astype("f4"),
        f"{stem}.experts.gate_up_proj": random.normal(size=(6, 64, 96)).astype("f4"),
        f"{stem}.experts.down_proj": random.normal(size=(6, 96, 32)).astype("f4"),
    }
    order = np.array([3, 0, 5, 1, 2, 4])

    right = MODEL | {name: value[order] for name, value in experts.items()}

    assert kinds(MODEL | experts, right) == ["permuted"]


@pytest.mark.parametrize("groups", ["row", "tensor"])
def test_bytes_with_scales_and_zero_points_are_a_grid(groups):
    value = MODEL[UP]
    size = value.size if groups == "tensor" else value.shape[1]
    rows = value.reshape(-1, size)
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    scale = (high - low) / np.float32(255)
    zero = np.rint(-low / scale)
    codes = np.clip(np.rint(rows / scale) + zero, 0, 255).astype(np.uint8)
    beside = {f"{UP}_scale": scale.astype("f4"), f"{UP}_zero_point": zero.astype(np.uint8)}
    right = MODEL | {UP: codes.reshape(value.shape)} | beside

    (record,) = answer(MODEL, right)["changes"]

    assert record["kind"] == "quantised"
    assert record["numbers"]["bits"] == 8
    assert record["numbers"]["group"] == groups
    assert record["text"].startswith(f"weights quantised to uint8 scaled by {groups}: 1 of")


def test_a_high_rank_beside_more_than_rounding_is_none():
    def merge(value):
        random = np.random.default_rng(value.size)
        noise = random.normal(0, 1e-5 * value.std(), value.shape)
        return adapted(30, 0.3)(value) + noise

    assert kinds(MODEL, changed(MODEL, merge, "0.self_attn.q_proj.weight")) == ["trained"]


def test_what_unrelated_models_have_in_common_is_counted():
    other = trained_like(seed=9) | {"model.norm.weight": MODEL["model.norm.weight"]}

    sentence = answer(MODEL, other)["sentence"]

    assert sentence.startswith("the models are not related")
    assert sentence.endswith("; 1 tensor bit-identical")
