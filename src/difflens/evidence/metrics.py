"""Metrics of a model: a JSON object of metric to number."""

from __future__ import annotations

from pathlib import Path

from ..escape import for_terminal
from .documents import Limits, broken, json_object, number


def metrics(path: str | Path, limits: Limits = None) -> dict[str, float]:
    """Read `{"accuracy": 0.91, "eval_loss": 0.33}`."""
    found = json_object(path, limits)
    if not found:
        raise broken(path, "it names no metric")
    return {
        name: number(value, path, f"metric '{for_terminal(name, 80)}'")
        for name, value in found.items()
    }
