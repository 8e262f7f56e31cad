import numpy as np
import pytest

from difflens.core.errors import UnknownName
from difflens.core.findings import Envelope
from difflens.core.registry import Entry
from difflens.diffs.analyses import analyse, analysis
from difflens.diffs.answer import Answer
from difflens.diffs.diff import Diff
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff


@pytest.fixture
def loud(monkeypatch):
    """An analysis that finds something in every tensor."""

    def loud_one(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
        for delta in diff.deltas:
            answer.find(delta.name, "is there", {"count": 1})

    monkeypatch.setitem(analysis._entries, "loud-one", Entry("loud-one", loud_one, {}))


@pytest.mark.usefixtures("loud")
def test_an_analysis_without_fields_answers_with_the_number_of_its_findings():
    envelope = analyse("loud_one", diff({}, {}))

    assert envelope == Envelope(
        "loud_one", "ok", {"findings": 0}, uncertainty={"findings": "exact"}, method="loud_one/1"
    )


@pytest.mark.parametrize("name", ["change-summary", "change_summary"])
def test_an_analysis_is_known_with_a_hyphen_and_with_an_underscore(name):
    assert analyse(name, diff({}, {})).name == "change_summary"


def test_an_analysis_that_needs_values_is_not_called_without():
    only_headers = diff({"w": np.ones(2)}, {"w": np.zeros(2)}, shape_only=True)
    envelope = analyse("change-summary", only_headers)

    assert envelope.status == "not_enough_information"
    assert {(each.needs, each.why) for each in envelope.missing} == {
        ("tensor values", "only headers were read")
    }


def test_helpers_in_the_room_are_no_analyses():
    assert not {"roles", "energy", "sentence", "places", "scale"} & set(analysis.names())


def test_an_unknown_analysis_is_answered_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        analyse("change_sumary", diff({}, {}))

    assert caught.value.hint == "did you mean change-summary?"
