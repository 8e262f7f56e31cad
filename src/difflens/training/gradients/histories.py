"""A layer's gradients as they come in, one record per step, in memory that does not grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf, isfinite, nan
from typing import Any, ClassVar, Self

import msgspec

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.core.kept import Kept, Number, count, made, number, to_plain

_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}


class GradientFlow(Kept, frozen=True, kw_only=True):
    """What was measured of one layer's gradient at one step; what was not is None.

    Nothing is made up: extremes and dead units come from the tensor, or are not known.
    """

    as_logged: ClassVar[frozenset[str]] = frozenset(
        {"gradient_norm", "gradient_mean", "gradient_std", "gradient_max", "gradient_min"}
    )

    layer_name: str
    step: int
    gradient_norm: Number
    gradient_mean: Number | None = None
    gradient_std: Number | None = None
    gradient_max: Number | None = None
    gradient_min: Number | None = None
    dead_neurons_ratio: float | None = None
    active_neurons_ratio: float | None = None
    timestamp: str | None = None

    def __post_init__(self) -> None:
        """Raise if a norm is negative or a share is not between 0 and 1."""
        super().__post_init__()
        count("step", self.step)
        if not isinstance(self.gradient_norm, str):
            number("gradient_norm", self.gradient_norm, 0)
        number("dead_neurons_ratio", self.dead_neurons_ratio, 0, 1)
        number("active_neurons_ratio", self.active_neurons_ratio, 0, 1)


class GradientHistory:
    """The latest records of one layer; `dropped` counts those that had to go.

    >>> history = GradientHistory.new("fc.weight", 100)
    >>> history.add_gradient_flow({"layer_name": "fc.weight", "step": 0, "gradient_norm": 1.5})
    >>> history.gradient_norms
    [1.5]
    """

    def __init__(self, layer_name: str, max_history_length: int = 1000) -> None:
        """Start empty."""
        if isinstance(max_history_length, bool) or not isinstance(max_history_length, int):
            raise InvalidConfig(f"max_history_length is {max_history_length!r}, no whole number")
        if max_history_length < 1:
            raise InvalidConfig(f"max_history_length is {max_history_length}; it is at least 1")
        self.layer_name = layer_name
        self.max_history_length = max_history_length
        self.dropped = 0
        self._flows: deque[GradientFlow] = deque(maxlen=max_history_length)

    @classmethod
    def new(cls, layer_name: str, max_length: int = 1000) -> Self:
        """Return an empty history."""
        return cls(layer_name, max_length)

    def add_gradient_flow(self, flow: GradientFlow | Mapping[str, Any]) -> None:
        """Take one more record; the oldest goes where there is no room. Steps must ascend."""
        flow = made(GradientFlow, flow)
        if flow.layer_name != self.layer_name:
            raise SnapshotError(
                f"a record of layer {flow.layer_name!r} for the history of {self.layer_name!r}"
            )
        if self._flows and flow.step <= self._flows[-1].step:
            last = self._flows[-1].step
            raise SnapshotError(
                f"step {flow.step} of {self.layer_name!r} comes after step {last}",
                hint="steps ascend: begin another history for another run",
            )
        self.dropped += len(self._flows) == self.max_history_length
        self._flows.append(flow)

    def __len__(self) -> int:
        """How many records are kept."""
        return len(self._flows)

    def __eq__(self, other: object) -> bool:
        """Are both the same in every record?"""
        return isinstance(other, GradientHistory) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it changes with every record

    @property
    def gradient_norms(self) -> list[float]:
        """The norms, oldest first."""
        return [_float(each.gradient_norm) for each in self._flows]

    @property
    def gradient_means(self) -> list[float | None]:
        """The means, oldest first; None if not measured."""
        return [_known(each.gradient_mean) for each in self._flows]

    @property
    def gradient_stds(self) -> list[float | None]:
        """The standard deviations, oldest first; None if not measured."""
        return [_known(each.gradient_std) for each in self._flows]

    @property
    def step_numbers(self) -> list[int]:
        """The steps, ascending."""
        return [each.step for each in self._flows]

    @property
    def dead_ratios(self) -> list[float | None]:
        """The shares of dead units, oldest first; None if not measured."""
        return [each.dead_neurons_ratio for each in self._flows]

    def get_trend_slope(self) -> float | None:
        """Return the least-squares slope of the finite norms per step, on the real step numbers.

        None below three finite norms. A slope that is to be trusted is in the analysis: robust,
        of the logarithm, with its interval.
        """
        points = [
            (step, norm)
            for step, norm in zip(self.step_numbers, self.gradient_norms, strict=True)
            if isfinite(norm)
        ]
        if len(points) < 3:
            return None
        middle = sum(step for step, _ in points) / len(points)
        level = sum(norm / len(points) for _, norm in points)
        spread = sum((step - middle) ** 2 for step, _ in points)
        slope = sum((step - middle) / spread * (norm - level) for step, norm in points)
        return slope if isfinite(slope) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain maps, lists, strings and numbers."""
        return {
            "layer_name": self.layer_name,
            "max_history_length": self.max_history_length,
            "dropped": self.dropped,
            "flows": [each.to_dict() for each in self._flows],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read it from plain maps and lists."""
        try:
            history = cls(data["layer_name"], data.get("max_history_length", 1000))
            for flow in data.get("flows", ()):
                history.add_gradient_flow(flow)
            history.dropped += int(data.get("dropped", 0))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise SnapshotError(f"not a GradientHistory: {error!r}") from error
        return history

    def to_json(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.encode(self.to_dict())

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read it from JSON."""
        try:
            return cls.from_dict(msgspec.json.decode(data))
        except msgspec.MsgspecError as error:
            raise SnapshotError(f"not a GradientHistory: {error}") from error

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from html import escape

        name = escape(self.layer_name)
        return f"<p>{name}: {len(self)} records kept, {self.dropped} dropped</p>"


def _float(value: Number) -> float:
    return _WORDS[value] if isinstance(value, str) else float(value)


def _known(value: Number | None) -> float | None:
    return None if value is None else _float(value)


def as_history(name: str, given: object) -> GradientHistory:
    """Read one layer's history out of what was handed in as plain maps."""
    read = GradientHistory.from_dict(to_plain(name, given, as_logged=True))
    if read.layer_name != name:
        raise SnapshotError(f"the history of {read.layer_name!r} stands under the name {name!r}")
    return read
