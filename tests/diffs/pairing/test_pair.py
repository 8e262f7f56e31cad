from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import UnknownName
from difflens.core.natural_order import natural_key
from difflens.core.records import Pair, TensorInfo
from difflens.diffs.pairing import is_prefix_rename, pair

CORES = ["a.weight", "a.bias", "layers.0.w", "layers.10.w", "layers.2.w", "q.base_layer.weight"]
FRONTS = ["", "module.", "model.", "module._orig_mod.", "bert.", "encoder."]
names = st.builds(str.__add__, st.sampled_from(FRONTS), st.sampled_from(CORES))
shapes = st.sampled_from([(2, 3), (3, 2), (6,), (4, 2), ()])


def tensors(*names, shape=(2, 3), dtype="F32"):
    return {name: TensorInfo(name, dtype, shape) for name in names}


@st.composite
def models(draw):
    drawn = draw(st.dictionaries(names, shapes, max_size=12))
    return {name: TensorInfo(name, "F32", shape) for name, shape in drawn.items()}


def sides(pairs):
    return [(each.left and each.left.name, each.right and each.right.name) for each in pairs]


def mirrored(how):
    swapped = how.translate(str.maketrans("+-", "-+"))
    parts = []
    for part in swapped.split(", "):
        where, _, change = part.partition(" ")
        left, arrow, right = change.partition(" +> ")
        parts.append(f"{where} {right} -> {left}" if arrow else part)
    return ", ".join(parts)


@given(models())
def test_a_model_pairs_with_itself_by_exact_names_alone(model):
    pairs = pair(model, model)

    assert {each.how for each in pairs} <= {"exact"}
    assert [each.left for each in pairs] == [each.right for each in pairs]


@given(models(), models())
def test_swapping_the_sides_swaps_the_pairs(left, right):
    there, back = pair(left, right), pair(right, left)

    swapped = [Pair(each.right, each.left, mirrored(each.how)) for each in there]
    assert sorted(map(repr, swapped)) == sorted(map(repr, back))


@given(models(), models(), st.randoms())
def test_the_order_of_tensors_in_a_file_is_irrelevant(left, right, random):
    items = list(left.items())
    random.shuffle(items)

    assert pair(dict(items), right) == pair(left, right)


@given(models(), models(), shapes)
def test_an_unrelated_tensor_changes_no_other_pair(left, right, shape):
    stranger = tensors("stranger.weight", shape=shape)

    pairs = pair(left | stranger, right | stranger)

    assert [each for each in pairs if each.name != "stranger.weight"] == pair(left, right)


@given(models(), models(), st.sampled_from(["auto", "exact"]))
def test_every_tensor_appears_exactly_once(left, right, match):
    pairs = pair(left, right, match=match)

    assert sorted(each.left.name for each in pairs if each.left) == sorted(left)
    assert sorted(each.right.name for each in pairs if each.right) == sorted(right)
    assert all(each.left or each.right for each in pairs)


@given(models(), models())
def test_pairs_are_in_natural_order_of_their_names(left, right):
    found = [each.name for each in pair(left, right)]

    assert found == sorted(found, key=natural_key)


@given(models(), models())
def test_matching_exactly_never_renames(left, right):
    assert not any(each.renamed for each in pair(left, right, match="exact"))


@pytest.mark.parametrize(
    ("left", "right", "how"),
    [
        ("module.a.w", "a.w", "prefix -module."),
        ("a.w", "model.a.w", "prefix +model."),
        ("module._orig_mod.model.a.w", "a.w", "prefix -module._orig_mod.model."),
        ("q_proj.base_layer.weight", "q_proj.weight", "suffix -.base_layer"),
        ("a.weight_orig", "a.weight", "suffix -.weight_orig"),
        ("a.weight", "a.parametrizations.weight.original", None),
    ],
)
def test_a_wrapped_tensor_finds_its_partner_and_says_how(left, right, how):
    (found,) = pair(tensors(left), tensors(right))

    assert (found.left.name, found.right.name) == (left, right)
    assert found.how == (how or "suffix +.parametrizations.weight.original")
    assert is_prefix_rename(found)


def test_a_name_two_tensors_could_mean_is_left_alone():
    pairs = pair(tensors("module.w", "model.w"), tensors("w"))

    assert sides(pairs) == [("model.w", None), ("module.w", None), (None, "w")]
    assert {each.how for each in pairs} == {"alone"}


def test_a_name_that_an_exact_pair_may_claim_is_left_alone():
    pairs = pair(tensors("w", "model.w"), tensors("w", "module.w"))

    assert sides(pairs) == [("model.w", None), (None, "module.w"), ("w", "w")]


def test_a_resized_tensor_is_paired_where_the_rest_uses_the_same_rule():
    left = tensors("module.a", "module.b") | tensors("module.emb", shape=(10, 3))
    right = tensors("a", "b") | tensors("emb", shape=(12, 3))

    assert ("module.emb", "emb") in sides(pair(left, right))


def test_a_resized_tensor_under_another_name_alone_is_not_paired():
    pairs = pair(tensors("module.emb", shape=(10, 3)), tensors("emb", shape=(12, 3)))

    assert sides(pairs) == [(None, "emb"), ("module.emb", None)]


def test_a_tensor_of_another_rank_and_size_is_not_paired_by_a_prefix():
    left = tensors("module.a") | tensors("module.b", shape=(5,))
    right = tensors("a") | tensors("b", shape=(7, 2))

    assert ("module.b", "b") not in sides(pair(left, right))


def test_a_flattened_tensor_of_the_same_size_is_paired():
    (found,) = pair(tensors("module.a", shape=(6,)), tensors("a", shape=(2, 3)))

    assert found.how == "prefix -module."


def test_exact_pairs_and_lone_tensors_are_no_prefix_renames():
    pairs = pair(tensors("a", "b"), tensors("a", "c"))

    assert not any(map(is_prefix_rename, pairs))


def test_an_unknown_way_to_match_is_answered_with_the_known_ones():
    with pytest.raises(UnknownName, match="'exakt'") as caught:
        pair({}, {}, match="exakt")

    assert caught.value.hint == "did you mean exact?"


@pytest.mark.parametrize("front", ["", "module."])
def test_a_hundred_thousand_tensors_pair_in_a_moment(front):
    names = [f"layers.{i}.experts.{j}.weight" for i in range(1000) for j in range(100)]
    left, right = tensors(*names), tensors(*(front + name for name in names))
    pair(left, right)
    start = process_time()

    pairs = pair(left, right)

    seconds = process_time() - start
    assert len(pairs) == len(names)
    assert seconds < 2  # measured on two busy cores: 0.2 exact, 0.65 renamed
