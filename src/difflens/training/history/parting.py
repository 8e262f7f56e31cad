"""Where two runs part: frame by frame, in memory that does not grow with them.

Frames are joined by step. Two runs of one seed should agree to the last bit; the first number that
does not, and the layers that follow, tell what to look at. Which steps have their layers read
depends on the clock, so a field that one run did not read at a step is no difference. Whether two
runs of different seeds differ beyond noise is another question, and needs several runs a side.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.kept import NotFinite

from ..records.runs import Parted, RunDiff, RunInfo
from . import FrameSource, open_run
from .frame import Frame, Spread, is_any_recorded, is_missing, layout, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCES = (0.0, 1e-6, 1e-3, 0.1)
# What the hooks tell beside the layers: it may be missing where these were not read.
_READ_BESIDE = frozenset({"lr", "loss_scale", "clip_factor", "grad_kept", "optimizer_steps"})
# What is still to be seen of a step when it is over; its gradients may be cleared by then.
_LASTS = frozenset({"weight_l2"})


class _Wide(NamedTuple):
    """A frame of either run, laid out as both together are."""

    step: int
    scalars: NDArray[np.float64]
    layers: NDArray[np.float32]
    is_read: bool
    is_late: bool = False  # were its layers read when the run was over?

    def with_layers_of(self, late: _Wide) -> _Wide:
        """Add the layers that were read once more when the run ended."""
        return late._replace(scalars=self.scalars, is_late=True)


def run_diff(left: str | Path, right: str | Path) -> RunDiff:
    """Hold two runs side by side, by step; of a step recorded twice the last counts."""
    sources = open_run(left), open_run(right)
    try:
        return _compared(*sources, str(left), str(right))
    finally:
        for source in sources:
            source.close()


def _compared(left: FrameSource, right: FrameSource, *names: str) -> RunDiff:
    wide = union(left.layout(), right.layout())
    parting = _Parting(wide)
    counts = {"both": 0, "left": 0, "right": 0}
    for one, other in _joined(_wide(left, wide), _wide(right, wide)):
        if one is not None and other is not None:
            counts["both"] += 1
            parting.look(one, other)
        else:
            counts["left" if other is None else "right"] += 1
    only = [
        tuple(layer.name for layer in each.layout().layers if layer.name not in have)
        for each, have in (
            (left, {layer.name for layer in right.layout().layers}),
            (right, {layer.name for layer in left.layout().layers}),
        )
    ]
    damage = (
        f"{name}: {text}"
        for name, each in zip(names, (left, right), strict=True)
        for text in each.damage
    )
    return RunDiff(
        names[0],
        names[1],
        counts["both"],
        counts["left"],
        counts["right"],
        tuple(parting.parted),
        only[0],
        only[1],
        *parting.last_losses,
        warnings=tuple(damage),
        read_steps=parting.read_steps if wide.layers else counts["both"],
    )


def _wide(source: FrameSource, wide: RunInfo) -> Iterator[_Wide]:
    """Yield the frames laid out alike; steps that run backwards are passed over."""
    info, spread, latest = None, None, None
    for frame in source.frames():
        if source.info is not info:
            info = source.info
            spread = None if layout(info) == layout(wide) else Spread(info, wide)
        now = _read_wide(frame if spread is None else spread.frame(frame))
        if latest is not None and now.step > latest.step:
            yield latest
        if latest is None or now.step > latest.step:
            latest = now
        elif now.step == latest.step:
            is_late = now.is_read and not latest.is_read
            latest = latest.with_layers_of(now) if is_late else now
    if latest is not None:
        yield latest


def _read_wide(frame: Frame) -> _Wide:
    return _Wide(frame.step, frame.scalars, frame.layers, frame.is_read)


def _joined(
    left: Iterator[_Wide], right: Iterator[_Wide]
) -> Iterator[tuple[_Wide | None, _Wide | None]]:
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.step < other.step):
            yield one, None
            one = next(left, None)
        elif one is None or other.step < one.step:
            yield None, other
            other = next(right, None)
        else:
            yield one, other
            one, other = next(left, None), next(right, None)


class _Parting:
    """The first difference beyond each tolerance."""

    def __init__(self, info: RunInfo) -> None:
        self._info = info
        self._open = list(TOLERANCES)
        self._beside = np.array([name in _READ_BESIDE for name in info.scalars], bool)
        self._lasts = np.array([name in _LASTS for name in info.fields], bool)
        self.read_steps = 0  # whose layers both runs read
        self.parted: list[Parted] = []
        self.last_losses: tuple[Any, Any] = (None, None)

    def look(self, left: _Wide, right: _Wide) -> None:
        """Compare one step."""
        if "loss" in self._info.scalars:
            place = self._info.scalars.index("loss")
            self.last_losses = tuple(  # type: ignore[assignment]
                _number(each.scalars[place])
                if not is_missing(each.scalars[place : place + 1])[0]
                else before
                for each, before in zip((left, right), self.last_losses, strict=True)
            )
        self.read_steps += _is_read(left) and _is_read(right)
        if not self._open:
            return
        scalars, layers = self._scalars_apart(left, right), self._layers_apart(left, right)
        most = max(scalars.max(initial=0.0), layers.max(initial=0.0))
        while self._open and (most > self._open[0]):
            self.parted.append(self._part(self._open.pop(0), left, right, scalars, layers))

    def _scalars_apart(self, left: _Wide, right: _Wide) -> NDArray[np.float64]:
        """Compare the scalars; what comes with a reading, where both runs have it."""
        apart = _apart(left.scalars, right.scalars)
        one_sided = is_missing(left.scalars) | is_missing(right.scalars)
        apart[self._beside & one_sided] = 0.0
        return apart

    def _layers_apart(self, left: _Wide, right: _Wide) -> NDArray[np.float64]:
        """Compare the fields that both runs read at this step."""
        apart = _apart(left.layers, right.layers)
        unread = is_missing(left.layers).all(axis=1) | is_missing(right.layers).all(axis=1)
        if left.is_late != right.is_late:
            unread |= ~self._lasts
        apart[unread] = 0.0
        return apart

    def _part(
        self, tolerance: float, left: _Wide, right: _Wide, scalars: Any, layers: Any
    ) -> Parted:
        beyond = layers > tolerance
        named = tuple(
            self._info.layers[i].name for i in np.flatnonzero(beyond.any(axis=0)).tolist()
        )
        if named:
            column = int(np.flatnonzero(beyond.any(axis=0))[0])
            row = int(np.argmax(layers[:, column]))
            one, other = left.layers[row, column], right.layers[row, column]
            where = (self._info.layers[column].name, self._info.fields[row])
        else:
            place = int(np.argmax(scalars))
            one, other = left.scalars[place], right.scalars[place]
            where = ("", self._info.scalars[place])
        return Parted(tolerance, left.step, *where, _number(one), _number(other), named)


def _is_read(each: _Wide) -> bool:
    """Does it have layers? In a table of frames the values show it."""
    return each.is_read and is_any_recorded(each.layers)


def _apart(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """Return |left - right| beside the larger of the two; 1 where only one is a number."""
    same = (left == right) | (
        np.isnan(left) & np.isnan(right) & (is_missing(left) == is_missing(right))
    )
    with np.errstate(all="ignore"):
        wide_left, wide_right = left.astype(np.float64), right.astype(np.float64)
        size = np.maximum(np.abs(wide_left), np.abs(wide_right))
        apart = np.abs(wide_left - wide_right) / size
    apart = np.where(np.isfinite(apart), apart, 1.0)
    return np.where(same, 0.0, apart)


def _number(value: Any) -> float | NotFinite | None:
    """Return a number as JSON can hold it; None if it was not recorded."""
    if is_missing(np.atleast_1d(value))[0]:
        return None
    if np.isfinite(value):
        return float(value)
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
