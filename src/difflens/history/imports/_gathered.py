"""A foreign log as a run: values by step and name, gathered first and laid out as frames then.

Logs give the values of one step on several lines, or all steps of one layer before the next. So
the whole is held, in 20 bytes a value and up to a stated number of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import RunError
from ...escape import for_terminal
from ...runs import LAYER_FIELDS, OPTIONAL_FIELDS, Layer, Note, RunInfo
from ..format import trouble_with
from ..frame import Frame, no_layers, no_scalars
from ._names import Column, renamed

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_VALUES, MOST_COLUMNS, MOST_CELLS = 1 << 24, 1 << 20, 1 << 33
_ORDER = (*LAYER_FIELDS, *OPTIONAL_FIELDS)


class Gathered:
    """A source of frames: the steps in their order, each once; what came later for it counts."""

    def __init__(self, path: Path, kind: str) -> None:
        """Begin with nothing; `kind` names the format."""
        self.path = path
        self.info = RunInfo(name=path.stem, layers=(), scalars=(), fields=())
        self.notes: list[Note] = [Note("imported", f"read from a {kind} log")]
        self.damage: list[str] = []
        self.tail_bytes = 0
        self._kind, self._at = kind, 0
        self._columns: dict[Column, int] = {}
        self._which, self._steps, self._values = array("I"), array("q"), array("d")
        self._walls: dict[int, float] = {}
        self._odd: dict[str, int] = {}
        self._unique: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, step: int, column: Column, value: float, wall_time: float | None = None) -> None:
        """Take one value."""
        which = self._columns.setdefault(column, len(self._columns))
        self._which.append(which)
        self._steps.append(step)
        self._values.append(value)
        if wall_time is not None:
            self._walls[step] = wall_time
        if len(self._values) > MOST_VALUES or which >= MOST_COLUMNS:
            what = f"{MOST_VALUES} values of {MOST_COLUMNS} names"
            raise RunError(
                self.path, f"it is too large: {what} can be read", hint="cut it in parts"
            )

    def refuse(self, name: str) -> None:
        """Count something that is no number and was left out."""
        if name in self._odd or len(self._odd) < MOST_COLUMNS:
            self._odd[name] = self._odd.get(name, 0) + 1

    def finish(self) -> Gathered:
        """Lay out the frames."""
        if not self._values:
            raise RunError(self.path, f"it holds no numbers of any step, read as {self._kind}")
        scalars = [name for field, name in self._columns if not field]
        names = renamed(scalars)
        layers = dict.fromkeys(name for field, name in self._columns if field)
        given = dict.fromkeys(field for field, _ in self._columns if field)
        fields = [*(each for each in _ORDER if each in given), *(given.keys() - set(_ORDER))]
        facts: dict[str, object] = {"imported": self._kind}
        if names:
            facts["renamed"] = names
        self.info = RunInfo(
            name=self.path.stem,
            layers=tuple(Layer(name) for name in layers),
            fields=tuple(fields),
            scalars=tuple(names.get(each, each) for each in scalars),
            gradient="as logged",
            facts=facts,
        )
        reason = trouble_with(self.info)
        if reason:
            raise RunError(self.path, reason)
        self._arrange()
        for name, count in list(self._odd.items())[:20]:
            said = f"{count} values of '{for_terminal(name, 80)}' are no numbers"
            self.damage.append(f"{said}, they were left out")
        return self

    def _arrange(self) -> None:
        """Sort by step, stably, and say for each column where in a frame it lies."""
        steps = np.frombuffer(self._steps, np.int64)
        self._order = np.argsort(steps, kind="stable")
        self._unique, self._starts = np.unique(steps[self._order], return_index=True)
        fields = {field: i for i, field in enumerate(self.info.fields)}
        layers = {layer.name: i for i, layer in enumerate(self.info.layers)}
        scalars = -1
        places = np.empty(len(self._columns), np.int64)  # of a scalar: below zero
        for (field, name), which in self._columns.items():
            if field:
                places[which] = fields[field] * len(layers) + layers[name]
            else:
                places[which], scalars = scalars, scalars - 1
        self._places = places
        cells = (len(self._columns) + len(fields) * len(layers)) * len(self._unique)
        if cells > MOST_CELLS:
            reason = f"{len(self._unique)} steps of {len(self._columns)} names: too large"
            raise RunError(self.path, reason, hint="cut it in parts")

    def layout(self) -> RunInfo:
        """Give what all frames hold together."""
        return self.info

    def frames(self) -> Iterator[Frame]:
        """Yield a frame a step."""
        values = np.frombuffer(self._values, np.float64)
        which = np.frombuffer(self._which, np.uint32)
        ends = np.append(self._starts[1:], len(values))
        while self._at < len(self._unique):
            at = self._at
            taken = self._order[self._starts[at] : ends[at]]
            places, found = self._places[which[taken]], values[taken]
            scalars = no_scalars(len(self.info.scalars))
            layers = no_layers(len(self.info.fields), len(self.info.layers))
            of_layers = places >= 0
            scalars[-1 - places[~of_layers]] = found[~of_layers]
            with np.errstate(over="ignore"):  # beyond float32 is infinite there
                layers.reshape(-1)[places[of_layers]] = found[of_layers]
            step = int(self._unique[at])
            self._at += 1
            yield Frame(at, step, self._walls.get(step, nan), nan, scalars, layers)

    def close(self) -> None:
        """Hold no file: all was read."""
