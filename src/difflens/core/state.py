"""The record of what lies beside the weights of a checkpoint: optimizers, schedulers, averages."""

from __future__ import annotations

from typing import Literal

from .record import Record


class StatePart(Record, frozen=True):
    """One part of the state beside the weights: an optimizer, a scheduler, an average of weights.

    The fields `tensors` to `numbers` have what is known of each side, by `left` and `right`.
    """

    kind: Literal[
        "optimizer", "ema", "scheduler", "scaler", "random", "callbacks", "loops", "counters"
    ]
    name: str  # what holds it in the file
    text: str  # the part in words
    differs: bool  # in a tensor; numbers among the metadata alone make no difference
    tensors: dict[str, int]
    size_bytes: dict[str, int]
    from_weights: dict[str, float | None]  # relative L2 of an average from its weights
    slots: dict[str, int]  # tensors by what the optimizer keeps in them
    numbers: dict[str, list[float | str | None]]  # step, learning rate: left and right
    changed: int | None = None  # tensors on both sides that differ; None: not compared
    values_changed: int | None = None  # plain values beside the tensors that differ

    @property
    def moved(self) -> bool:
        """Does a tensor differ, or a number that says how the run stands?"""
        numbers = any(left != right for left, right in self.numbers.values())
        return self.differs or numbers or bool(self.values_changed)
