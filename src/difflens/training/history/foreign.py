"""What readers of foreign logs share: names, lines and numbers, and values gathered into frames.

Logs give the values of one step on several lines, or all steps of one layer before the next. So
the whole log is held, in 20 bytes per value and up to a stated number of them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Generator, Iterable, Iterator
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.errors import RunError
from difflens.core.escape import for_terminal

from ..records.runs import LAYER_FIELDS, OPTIONAL_FIELDS, Layer, Note, RunInfo
from .format import trouble_with
from .frame import Frame, no_layers, no_scalars

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = ("step", "global_step", "_step", "iteration", "iter", "batch", "epoch")
WALL_TIMES = ("wall_time", "_timestamp", "timestamp")
# What diagnoses look for, under the names that trainers and people log it by.
_ALIASES = {
    "loss": ("train_loss", "train/loss", "training_loss", "loss/train", "train.loss"),
    "lr": ("learning_rate", "train/learning_rate", "train_lr", "train/lr"),
    "val_loss": ("val/loss", "validation/loss", "valid/loss", "loss/val", "loss/validation"),
    "eval_loss": ("eval/loss",),
    "accuracy": ("train/accuracy", "accuracy/train"),
    "val_accuracy": ("val/accuracy", "eval/accuracy", "accuracy/val"),
}
_FIELDS = {
    "grad_norm": "grad_l2",
    "gradient_norm": "grad_l2",
    "grad_2.0_norm": "grad_l2",
    "weight_norm": "weight_l2",
    "param_norm": "weight_l2",
    "update_norm": "update_l2",
    **{field: field for field in (*LAYER_FIELDS, *OPTIONAL_FIELDS)},
}
_OF_GRADIENTS = {
    "l2": "grad_l2",
    "norm": "grad_l2",
    "mean": "grad_mean",
    "mean_abs": "grad_mean_abs",
    "max_abs": "grad_max_abs",
    "zeros": "grad_zeros",
    "nonfinite": "grad_nonfinite",
}
_PARAMETER = re.compile(
    r"(^|\.)\d+(\.|$)|\.(weight|bias|kernel|gamma|beta|embedding|scale|weight_[a-z0-9_]+)$"
)

Column = tuple[str, str]  # field and layer; a scalar has no field


def column_of(name: str) -> Column:
    """Tell what a logged name stands for: a field of a layer, or a scalar.

    >>> column_of("grad_norm/h.0.weight"), column_of("gradients/h.0.weight/l2")
    (('grad_l2', 'h.0.weight'), ('grad_l2', 'h.0.weight'))
    >>> column_of("train/loss"), column_of("grad_norm")
    (('', 'train/loss'), ('', 'grad_norm'))
    """
    first, _, rest = name.partition("/")
    if rest and first in _FIELDS:
        return _FIELDS[first], rest
    middle, _, last = rest.rpartition("/")
    if middle and first in ("gradients", "gradient", "grads") and last in _OF_GRADIENTS:
        return _OF_GRADIENTS[last], middle
    return "", name


def is_parameter(name: str) -> bool:
    """Does a column of a table look like the gradient norms of a layer?

    >>> [is_parameter(each) for each in ("a.weight", "layers.0.w", "val_loss", "train.loss")]
    [True, True, False, False]
    """
    return _PARAMETER.search(name) is not None


def renamed(scalars: Iterable[str]) -> dict[str, str]:
    """Return the run's names of scalars that are logged by another one, each name once.

    >>> renamed(["train/loss", "learning_rate", "lr"])
    {'train/loss': 'loss'}
    """
    there = set(scalars)
    names = {}
    for name, others in _ALIASES.items():
        other = next((each for each in others if each in there), None)
        if name not in there and other is not None:
            names[other] = name
    return names


LONGEST_LINE = 1 << 26  # characters


class Lines:
    """The lines of a UTF-8 text; `number` is that of the last one, `whole` whether it ended."""

    def __init__(self, path: Path) -> None:
        """Name the file; it is opened when lines are asked for."""
        self.path = path
        self.number, self.whole = 0, True

    def __iter__(self) -> Generator[str, None, None]:
        """Yield line by line, none of them longer than the limit."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                while line := file.readline(LONGEST_LINE):
                    self.number += 1
                    if len(line) == LONGEST_LINE:
                        text = f"line {self.number} has more than {LONGEST_LINE} characters"
                        raise RunError(self.path, text)
                    self.whole = line.endswith(("\n", "\r"))
                    yield line
        except UnicodeDecodeError as error:
            raise RunError(self.path, f"line {self.number + 1} or later is not UTF-8") from error
        except OSError as error:
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error


def number_of(value: Any) -> float | None:
    """Return a number, finite or not; None for anything else.

    >>> number_of("1e-3"), number_of("Infinity"), number_of("1_0"), number_of(True)
    (0.001, inf, None, None)
    """
    if isinstance(value, str):
        if "_" in value or len(value) > 400:
            return None
    elif type(value) not in (int, float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def step_of(value: Any, path: Path, where: str) -> int:
    """Return a step: a whole number of 64 bits, also where it is written as 12.0."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 30:
        value = int(value)
    number = value if type(value) is int else number_of(value)
    if number is not None and -(2**63) <= number < 2**63 and number == int(number):
        return int(number)
    text = for_terminal(str(value), 40)
    raise RunError(path, f"{where}: the step {text!r} is no whole number of 64 bits")


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
        """Add one value."""
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
            text = f"{count} values of '{for_terminal(name, 80)}' are no numbers"
            self.damage.append(f"{text}, they were left out")
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
        """Return what all frames hold together."""
        return self.info

    def frames(self) -> Iterator[Frame]:
        """Yield a frame per step."""
        values = np.frombuffer(self._values, np.float64)
        which = np.frombuffer(self._which, np.uint32)
        ends = np.append(self._starts[1:], len(values))
        while self._at < len(self._unique):
            at = self._at
            taken = self._order[self._starts[at] : ends[at]]
            places, numbers = self._places[which[taken]], values[taken]
            scalars = no_scalars(len(self.info.scalars))
            layers = no_layers(len(self.info.fields), len(self.info.layers))
            of_layers = places >= 0
            scalars[-1 - places[~of_layers]] = numbers[~of_layers]
            with np.errstate(over="ignore"):  # beyond float32 is infinite there
                layers.reshape(-1)[places[of_layers]] = numbers[of_layers]
            step = int(self._unique[at])
            self._at += 1
            yield Frame(at, step, self._walls.get(step, nan), nan, scalars, layers)

    def close(self) -> None:
        """Hold no file: all was read."""
