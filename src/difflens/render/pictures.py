"""The pictures of the HTML page, with what stands beside each in words."""

from __future__ import annotations

from typing import Any

from ..records import Report
from .drawings import (
    MOST_INTERVALS,
    MOST_SPECTRA,
    Course,
    Overlay,
    Spectrum,
    Whisker,
    courses,
    depth,
    overlays,
    spectra,
    whiskers,
)
from .heat import heat
from .numbers import scientific, short

_MOST_VALUES = 8


def pictures(report: Report) -> dict[str, Any]:
    """Give what the report has the numbers of; what it has not is empty and is not drawn."""
    found = spectra(report)
    return {
        "heat": heat(report),
        "depth": depth(report),
        "spectra": [_spectrum(each) for each in found[:MOST_SPECTRA]],
        "more_spectra": max(0, len(found) - MOST_SPECTRA),
        "overlays": [_overlay(each) for each in overlays(report)],
        "whiskers": [_whisker(each) for each in whiskers(report)[:MOST_INTERVALS]],
        "courses": [_course(each) for each in courses(report)],
    }


def _spectrum(spectrum: Spectrum) -> dict[str, str]:
    first = scientific(spectrum.values[0])
    edge = spectrum.edge
    return {
        "name": spectrum.name,
        "path": spectrum.path,
        "edge_height": spectrum.edge_height,
        "said": f"{len(spectrum.values)} values, the largest {first}",
        "edge_said": "" if edge is None else f"noise edge {scientific(edge)}",
    }


def _overlay(overlay: Overlay) -> dict[str, str]:
    ends = [
        f"{scientific(side[0])} to {scientific(side[-1])}" for side in (overlay.left, overlay.right)
    ]
    return {
        "name": overlay.name,
        "left_path": overlay.left_path,
        "right_path": overlay.right_path,
        "left_said": f"left, {ends[0]}",
        "right_said": f"right, {ends[1]}",
    }


def _whisker(whisker: Whisker) -> dict[str, str]:
    return {
        "name": whisker.name,
        "low_place": whisker.low_place,
        "high_place": whisker.high_place,
        "value_place": whisker.value_place,
        "zero_place": whisker.zero_place,
        "text": "" if whisker.value is None else short(whisker.value),
        "ends": f"[{short(whisker.low)}, {short(whisker.high)}]",
        "said": whisker.said,
    }


def _course(course: Course) -> dict[str, str]:
    shown = ", ".join(map(short, course.values[:_MOST_VALUES]))
    more = len(course.values) - _MOST_VALUES
    said = f"{shown} and {more} more" if more > 0 else shown
    return {
        "name": course.name,
        "path": course.path,
        "low": course.low,
        "high": course.high,
        "said": said,
    }
