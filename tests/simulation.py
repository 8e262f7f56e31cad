"""How often a seeded simulation is repeated: 300 times in CI, 2,000 in the slow lane."""

from collections.abc import Callable
from typing import Any

import pytest

FEW, MANY = 300, 2000


def replicates(test: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test with `repeats` of both lanes."""
    lanes = [
        pytest.param(FEW, id="ci", marks=pytest.mark.long),
        pytest.param(MANY, id="full", marks=pytest.mark.slow),
    ]
    return pytest.mark.parametrize("repeats", lanes)(test)


def near(rate: float, expected: float, repeats: int, *, slack: float = 0.0) -> bool:
    """Is an observed rate within three standard errors of the expected one (methods 14.5)?"""
    error = (expected * (1 - expected) / repeats) ** 0.5
    return abs(rate - expected) <= 3 * error + slack
