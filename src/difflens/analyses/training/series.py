"""Columns of a training log: which tells what, and the stretch that lies between two steps."""

from __future__ import annotations

from collections.abc import Sequence

from ...evidences import Evidence, Log

Points = tuple[tuple[float, float], ...]

# In order of preference: what was held out tells more than what was trained on.
PROGRESS = (
    "eval_loss", "val_loss", "valid_loss", "validation_loss", "test_loss", "loss", "train_loss",
    "train/loss", "training_loss", "eval_perplexity", "perplexity", "eval_accuracy",
    "val_accuracy", "accuracy",
)  # fmt: skip
RATES = ("learning_rate", "lr", "train/learning_rate", "train/lr")
NORMS = ("grad_norm", "gradient_norm", "train/grad_norm", "global_norm")


def column(log: Log | None, names: Sequence[str]) -> tuple[str, Points] | None:
    """Give the first of these columns that the log has, with its name."""
    if log is None:
        return None
    return next(((name, log.columns[name]) for name in names if log.columns.get(name)), None)


def between(points: Points, first: float | None, last: float | None) -> Points:
    """Keep the points from one step to another; an end that is not known cuts nothing off."""
    low = float("-inf") if first is None else first
    high = float("inf") if last is None else last
    low, high = min(low, high), max(low, high)
    return tuple(point for point in points if low <= point[0] <= high)


def at(points: Points, step: float) -> float | None:
    """Give the value in force at a step: the last one logged up to it, None before the first."""
    earlier = [value for when, value in points if when <= step]
    return earlier[-1] if earlier else None


def steps_of(evidence: Evidence) -> tuple[float | None, float | None]:
    """Say at which steps left and right were saved: as handed in, or as the checkpoints say."""
    left: float | None = evidence.left.step
    right: float | None = evidence.right.step
    if evidence.trajectory is not None and None in (left, right):
        known = evidence.trajectory.steps
        left, right = known[0] if left is None else left, known[-1] if right is None else right
    return left, right
