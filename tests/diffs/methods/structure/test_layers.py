import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, relayered, trained, tuned
from diffs.methods.structure.records import found, kinds
from hypothesis import given
from hypothesis import strategies as st

MODEL = decoder(8)
PARTS = 9  # tensors in a block


@pytest.mark.parametrize(
    ("order", "kind", "text"),
    [
        ([0, 1, 2, 3, 4, 5], "layers_removed", "layers 6 and 7 removed: right 0-5 are left 0-5"),
        (
            [0, 1, 5, 6, 7],
            "layers_removed",
            "layers 2-4 removed: right 0 and 1 are left 0 and 1, right 2-4 are left 5-7",
        ),
        ([0, 1, 2, 7, 4, 5, 6, 3], "layers_swapped", "layers 3 and 7 exchanged"),
        ([7, 6, 5, 4, 3, 2, 1, 0], "layers_reordered", "all 8 layers in reverse order"),
        ([0, 1, 2, 3, 4, 4, 6, 7], "layers_duplicated", "layer 5 is now a copy of layer 4"),
        (
            [0, 1, 2, 3, 2, 3, 4, 5, 6, 7],
            "layers_duplicated",
            "layers 2 and 3 duplicated: right 0-3 are left 0-3, right 4-9 are left 2-7",
        ),
    ],
)
def test_blocks_that_went_came_or_changed_places_are_named(order, kind, text):
    (record,) = found(MODEL, relayered(MODEL, order))

    assert (record.kind, record.text) == (kind, text)
    assert record.numbers["sources"] == order


def test_every_tensor_of_a_block_that_is_not_in_its_place_is_explained():
    (record,) = found(MODEL, relayered(MODEL, [0, 1, 5, 6, 7]))

    assert len(record.names) == 6 * PARTS
    assert record.share == 1.0


def test_layers_removed_and_the_rest_trained_on_are_still_recognised():
    (record,) = found(MODEL, tuned(relayered(MODEL, [0, 1, 5, 6, 7])))

    assert record.numbers["which"] == [2, 3, 4]
    assert record.share == pytest.approx(1, abs=0.01)
    assert record.text.endswith("(what is left moved: relative L2 0.014)")


def test_layers_removed_and_the_rest_cast_were_only_rounded():
    right = relayered(MODEL, [0, 1, 5, 6, 7])
    right = {name: value.astype(ml_dtypes.bfloat16) for name, value in right.items()}

    (record,) = found(MODEL, right)

    assert record.text.endswith("(what is left moved by rounding only)")


@given(st.permutations(range(8)))
def test_any_order_of_the_layers_is_recovered(order):
    records = found(MODEL, relayered(MODEL, order))

    assert records == [] if order == sorted(order) else records[0].numbers["sources"] == order


def test_copies_with_zeroed_outputs_are_the_expansion_by_blocks():
    right = relayered(MODEL, [0, 1, 2, 3, 3, 4, 5, 6, 7])
    for part in ("self_attn.o_proj", "mlp.down_proj"):
        right[f"model.layers.4.{part}.weight"] = np.zeros_like(
            right[f"model.layers.4.{part}.weight"]
        )

    record, *_ = found(MODEL, right)

    assert record.kind == "layers_duplicated"
    assert record.text == (
        "layer 4 is now a copy of layer 3; mlp.down_proj and self_attn.o_proj of the copy are zeros"
    )


def test_layers_that_are_new_were_added():
    random = np.random.default_rng(7)
    right = relayered(MODEL, [0, 1, 2, 3, 4, 5, 6, 7, 0])
    right = {
        name: trained(random, value.shape) if ".layers.8." in name else value
        for name, value in right.items()
    }

    (record,) = found(MODEL, right)

    assert (record.kind, record.numbers["which"]) == ("layers_added", [8])


def test_experts_that_changed_places_are_called_experts():
    random = np.random.default_rng(0)
    names = [f"layers.{i}.moe.experts.{j}.w1.weight" for i in (0, 1) for j in range(4)]
    left = {name: trained(random, (32, 24)) for name in names}
    right = dict(left)
    one, other = names[1], names[2]
    right[one], right[other] = left[other], left[one]

    (record,) = found(left, right)

    assert record.text == "experts 1 and 2 exchanged"
    assert record.names == [one, other]


@pytest.mark.parametrize("seed", [3, 4])
def test_strangers_have_no_layers_in_common(seed):
    assert kinds(MODEL, decoder(8, seed=seed)) == []
    assert kinds(MODEL, decoder(6, seed=seed)) == []


@pytest.mark.parametrize("relative", [0.001, 0.1, 0.5])
def test_training_moves_no_layer(relative):
    assert kinds(MODEL, tuned(MODEL, relative)) == []


def test_one_block_drawn_anew_is_no_change_of_places():
    random = np.random.default_rng(7)
    right = {
        name: trained(random, value.shape) if ".layers.2." in name else value
        for name, value in MODEL.items()
    }

    assert kinds(MODEL, right) == []


def test_equal_blocks_are_taken_to_be_in_their_places():
    """In a model whose blocks share their weights, any order is the same model."""
    shared = relayered(MODEL, [0] * 8)

    assert kinds(shared, shared) == []
    assert kinds(shared, tuned(shared)) == []
    (record,) = found(shared, relayered(shared, [0] * 6))
    assert record.numbers["which"] == [6, 7]


def test_a_swapped_pair_of_matrices_is_not_a_swapped_pair_of_layers():
    right = dict(MODEL)
    for part, other in (("q", "k"), ("k", "q")):
        right[f"model.layers.2.self_attn.{part}_proj.weight"] = MODEL[
            f"model.layers.2.self_attn.{other}_proj.weight"
        ]

    assert kinds(MODEL, right) == []
