"""Takes a whole-tensor measure of two arrays."""

from typing import Any

import ml_dtypes
import numpy as np

from difflens.diffs.story import diff

BF16 = ml_dtypes.bfloat16


def take(kind: type[Any], left: np.ndarray, right: np.ndarray, name: str = "w.weight") -> Any:
    """Return the measure of a pair, None if it was not taken."""
    found = [each for _, each in diff({name: left}, {name: right}).measured(kind)]
    return found[0] if found else None


def noise(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Make Gaussian noise."""
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def low_rank(rows: int, columns: int, rank: int, seed: int = 1) -> np.ndarray:
    """Make a random matrix of that rank and Frobenius norm 1."""
    random = np.random.default_rng(seed)
    made = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns))
    return made / np.linalg.norm(made)
