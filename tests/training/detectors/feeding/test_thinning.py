import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import noise, recorded

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [32, 10]}}


def run(start=2.9, end=1.7, better=0.85, dropout=0.0):
    at = np.arange(220)
    course = end + (start - end) * np.exp(-at / 60)
    held_back = np.where(at % 20 == 19, better * course, np.nan)
    return recorded(course * noise(220, 0.01), update_l2=0.02,
                    facts=CLASSES | {"dropout": dropout},
                    scalars={"val_loss": held_back})  # fmt: skip


def test_a_run_that_gets_on_or_is_answered_alike_has_not_too_much_dropout():
    assert asked("plateau", run(end=0.5)) == []
    assert asked("plateau", run(better=1.0)) == []


def test_outputs_that_begin_large_take_their_time():
    assert asked("plateau", run(start=9.0)) == []


def test_dropout_that_was_recorded_and_drowns_what_passes_is_told_by_itself():
    drowned = run(better=1.0, dropout=0.8)
    found = only("plateau", drowned)

    assert found.fix.code == "lower_dropout"
    assert found.evidence["noise_by_signal"] == pytest.approx(4.0)
    assert "80%" in found.text
    assert asked("data", drowned) == []


def test_strong_dropout_that_does_no_harm_is_a_choice():
    assert asked("plateau", run(end=0.5, better=1.0, dropout=0.8)) == []
    assert asked("plateau", run(better=1.0, dropout=0.5)) == []


def test_nor_are_labels_doubted_where_nothing_is_learned_at_all():
    flat = {"start": 2.31, "end": 2.3, "better": 1.0}

    assert [each.name for each in asked("data", run(**flat))] == ["data"]
    assert asked("data", run(**flat, dropout=0.9)) == []
    assert only("plateau", run(**flat, dropout=0.9)).fix.code == "lower_dropout"
