import pytest

from difflens.core.records import TensorInfo
from difflens.diffs.pairing import pair
from difflens.diffs.pairing.ties import family, lone_aliases, tie_candidates


def tensors(*names, shape=(8, 4), dtype="F32"):
    return {name: TensorInfo(name, dtype, shape) for name in names}


def proposed(left, right):
    ties = tie_candidates(pair(left, right), left, right)
    return [(tie.side, tie.head.name, tie.embedding.name) for tie in ties]


@pytest.mark.parametrize(
    ("head", "embedding"),
    [
        ("lm_head.weight", "model.embed_tokens.weight"),
        ("lm_head.weight", "transformer.wte.weight"),
        ("output.weight", "tok_embeddings.weight"),
        ("output.weight", "token_embd.weight"),
        ("embed_out.weight", "gpt_neox.embed_in.weight"),
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("module.lm_head.weight", "module.model.decoder.embed_tokens.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ],
)
def test_a_head_one_side_dropped_is_proposed_on_the_side_that_has_it(head, embedding):
    both, one = tensors(head, embedding), tensors(embedding)

    assert proposed(both, one) == [("left", head, embedding)]
    assert proposed(one, both) == [("right", head, embedding)]


def test_the_index_is_the_place_of_the_lone_tensor_among_the_pairs():
    left = tensors("a.weight", "lm_head.weight", "model.embed_tokens.weight")
    right = tensors("a.weight", "model.embed_tokens.weight")
    pairs = pair(left, right)

    (tie,) = tie_candidates(pairs, left, right)

    assert pairs[tie.index].left is tie.head
    assert pairs[tie.index].right is None


def test_an_alias_of_an_embedding_is_proposed_with_every_partner():
    full = tensors("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")

    assert proposed(full, tensors("shared.weight")) == [
        ("left", "decoder.embed_tokens.weight", "shared.weight"),
        ("left", "encoder.embed_tokens.weight", "shared.weight"),
    ]


def test_a_dropped_embedding_is_proposed_with_the_head_that_stayed():
    full = tensors("lm_head.weight", "transformer.wte.weight")

    assert proposed(full, tensors("lm_head.weight")) == [
        ("left", "transformer.wte.weight", "lm_head.weight")
    ]


def test_a_head_of_another_shape_or_dtype_is_not_proposed():
    embedding = tensors("model.embed_tokens.weight")

    assert proposed(embedding | tensors("lm_head.weight", shape=(9, 4)), embedding) == []
    assert proposed(embedding | tensors("lm_head.weight", dtype="BF16"), embedding) == []


def test_a_head_whose_embedding_went_too_is_removed_not_tied():
    gone = tensors("lm_head.weight", "model.embed_tokens.weight")

    assert proposed(gone | tensors("a"), tensors("a")) == []


def test_an_embedding_under_another_prefix_still_counts_as_kept():
    left = tensors("lm_head.weight", "model.embed_tokens.weight")
    right = tensors("module.model.embed_tokens.weight")

    assert proposed(left, right) == [("left", "lm_head.weight", "model.embed_tokens.weight")]


def test_a_matrix_inside_a_block_is_nobody_s_head():
    assert family("model.layers.0.attention.output.weight") == ""
    assert list(lone_aliases(pair(tensors("layers.0.output.weight"), {}))) == []


def test_models_with_the_same_names_have_no_candidates():
    model = tensors("lm_head.weight", "model.embed_tokens.weight")

    assert proposed(model, model) == []
