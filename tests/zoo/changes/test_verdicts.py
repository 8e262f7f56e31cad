"""How answers are scored, on labels and answers made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.changes.answers import Answer, Claim, Row, read
from zoo.changes.pairs import Expected
from zoo.changes.verdicts import judge

Q, V, UP = "q.weight", "v.weight", "up.weight"
FACTORS = {Q: (np.ones((2, 1)), np.ones((1, 2)))}
LORA = Expected(
    "low_rank", frozenset({Q, V}), {"rank": (8.0, 8.0)}, frozenset({Q, V}), factors=FACTORS
)
CAST = Expected("cast", frozenset({UP}), {"from": "F32", "to": "BF16"}, frozenset({Q, V, UP}))


def said(*claims, sentence="", records=True):
    return Answer(claims, sentence, records=records)


def a_claim(kind, *names, **numbers):
    return Claim(kind, frozenset(names), numbers)


LOW_RANK, TO_BF16 = (
    a_claim("low_rank", Q, V, rank=8),
    a_claim("cast", Q, V, UP, **{"from": "F32", "to": "BF16"}),
)


@pytest.mark.parametrize(
    ("outcome", "claims"),
    [
        ("right", [LOW_RANK, TO_BF16]),
        ("right", [TO_BF16, LOW_RANK]),
        ("right", [LOW_RANK, TO_BF16._replace(names=frozenset({UP}))]),
        ("right", [LOW_RANK, TO_BF16, a_claim("mixed")]),
        ("vague", [LOW_RANK]),
        ("vague", [LOW_RANK._replace(names=frozenset({Q})), TO_BF16]),
        ("vague", [LOW_RANK._replace(numbers={}), TO_BF16]),
        ("mixed", []),
        ("mixed", [a_claim("mixed", Q, V, UP)]),
        ("wrong", [LOW_RANK._replace(numbers={"rank": 9}), TO_BF16]),
        ("wrong", [LOW_RANK._replace(numbers={"rank": 7}), TO_BF16]),
        ("wrong", [LOW_RANK._replace(names=frozenset({Q, V, UP})), TO_BF16]),
        ("wrong", [LOW_RANK, TO_BF16, a_claim("trained", UP)]),
        ("wrong", [LOW_RANK, TO_BF16._replace(numbers={"from": "F32", "to": "F16"})]),
        ("wrong", [LOW_RANK, TO_BF16, a_claim("cast", "norm.weight", **TO_BF16.numbers)]),
    ],
)
def test_every_claim_is_held_against_the_label(outcome, claims):
    assert judge((LORA, CAST), said(*claims)).outcome == outcome


@pytest.mark.parametrize(
    ("rank", "verdict"), [(8, "exact"), (7, "below"), (9, "above"), (None, "unnamed")]
)
def test_a_rank_is_exact_below_above_or_unnamed(rank, verdict):
    claims = [] if rank is None else [a_claim("low_rank", Q, V, rank=rank)]

    assert judge((LORA,), said(*claims)).rank == verdict


def test_a_rank_that_noise_drowned_is_right_but_not_exact():
    drowned = LORA._replace(numbers={"rank": (6.0, 8.0)})

    verdict = judge((drowned,), said(a_claim("low_rank", Q, V, rank=6)))

    assert (verdict.outcome, verdict.rank) == ("right", "below")


def test_on_an_unchanged_pair_any_name_is_wrong():
    assert judge((), said()).outcome == "right"
    assert judge((), said(a_claim("trained", Q))).outcome == "wrong"


@pytest.mark.parametrize(
    "sentence",
    ["a rank-8 LoRA merged into q", "a full fine-tune of 3 tensors", "low-rank: rank 9 in q"],
)
def test_the_sentence_may_claim_no_more_than_the_records(sentence):
    cast = said(TO_BF16, sentence=sentence)

    assert judge((CAST._replace(names=CAST.maybe),), cast).outcome == "wrong"


def test_a_coarser_kind_is_vague_and_an_optional_one_may_be_left_out():
    noise = Expected("noise", frozenset({Q}), maybe=frozenset({Q}), vague=("trained",))
    beside = Expected("config_changed", None, optional=True)

    assert judge((noise, beside), said(a_claim("trained", Q))).outcome == "vague"
    assert judge((noise, beside), said(a_claim("noise", Q))).outcome == "right"
    assert judge((noise, beside), said(a_claim("noise", Q), a_claim("config_changed"))).outcome == (
        "right"
    )


def test_rows_count_over_all_records_of_the_kind():
    rows = Expected("row_edit", frozenset({Q, V}), {"rows": 5}, frozenset({Q, V}))

    assert judge((rows,), said(a_claim("row_edit", Q, rows=2), a_claim("row_edit", V, rows=3))) == (
        "right", (), None, "",
    )  # fmt: skip
    assert judge((rows,), said(a_claim("row_edit", Q, V, rows=4))).outcome == "wrong"


def test_of_two_labels_of_one_kind_the_one_with_the_tensors_counts():
    other = LORA._replace(
        names=frozenset({UP}), numbers={"rank": (4.0, 4.0)}, maybe=frozenset({UP})
    )
    claims = [a_claim("low_rank", Q, V, rank=8), a_claim("low_rank", UP, rank=4)]

    assert judge((LORA, other), said(*claims)).outcome == "right"
    assert judge((LORA, other), said(claims[0], a_claim("low_rank", UP, rank=8))).outcome == "wrong"


def test_a_crash_is_wrong_and_says_why():
    verdict = judge((LORA,), Answer((), "", records=False, error="ValueError: no"))

    assert verdict[:2] == ("wrong", ("ValueError: no",))


def test_records_are_read_where_there_are_records():
    record = {"kind": "cast", "names": [UP], "numbers": {"to": "BF16"}, "text": "cast"}

    answer = read({"sentence": "cast", "changes": [record]}, [])

    assert answer == Answer((Claim("cast", frozenset({UP}), {"to": "BF16"}, "cast"),), "cast", True)


def test_a_renamed_tensor_may_be_named_as_either_side_has_it():
    record = {"kind": "cast", "names": ["model." + UP, V], "numbers": {}}
    rows = [Row(UP, "model." + UP, "recast"), Row(V, "model." + V, "recast")]

    (claim,) = read({"sentence": "", "changes": [record]}, rows).claims

    assert claim.names == {UP, V}


def test_without_records_the_first_tag_is_a_claim_about_all_that_differs():
    fields = {"sentence": "", "patterns": ["full_finetune"], "evidence": {"full_finetune": {}}}

    rows = [Row(Q, Q, "identical"), Row(V, V, "changed"), Row(UP, UP, "recast")]
    (claim,) = read(fields, rows).claims

    assert claim == Claim("trained", frozenset({V, UP}), {})
    assert read({**fields, "patterns": ["mixed"]}, []).claims == ()
