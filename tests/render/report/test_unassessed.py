"""What was not checked is said once a reason."""

from render.reports import identical, report, row

from difflens.core.findings import Envelope, Missing
from difflens.render.report.findings import Gap, unassessed


def test_tensors_then_fields_each_with_its_reason() -> None:
    missing = (Missing("trend", "--log", "no log"), Missing("speed", "--checkpoint", "two points"),
               Missing("slope", "--log", "no log"))  # fmt: skip
    envelope = Envelope(
        "progress", "partial", {"magnitude": 1.0} | dict.fromkeys(("trend", "speed", "slope")),
        missing=missing,
    )  # fmt: skip
    rows = [row("a", "uncompared", skipped="packed"), row("b", "uncompared", skipped="packed")]

    assert unassessed(report(*rows, row("c", "paired"), analyses=(envelope,))) == [
        Gap("a", (), "", "packed (2 tensors)"),
        Gap("the values of 1 tensor", (), "", "only names, shapes and dtypes were read"),
        Gap("progress", ("trend", "slope"), "--log", "no log"),
        Gap("progress", ("speed",), "--checkpoint", "two points"),
    ]


def test_an_analysis_that_is_silent_for_one_reason_is_one_gap() -> None:
    missing = tuple(Missing(name, "--log", "no log") for name in "xyz")
    silent = Envelope("a", "not_enough_information", dict.fromkeys("xyz"), missing=missing)

    assert unassessed(report(analyses=(silent,))) == [Gap("a", (), "--log", "no log")]


def test_a_failed_analysis_is_a_gap_even_without_a_reason() -> None:
    failed = Envelope("a", "error", {})

    assert unassessed(report(analyses=(failed,))) == [Gap("a", (), "", "error")]


def test_nothing_is_open_where_nothing_was_asked() -> None:
    assert unassessed(identical()) == []
