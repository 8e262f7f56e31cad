"""Makes a finding of what was measured: evidence as plain numbers, confidence from margins.

Confidence is no probability: it says how far the weakest sign lies beyond its threshold. A sign
that is k times beyond it counts 1 - 1/k: 0 at the threshold, 0.5 at twice, 0.9 at ten times.
A calibrated probability was not taken: it would hold for the runs it was fitted on alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, isnan
from typing import Any

from ...records.runs import Fix, RunFinding, RunSeverity

MOST_LAYERS = 20


def above(value: float, threshold: float) -> float:
    """Say how sure a value is above a positive threshold: 1 - threshold/value.

    >>> above(10.0, 1.0), above(1.0, 1.0)
    (0.9, 0.0)
    """
    if isnan(value):
        return 0.0
    return max(0.0, 1 - threshold / value) if value > 0 else 0.0


def below(value: float, threshold: float) -> float:
    """Say how sure a value is below a positive threshold: 1 - value/threshold."""
    if isnan(value):
        return 0.0
    return min(1.0, max(0.0, 1 - value / threshold))


def json_value(value: Any) -> Any:
    """Return a number as JSON can hold it: what is not finite as its word.

    >>> json_value(float("nan")), json_value(2.0)
    ('NaN', 2.0)
    """
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(each) for each in value]
    if isinstance(value, int):
        return value
    number = float(value)
    if isfinite(number):
        return float(f"{number:.6g}")
    return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"


def finding(
    name: str,
    severity: RunSeverity,
    text: str,
    evidence: Mapping[str, Any],
    *,
    since: float | None,
    cause: str,
    advice: Iterable[str],
    signs: Iterable[float],
    layers: Iterable[str] = (),
    fix: Fix | None = None,
) -> list[RunFinding]:
    """Return a finding, alone; `signs` are the margins from which its confidence is made."""
    known = {key: json_value(value) for key, value in evidence.items() if value is not None}
    where, at = tuple(layers)[:MOST_LAYERS], None if since is None else int(since)
    remedy = fix and Fix(fix.code, json_value(fix.parameters))
    sure = round(min(signs), 3)
    return [
        RunFinding(name, severity, text, known, where, at, cause, tuple(advice), sure, fix=remedy)
    ]
