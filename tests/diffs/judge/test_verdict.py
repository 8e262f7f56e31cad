"""Totals in, an answer out: what makes two models different, and how it is said."""

import pytest

from difflens.core.records import Totals
from difflens.diffs.judge import verdict

DIFFERENCES = {
    "changed": "changed",
    "recast": "cast to another dtype",
    "reshaped": "reshaped",
    "added": "added",
    "removed": "removed",
    "uncompared": "not compared",
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_one_tensor_of_these_kinds_makes_a_difference(kind):
    found = verdict(Totals(tensors=3, identical=2, **{kind: 1}))

    assert (found.differs, found.word) == (True, "different")
    assert found.sentence == f"different: 1 {DIFFERENCES[kind]}, of 3 tensors"


@pytest.mark.parametrize("kind", ["identical", "within_epsilon", "tied", "paired"])
def test_one_of_these_does_not(kind):
    assert not verdict(Totals(tensors=1, **{kind: 1}), epsilon=0.1).differs


def test_a_rename_beyond_a_prefix_differs_one_by_prefix_does_not():
    moved = Totals(tensors=2, identical=2, renamed=2, renamed_beyond_prefix=1)
    wrapped = Totals(tensors=2, identical=2, renamed=2)

    assert verdict(moved).sentence == "different: 1 renamed, of 2 tensors"
    assert verdict(wrapped).sentence == "equal: every value is the same; 2 carry another name"


def test_all_that_differs_is_named_in_one_order():
    kinds = dict.fromkeys(DIFFERENCES, 1)

    sentence = verdict(Totals(tensors=6, **kinds, renamed_beyond_prefix=2)).sentence

    assert sentence == (
        "different: 1 changed, 1 cast to another dtype, 1 reshaped, 1 added, 1 removed, "
        "1 not compared, 2 renamed, of 6 tensors"
    )


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (1, "identical: the one tensor holds the same bits"),
        (2, "identical: both tensors hold the same bits"),
        (3, "identical: all 3 tensors hold the same bits"),
        (12345, "identical: all 12,345 tensors hold the same bits"),
    ],
)
def test_identical_is_said_as_people_would(count, sentence):
    found = verdict(Totals(tensors=count, identical=count))

    assert (found.word, found.sentence) == ("identical", sentence)


def test_asides_are_told_and_make_it_equal_rather_than_identical():
    found = verdict(Totals(tensors=3, identical=2, tied=1, renamed=2), metadata_changes=2)

    assert found.word == "equal"
    assert found.sentence == (
        "equal: every value is the same; 2 carry another name, 1 stored once, as tied, "
        "2 metadata keys changed"
    )


def test_metadata_alone_is_no_difference():
    found = verdict(Totals(tensors=1, identical=1), metadata_changes=1)

    assert (found.differs, found.word) == (False, "equal")
    assert found.sentence.endswith("1 metadata key changed")


def test_within_epsilon_says_how_many_and_how_far():
    found = verdict(Totals(tensors=3, identical=2, within_epsilon=1), epsilon=1e-3)

    assert (found.differs, found.word) == (False, "within_epsilon")
    assert found.sentence == ("equal within epsilon: 1 of 3 tensors moved, none by more than 0.001")


def test_a_difference_outweighs_epsilon():
    assert verdict(Totals(tensors=2, changed=1, within_epsilon=1), epsilon=1.0).differs


@pytest.mark.parametrize(
    ("count", "who"),
    [(1, "the one tensor has"), (2, "both tensors have"), (5, "all 5 tensors have")],
)
def test_headers_alone_say_that_values_were_not_read(count, who):
    found = verdict(Totals(tensors=count, paired=count))

    assert (found.differs, found.word) == (False, "same_structure")
    assert found.sentence == f"same structure: {who} the same shape and dtype; values were not read"


def test_a_pair_without_a_tensor_is_never_the_same():
    found = verdict(Totals())

    assert (found.differs, found.word) == (True, "nothing_to_compare")
    assert found.sentence == "nothing to compare: neither side holds a tensor"
    assert verdict(Totals(), metadata_changes=1).sentence.endswith("; 1 metadata key changed")
