"""What edits do to the numbers, held against NumPy, and what they say of it."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.changes import edits
from zoo.changes.model import Model, as_float, dtype_of, stored
from zoo.changes.pairs import edited


def a_model(seed=0):
    rng = np.random.default_rng(seed)
    return Model(
        {
            "layers.0.q.weight": rng.standard_normal((64, 64)).astype(np.float32),
            "layers.0.v.weight": rng.standard_normal((64, 64)).astype(np.float32),
            "layers.1.q.weight": rng.standard_normal((64, 64)).astype(np.float32),
            "layers.1.v.weight": rng.standard_normal((64, 64)).astype(np.float32),
            "up.weight": rng.standard_normal((128, 64)).astype(np.float32),
            "up.bias": rng.standard_normal(128).astype(np.float32),
            "down.weight": rng.standard_normal((64, 128)).astype(np.float32),
            "ids": np.arange(4),
        },
        {"vocab_size": 128, "layers": 2},
    )


def only(built):
    (expected,) = [each for each in built.expected if not each.optional]
    return expected


def moved(built, name):
    return as_float(built.right.tensors[name]) - as_float(built.left.tensors[name])


@pytest.mark.parametrize("dtype", [None, "BF16", "F16"])
@pytest.mark.parametrize("rank", [1, 4, 16])
def test_a_lora_has_its_rank_its_size_and_its_tensors(rank, dtype):
    left = stored(a_model(), dtype) if dtype else a_model()
    built = edited(left, edits.lora(r"q\.weight", rank, 1, relative=0.3))
    expected = only(built)

    for name in ("layers.0.q.weight", "layers.1.q.weight"):
        delta, weight = moved(built, name), as_float(left.tensors[name])
        values = np.linalg.svd(delta, compute_uv=False)
        assert values[rank - 1] > 5 * values[rank]
        assert np.linalg.norm(delta) / np.linalg.norm(weight) == pytest.approx(0.3, rel=0.01)
        assert dtype_of(built.right.tensors[name]) == (dtype or "F32")
    assert expected.kind == "low_rank"
    assert expected.names == {"layers.0.q.weight", "layers.1.q.weight"}
    assert expected.numbers["rank"] == (rank, rank)


def test_a_rank_that_storage_drowns_may_be_named_lower():
    left = stored(a_model(), "BF16")

    expected = only(edited(left, edits.lora("up.weight", 8, 1, relative=0.01, decay=0.5)))

    least, most = expected.numbers["rank"]
    assert most == 8
    assert 0 < least < 8


def test_a_cast_rounds_to_nearest_and_truncation_cuts():
    name, left = "up.weight", a_model()
    nearest = edited(left, edits.cast("BF16")).right.tensors[name]
    cut = edited(left, edits.through("BF16", rounding="truncated")).right.tensors[name]

    bits = left.tensors[name].view(np.uint32)
    assert (cut.view(np.uint32) == bits & 0xFFFF0000).all()
    errors = np.abs(as_float(nearest) - left.tensors[name])
    assert (errors <= np.abs(as_float(cut) - left.tensors[name]) + 1e-12).all()


def test_a_cast_is_asked_of_the_tensors_that_nothing_else_changed():
    built = edited(a_model(), edits.prune(r"q\.weight", 0.5), edits.cast("BF16"))
    cast, pruned = built.expected

    assert (cast.kind, cast.numbers["from"], cast.numbers["to"]) == ("cast", "F32", "BF16")
    assert pruned.names == {"layers.0.q.weight", "layers.1.q.weight"}
    assert not cast.names & pruned.names
    assert pruned.names <= cast.maybe
    assert "ids" not in cast.maybe


@pytest.mark.parametrize(
    ("sparsity", "pattern"),
    [(0.5, "unstructured"), (0.9, "unstructured"), (0.5, "2:4"), (0.5, "4:8"), (0.25, "rows")],
)
def test_pruning_zeroes_the_smallest_and_leaves_the_rest(sparsity, pattern):
    built = edited(a_model(), edits.prune(r"up\.weight", sparsity, pattern))
    before, after = (side.tensors["up.weight"] for side in (built.left, built.right))

    assert (after == 0).mean() == pytest.approx(sparsity, abs=0.01)
    assert (before[after != 0] == after[after != 0]).all()
    if ":" in pattern:
        few, many = map(int, pattern.split(":"))
        assert ((after.reshape(-1, many) != 0).sum(1) == few).all()
    if pattern == "rows":
        assert set((after == 0).mean(1)) == {0.0, 1.0}
    low, high = only(built).numbers["sparsity"]
    assert low < sparsity < high


@pytest.mark.parametrize("scheme", edits.SCHEMES)
def test_a_grid_has_no_more_levels_than_its_bits(scheme):
    built = edited(a_model(), edits.quantise(r"up\.weight", scheme))
    values, numbers = built.right.tensors["up.weight"], only(built).numbers
    size = {"row": values.shape[1], "tensor": values.size}.get(numbers["group"], numbers["group"])
    levels = max(len(np.unique(group)) for group in values.reshape(-1, size))

    assert levels <= 2 ** np.mean(numbers["bits"]) + 0.1
    error = np.linalg.norm(moved(built, "up.weight")) / np.linalg.norm(
        built.left.tensors["up.weight"]
    )
    assert 0 < error < (0.6 if scheme == "ternary" else 0.25)


def test_statistics_and_single_elements_need_not_be_named_and_may_be():
    left = Model(
        {
            "conv.weight": np.ones((4, 4), np.float32),
            "bn.running_mean": np.ones(4, np.float32),
            "temperature": np.ones(1, np.float32),
        }
    )

    scaled, state, element = edited(left, edits.scale(".", 2.0)).expected

    assert scaled.names == {"conv.weight"}
    assert scaled.maybe == set(left.tensors)
    assert (state.kind, state.maybe, state.optional) == ("state_changed", {"bn.running_mean"}, True)
    assert (element.kind, element.maybe) == ("sparse_edit", {"temperature"})


def test_a_palette_has_its_colours():
    built = edited(a_model(), edits.palette(r"up\.weight", 16))

    assert len(np.unique(built.right.tensors["up.weight"])) == 16


def test_a_consistent_permutation_keeps_the_function_and_an_inconsistent_one_does_not():
    left = a_model()
    inputs = np.random.default_rng(1).standard_normal((5, 64))

    def run(model):
        w = model.tensors
        return np.maximum(inputs @ w["up.weight"].T + w["up.bias"], 0) @ w["down.weight"].T

    places = [("up.weight", 0), ("up.bias", 0), ("down.weight", 1)]
    kept = edited(left, edits.permute(places, seed=1)).right
    lost = edited(left, edits.permute_inconsistently(places[0], places[2], seed=1)).right

    assert np.allclose(run(left), run(kept))
    assert not np.allclose(run(left), run(lost), rtol=0.1)


def test_rescaled_channels_keep_the_product_and_no_value():
    left = a_model()
    edit = edits.rescale_channels(("up.weight", 0), ("down.weight", 1), seed=1)
    right = edited(left, edit).right

    products = [m.tensors["down.weight"] @ m.tensors["up.weight"] for m in (left, right)]
    assert np.allclose(*products, atol=1e-3)
    assert not np.isclose(left.tensors["up.weight"], right.tensors["up.weight"], rtol=0.01).all()


def test_a_rotation_keeps_products_of_writers_and_readers():
    left = a_model()
    turned = edited(left, edits.rotate(("down.weight", 0), ("up.weight", 1), seed=1)).right

    before = left.tensors["up.weight"] @ left.tensors["down.weight"]
    after = turned.tensors["up.weight"] @ turned.tensors["down.weight"]
    assert np.allclose(before, after, atol=1e-3)


def test_abliteration_leaves_one_direction_out_of_every_matrix():
    built = edited(a_model(), edits.abliterate(r"layers.*weight", 3))
    deltas = np.hstack([moved(built, name) for name in only(built).names])
    values = np.linalg.svd(deltas, compute_uv=False)

    assert values[0] > 1e4 * values[1]
    assert only(built).numbers == {"matrices": 4}


def test_layers_are_taken_from_where_the_order_says():
    built = edited(a_model(), edits.relayer("layers.", (1, 0), "layers_swapped"))

    assert (
        built.right.tensors["layers.0.q.weight"] == built.left.tensors["layers.1.q.weight"]
    ).all()
    assert built.expected[0].vague == ("layers_reordered",)


def test_a_vocabulary_keeps_the_rows_that_both_have():
    built = edited(a_model(), edits.resize_vocabulary(["up.weight"], 130, 1))
    after = built.right.tensors["up.weight"]

    assert after.shape == (130, 64)
    assert (after[:128] == built.left.tensors["up.weight"]).all()
    assert built.right.config == {"vocab_size": 130, "layers": 2}


def test_what_is_folded_computes_the_same():
    rng = np.random.default_rng(2)
    left = Model(
        {
            "conv.weight": rng.standard_normal((8, 4)).astype(np.float32),
            "bn.weight": rng.standard_normal(8).astype(np.float32),
            "bn.bias": rng.standard_normal(8).astype(np.float32),
            "bn.running_mean": rng.standard_normal(8).astype(np.float32),
            "bn.running_var": rng.uniform(1, 2, 8).astype(np.float32),
        }
    )
    folded = edited(left, edits.fold_batch_norm("conv", "bn")).right.tensors
    inputs, before = rng.standard_normal((3, 4)), left.tensors
    spread = np.sqrt(before["bn.running_var"] + 1e-5)
    normed = (inputs @ before["conv.weight"].T - before["bn.running_mean"]) / spread
    wanted = normed * before["bn.weight"] + before["bn.bias"]

    assert set(folded) == {"conv.weight", "conv.bias"}
    assert np.allclose(inputs @ folded["conv.weight"].T + folded["conv.bias"], wanted, atol=1e-4)


def test_weight_norm_folds_back_to_the_weight():
    model = a_model()
    split = edits.split_weight_norm(model, r"up\.weight")
    built = edited(split, edits.fold_weight_norm("up"))

    assert {"up.weight_g", "up.weight_v"} <= set(split.tensors)
    assert not np.allclose(split.tensors["up.weight_v"], model.tensors["up.weight"])
    assert np.allclose(built.right.tensors["up.weight"], model.tensors["up.weight"], rtol=1e-5)


@pytest.mark.parametrize(
    "edit",
    [edits.flip_zeros(r"up\.weight"), edits.rename("^", "model.")],
    ids=["zeros of the other sign", "renamed"],
)
def test_nothing_is_to_be_named_where_no_number_changed(edit):
    left = edited(a_model(), edits.prune(r"up\.weight", 0.5)).right

    assert edited(left, edit).expected == ()


def test_merges_are_what_their_papers_say():
    base, one, other = a_model(), a_model(1), a_model(2)
    name = "up.weight"
    start, a, b = (as_float(each.tensors[name]) for each in (base, one, other))

    ties = as_float(edits.ties(base, [one, other], 0.2).tensors[name]) - start
    dare = as_float(edits.dare(base, [one], 0.9, 1).tensors[name]) - start
    arc = as_float(edits.slerp(one, other, 0.5).tensors[name])
    task = as_float(edits.task_arithmetic(base, [one, other], [0.7, 0.4]).tensors[name])

    assert (ties != 0).mean() == pytest.approx(0.37, abs=0.05)
    assert (dare != 0).mean() == pytest.approx(0.1, abs=0.02)
    chosen = dare != 0
    assert np.allclose(dare[chosen], 10 * (a - start)[chosen], atol=1e-5)
    angle = np.arccos((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
    assert np.allclose(arc, np.sin(angle / 2) / np.sin(angle) * (a + b), atol=1e-5)
    assert np.allclose(task, start + 0.7 * (a - start) + 0.4 * (b - start), atol=1e-5)


def test_the_same_edit_draws_the_same_numbers_twice():
    first, second = (
        edited(a_model(), edits.lora("q", 4, 1), edits.add_noise("up", 0.1, 2)).right
        for _ in range(2)
    )

    assert all((first.tensors[name] == second.tensors[name]).all() for name in first.tensors)


def test_an_edit_that_matches_nothing_is_refused():
    with pytest.raises(ValueError, match="no tensor of the model matches 'nowhere'"):
        edited(a_model(), edits.scale("nowhere", 2.0))
