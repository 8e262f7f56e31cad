"""A task that small networks learn soundly, and what the run of a sound training must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import difflens

EXAMPLES, HELD_BACK, BATCH, FEATURES = 512, 128, 32, 6


def task() -> tuple[Any, Any, Any, Any]:
    """Return inputs and targets to learn from, and those to validate on."""
    random = np.random.default_rng(0)
    x = random.normal(size=(EXAMPLES + HELD_BACK, FEATURES)).astype(np.float32)
    y = np.tanh(x @ random.normal(size=(FEATURES, 1))) + 0.1 * random.normal(size=(len(x), 1))
    y = y.astype(np.float32)
    return x[:EXAMPLES], y[:EXAMPLES], x[EXAMPLES:], y[EXAMPLES:]


def assert_sound(run: Path, validated: list[int], name: str = "val_loss") -> Any:
    """Check that nothing warns, and that each validation stands at its own step and no other."""
    history = difflens.read_history(run)
    found = difflens.diagnose(history)

    assert [(each.name, each.text) for each in found.findings if each.severity != "info"] == []
    assert found.healthy is True
    values = history.course.scalar(name)
    assert values is not None
    assert history.course.steps[np.isfinite(values)].tolist() == validated
    return history
