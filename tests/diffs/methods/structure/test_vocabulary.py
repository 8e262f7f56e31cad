import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import decoder, trained, tuned
from diffs.methods.structure.records import found, kinds

from difflens.diffs.evidence.records import Evidence, Side

MODEL = decoder()
TABLES = ("model.embed_tokens.weight", "lm_head.weight")


def with_rows(model, change):
    """Change the rows of the embedding and of the head."""
    return {name: change(value) if name in TABLES else value for name, value in model.items()}


def longer(rows):
    """Append rows to a table."""
    return lambda table: np.concatenate([table, rows(table)]).astype("f4")


def drawn(number):
    random = np.random.default_rng(5)
    return lambda table: random.normal(0, 0.02, (number, table.shape[1]))


def test_new_rows_drawn_at_random_are_told_from_the_shared_ones():
    (record,) = found(MODEL, with_rows(MODEL, longer(drawn(38))))

    assert record.kind == "vocabulary_resized"
    assert record.names == ["lm_head.weight", "model.embed_tokens.weight"]
    assert record.share is None
    assert record.numbers["from"] == 90
    assert record.numbers["to"] == 128
    assert record.numbers["identical"] == 90
    assert record.numbers["new_rows"] == "drawn"
    assert record.text == (
        "vocabulary resized from 90 to 128 (a multiple of 128): shared rows identical,"
        " 38 new rows as drawn at random (std 0.0196)"
    )


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (lambda table: np.zeros((6, table.shape[1])), "zero"),
        (lambda table: np.tile(table.mean(axis=0), (6, 1)), "mean"),
        (lambda table: table[[3] * 6], "copied"),
        (lambda table: table[[3, 7, 11]], "copied"),
        (lambda table: 0.9 * table[20:40] + 0.3 * table[40:60], "other"),
    ],
)
def test_new_rows_are_described_by_what_they_hold(rows, kind):
    (record,) = found(MODEL, with_rows(MODEL, longer(rows)))

    assert record.numbers["new_rows"] == kind


def test_trained_rows_are_not_called_random():
    random = np.random.default_rng(2)
    (record,) = found(MODEL, with_rows(MODEL, longer(lambda _: trained(random, (40, 32)))))

    assert record.numbers["new_rows"] == "other"


def test_a_size_that_was_a_multiple_already_was_not_padded():
    model = decoder(words=128)
    (record,) = found(model, with_rows(model, longer(drawn(32))))

    assert "multiple_of" not in record.numbers


def test_rows_removed_at_the_end_are_said_to_be_the_last():
    (record,) = found(with_rows(MODEL, longer(drawn(6))), MODEL)

    assert record.numbers["removed"] == 6
    assert record.text.endswith("shared rows identical, the last 6 rows removed")


def test_rows_that_were_picked_out_are_found_by_what_they_hold():
    chosen = np.sort(np.random.default_rng(1).permutation(90)[:60])
    (record,) = found(MODEL, with_rows(MODEL, lambda table: table[chosen]))

    assert record.numbers["shared"] == 60
    assert record.text == "vocabulary resized from 90 to 60: 60 rows kept, 30 rows removed"


def test_shared_rows_that_were_trained_on_are_said_to_have_moved():
    record, *_ = found(MODEL, with_rows(tuned(MODEL), longer(drawn(38))))

    assert record.numbers["identical"] == 0
    assert record.numbers["relative_l2"] == pytest.approx(0.02, rel=0.3)
    assert "shared rows moved" in record.text


def test_shared_rows_that_were_cast_were_only_rounded():
    right = with_rows(MODEL, longer(drawn(38)))
    right = {name: value.astype(ml_dtypes.bfloat16) for name, value in right.items()}

    record, *_ = found(MODEL, right)

    assert "shared rows identical but for rounding" in record.text


def test_tokens_tell_which_rows_are_the_same():
    """Two tokens went from the middle, so every row behind them has another number."""
    gone = [4, 9]
    right = with_rows(MODEL, lambda table: np.delete(table, gone, axis=0))
    before = {f"t{row}": row for row in range(90)}
    after = {f"t{row}": at for at, row in enumerate(np.delete(np.arange(90), gone).tolist())}
    evidence = Evidence(left=Side(tokens=before), right=Side(tokens=after))

    record, tokens = found(MODEL, right, evidence)

    assert record.numbers["shared"] == record.numbers["identical"] == 88
    assert record.numbers["removed"] == 2
    assert tokens.kind == "tokens_changed"
    assert tokens.text.startswith("tokenizer changed: 2 tokens removed (t4, t9)")


def test_a_model_of_another_vocabulary_and_another_origin_is_no_resized_one():
    assert kinds(MODEL, decoder(words=96, seed=9)) == []


def test_a_vocabulary_of_the_same_size_is_not_resized():
    assert kinds(MODEL, tuned(MODEL)) == []
    assert kinds(MODEL, MODEL) == []


def test_another_width_is_no_matter_of_the_vocabulary():
    assert "vocabulary_resized" not in kinds(MODEL, decoder(width=40, words=96))


def test_an_embedding_that_was_replaced_keeps_no_row():
    random = np.random.default_rng(4)
    right = with_rows(MODEL, lambda table: trained(random, (70, table.shape[1])))

    record, *_ = found(MODEL, right)

    assert record.numbers == {"from": 90, "to": 70, "shared": 0}
    assert "no row is kept" in record.text
