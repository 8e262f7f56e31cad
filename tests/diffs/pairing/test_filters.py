"""Which pairs are wanted: by name, of either side."""

import pytest

from difflens.core.errors import DifflensError
from difflens.core.records import Pair, TensorInfo
from difflens.diffs.pairing import filter_pairs

PAIRS = [
    Pair(TensorInfo(left, "F32", ()), TensorInfo(right, "F32", ()))
    for left, right in (("a.weight", "a.weight"), ("old.b", "new.b"), ("c.bias", "c.bias"))
]


def names(pairs: list[Pair]) -> list[str]:
    return [pair.name for pair in pairs]


def test_a_text_keeps_names_that_contain_it_on_either_side():
    assert names(filter_pairs(PAIRS, "old", None)) == ["new.b"]
    assert names(filter_pairs(PAIRS, "tensor.a.w", None)) == ["a.weight"]


def test_an_expression_drops_names_it_finds_a_match_in_on_either_side():
    assert names(filter_pairs(PAIRS, None, r"^old|bias$")) == ["a.weight"]


def test_a_misspelt_name_does_not_look_like_two_equal_models():
    with pytest.raises(DifflensError, match="no name contains 'wieght'"):
        filter_pairs(PAIRS, "wieght", None)
    with pytest.raises(DifflensError, match="no name is left without a match of"):
        filter_pairs(PAIRS, None, ".")


def test_two_empty_models_may_be_filtered():
    assert filter_pairs([], "anything", None) == []


def test_an_expression_that_is_none_is_told():
    with pytest.raises(DifflensError, match="no regular expression"):
        filter_pairs(PAIRS, None, "(")
