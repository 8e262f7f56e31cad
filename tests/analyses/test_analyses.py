from collections.abc import Iterator

import pytest

from difflens.analyses import analyse, analysis
from difflens.diffs import Diff
from difflens.errors import UnknownName
from difflens.evidences import Evidence
from difflens.measure.scan import Scan
from difflens.pipeline import diff
from difflens.records import Envelope, Finding, Policy
from difflens.registry import Entry


@pytest.fixture
def loud(monkeypatch):
    """An analysis that yields a finding a tensor."""

    def loud_one(diff: Diff, evidence: Evidence, policy: Policy) -> Iterator[Finding]:  # noqa: ARG001
        for delta in diff.deltas:
            yield Finding("loud_one", delta.name, "is there", {"count": 1})

    monkeypatch.setitem(analysis._entries, "loud-one", Entry("loud-one", loud_one, {}))


@pytest.mark.usefixtures("loud")
def test_findings_that_are_yielded_are_gathered_into_an_envelope():
    envelope = analyse("loud_one", diff({}, {}))

    assert envelope == Envelope(
        "loud_one", "ok", {"findings": 0}, uncertainty={"findings": "exact"}, method="loud_one/1"
    )


@pytest.mark.parametrize("name", ["change-summary", "change_summary"])
def test_an_analysis_is_known_with_a_hyphen_and_with_an_underscore(name):
    assert analyse(name, diff({}, {})).name == "change_summary"


def test_an_analysis_says_which_measures_it_reads():
    assert analysis["change-summary"].options["needs"] == [Scan]


def test_helpers_in_the_room_are_no_analyses():
    assert not {"roles", "energy", "sentence", "places", "scale"} & set(analysis.names())


def test_an_unknown_analysis_is_answered_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        analyse("change_sumary", diff({}, {}))

    assert caught.value.hint == "did you mean change-summary?"
