"""The order of findings: severity, then the strength of what shows them."""

from itertools import permutations

from render.reports import report

from difflens.core.findings import Envelope, Finding
from difflens.render.report.findings import findings, shown_evidence


def told(*found: Finding) -> list[Finding]:
    halves = [found[::2], found[1::2]]
    envelopes = [Envelope("a", "ok", {"x": 1}, findings=tuple(half)) for half in halves]
    return findings(report(analyses=tuple(envelopes)))


def test_severity_decides_then_what_was_measured_then_what_was_tested() -> None:
    ordered = [
        Finding("a", "w", "worst", {}, "critical"),
        Finding("a", "w", "two numbers", {"x": 1.0, "y": 2.0}, "high"),
        Finding("a", "w", "one number", {"x": 1.0, "y": None}, "high"),
        Finding("a", "w", "sure", {"p": 1e-9, "x": 1.0}, "high"),
        Finding("a", "w", "less sure", {"q": 0.01, "p": 1e-12}, "high"),
        Finding("a", "w", "words", {"x": float("nan")}, "high"),
        Finding("a", "w", "least", {"x": 1.0, "y": 2.0}, "info"),
    ]

    assert told(*reversed(ordered)) == ordered


def test_the_order_does_not_depend_on_who_spoke_first() -> None:
    found = [Finding("a", name, "moved", {"x": 1.0}) for name in "cab"]

    orders = {tuple(each.subject for each in told(*given)) for given in permutations(found)}

    assert orders == {("a", "b", "c")}


def test_evidence_that_is_no_number_is_unknown() -> None:
    finding = Finding("a", "w", "t", {"n": 12, "share": 0.123456, "p": None, "d": float("inf")})

    assert shown_evidence(finding) == "n=12, share=0.123, p=unknown, d=unknown"
