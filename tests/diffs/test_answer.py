import pytest

from difflens.core.findings import Interval
from difflens.core.policy import Policy, Threshold
from difflens.diffs.answer import Answer

FIELDS = {"x": "", "y": ""}
THRESHOLDS = {"large": Threshold(10, "a choice"), "word": Threshold("mean", "another")}


def test_the_status_follows_from_what_is_known():
    full, part, none = (Answer("a", Policy(), fields=FIELDS) for _ in range(3))
    full.say("x", 1)
    part.say("x", 1)
    part.lack("y", needs="--log", why="no log")
    none.lack("y", needs="--log", why="no log")

    assert [each.envelope().status for each in (full, part, none)] == [
        "ok", "partial", "not_enough_information",
    ]  # fmt: skip


def test_what_has_no_answer_yet_is_lacked_for_one_reason():
    answer = Answer("a", Policy(), fields=FIELDS)
    answer.say("y", 1)
    answer.lack_rest(needs="--log", why="no log", status="not_applicable")
    envelope = answer.envelope()

    assert envelope.status == "not_applicable"
    assert envelope.fields == {"x": None, "y": 1}
    assert [(each.field, each.needs) for each in envelope.missing] == [("x", "--log")]


def test_a_field_that_was_not_declared_is_refused():
    with pytest.raises(ValueError, match="a: z is not declared; `fields` are: x, y"):
        Answer("a", Policy(), fields=FIELDS).say("z", 1)


def test_fields_stand_in_the_order_of_their_declaration_on_their_declared_basis():
    answer = Answer("a", Policy(), fields={"x": "counted", "y": "weighed"})
    answer.say("y", 1)
    answer.say("x", 2, basis="guessed")
    envelope = answer.envelope()

    assert list(envelope.fields) == ["x", "y"]
    assert envelope.basis == {"y": "weighed", "x": "guessed"}


def test_a_null_without_a_reason_is_a_fault():
    with pytest.raises(ValueError, match="a: x is null"):
        Answer("a", Policy(), fields=FIELDS).say("x", None)


@pytest.mark.parametrize("value", [None, 3])
def test_either_answers_or_says_what_is_missing(value):
    answer = Answer("a", Policy(), fields=FIELDS)
    answer.either("x", value, basis="counted", uncertainty="exact", needs="--log", why="no log")
    told = answer.envelope()

    assert told.fields == {"x": value}
    assert told.basis == {"x": "counted"}
    assert [each.field for each in told.missing] == ([] if value else ["x"])


def test_thresholds_are_the_users_where_there_is_one_and_always_told():
    answer = Answer(
        "a", Policy({"a": {"large": 3}, "b": {"word": "median"}}), thresholds=THRESHOLDS
    )

    assert (answer["large"], answer["word"]) == (3, "mean")
    assert answer.envelope().policy == {
        "large": {"value": 3, "source": "user"},
        "word": {"value": "mean", "source": "default"},
    }


def test_intervals_findings_assumptions_and_seeds_are_kept():
    answer = Answer("a", Policy(), fields=FIELDS)
    answer.say("x", 1.0, uncertainty=Interval(0.5, 1.5, 0.95, "bootstrap", 20))
    answer.assume("rows are exchangeable")
    answer.assume("rows are exchangeable")
    answer.find("w", "moved", {"by": 1.0}, "high")
    answer.seeded(7)
    told = answer.envelope()

    assert told.uncertainty["x"] == Interval(0.5, 1.5, 0.95, "bootstrap", 20)
    assert told.assumptions == ("rows are exchangeable",)
    assert [(each.name, each.severity) for each in told.findings] == [("a", "high")]
    assert told.method == "a/1 seed=7"
