import numpy as np
import pytest
from diffs.methods.structure.models import decoder, trained, tuned
from diffs.methods.structure.records import found, kinds


def classifier(classes=5, seed=1, name="classifier", head_seed=1):
    random = np.random.default_rng(head_seed)
    model = decoder(2, seed=seed)
    del model["lm_head.weight"]
    model[f"{name}.weight"] = trained(random, (classes, 32))
    model[f"{name}.bias"] = trained(random, (classes,))
    return model


def test_another_number_of_classes_is_another_head():
    (record,) = found(classifier(5), classifier(9, head_seed=2))

    assert record.kind == "head_replaced"
    assert record.names == ["classifier.bias", "classifier.weight"]
    assert record.numbers == {"from": 5, "to": 9, "kept": 0}
    assert record.text == "classifier replaced: 5 to 9 outputs"


def test_classes_that_were_added_leave_the_first_ones_as_they_were():
    left, right = classifier(9), classifier(9)
    for name in ("classifier.weight", "classifier.bias"):
        left[name] = right[name][:5]

    (record,) = found(left, right)

    assert record.numbers == {"from": 5, "to": 9, "kept": 5}
    assert record.text == "classifier resized from 5 to 9 outputs, the first 5 unchanged"


def test_a_head_of_the_same_shape_that_was_drawn_anew_is_named():
    (record,) = found(classifier(5), classifier(5, head_seed=2))

    assert record.kind == "reinitialised"
    assert record.share == 1.0
    assert record.text.startswith("classifier drawn anew")


def test_a_head_under_another_name_replaces_the_one_before():
    (record,) = found(decoder(2, seed=1), classifier(5))

    assert record.text == "head lm_head replaced by classifier"
    assert record.names == ["lm_head.weight", "classifier.bias", "classifier.weight"]


def test_a_head_that_only_came_is_a_tensor_added():
    left = decoder(2, seed=1)
    del left["lm_head.weight"]

    (record,) = found(left, classifier(5))

    assert record.kind == "tensors_added"


@pytest.mark.parametrize("relative", [0.02, 1.0, 3.0])
def test_a_head_that_was_trained_on_is_not_another_one(relative):
    left = decoder(2)
    head = {"lm_head.weight": left["lm_head.weight"]}

    assert kinds(left, left | tuned(head, relative)) == []


@pytest.mark.parametrize(
    "change", [np.flipud, np.zeros_like, np.negative, lambda head: head * np.float32(1e8)]
)
def test_rows_in_another_order_zeros_signs_and_scales_are_no_new_head(change):
    left = decoder(2)

    right = left | {"lm_head.weight": np.ascontiguousarray(change(left["lm_head.weight"]))}

    assert kinds(left, right) == []


def test_a_stranger_has_no_replaced_head():
    assert kinds(classifier(5), classifier(9, seed=8, head_seed=2)) == []
    assert kinds(classifier(5), classifier(5, seed=8, head_seed=2)) == []
