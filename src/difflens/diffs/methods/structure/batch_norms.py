"""Batch norms folded into the layer before them, verified by what they multiply and add."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import MOVED, Delta
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import layer

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .diagonals import turned_matrices
from .records import counted, explained, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from difflens.measure.values import Values

_EPSILONS = (1e-5, 1e-3, 1e-4, 1e-6, 1e-12, 0.0)  # of the libraries; torch has the first
_CLOSE = 1e-2  # rounding of BF16 leaves less
_PROBED = 12  # rows that tell by what each channel was multiplied
_NUMBERED = re.compile(r"(:|_deepcopy_)\d+$")  # what Keras and Paddle put behind a name
_PARTS = {
    "weight": "gain",
    "gamma": "gain",
    "bias": "offset",
    "beta": "offset",
    "running_mean": "mean",
    "moving_mean": "mean",
    "running_var": "variance",
    "moving_variance": "variance",
    "w_0": "gain",  # of Paddle
    "b_0": "offset",
    "w_1": "mean",
    "w_2": "variance",
}
_BIASES = ("bias", "b_0")


class Norm(NamedTuple):
    """A batch norm that the left has and the right has not, or has without effect."""

    module: str
    names: list[str]
    gain: NDArray[Any]
    offset: NDArray[Any]
    mean: NDArray[Any]
    variance: NDArray[Any]

    def scales(self) -> list[NDArray[Any]]:
        """Return what it multiplies channels by, for each epsilon that a library adds."""
        import numpy as np

        return [self.gain / np.sqrt(self.variance + epsilon) for epsilon in _EPSILONS]


def folded_batch_norms(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain layers whose rows were multiplied by a batch norm that is gone."""
    norms = _norms(diff)
    if not norms:
        return []
    names: list[str] = []
    layers, rest = [], 0.0
    for delta in turned_matrices(diff):
        for norm, fold in _possible(diff, delta, norms):
            left_over = fold.rest()
            if left_over is not None:
                norms.remove(norm)
                layers.append(name_of(delta))
                names += [name_of(delta), *_biases(diff, delta), *norm.names]
                rest += left_over
                break
    if not layers:
        return []
    numbers = {"what": "batch norm", "folded": len(layers)}
    text = f"{counted(len(layers), 'batch norm')} folded into {where(layers)}"
    return [explained(diff, "norms_folded", names, text, numbers, rest=rest)]


def _part(name: str) -> str:
    """Return the last part of a name, as the libraries call it that do not number it."""
    return _NUMBERED.sub("", name.rpartition(".")[2].lower())


def _norms(diff: Diff) -> list[Norm]:
    """Collect the batch norms without effect on the right; no value is read where none is."""
    modules: dict[str, dict[str, Delta]] = defaultdict(dict)
    for delta in diff.deltas:
        left = delta.pair.left
        part = _PARTS.get(_part(left.name)) if left else None
        if left and part and len(left.shape) == 1 and delta.kind in MOVED | {"removed"}:
            modules[layer(left.name)][part] = delta
    found = []
    for module, parts in modules.items():
        if not {"mean", "variance"} <= parts.keys() or not _is_without_effect(diff, parts):
            continue
        names = [each.pair.left.name for each in parts.values() if each.pair.left]
        values = {part: _array(diff, each) for part, each in parts.items()}
        plain = values["variance"]
        counter = f"{module}.num_batches_tracked"
        beside = [name for each in diff.deltas if (name := name_of(each)) == counter]
        found.append(
            Norm(
                module,
                names + beside,
                values.get("gain", plain * 0 + 1),
                values.get("offset", plain * 0),
                values["mean"],
                plain,
            )
        )
    return found


def _is_without_effect(diff: Diff, parts: dict[str, Delta]) -> bool:
    """Is it gone, or does it leave what it is given?"""
    import numpy as np

    if all(each.kind == "removed" for each in parts.values()):
        return True
    wanted = {"gain": 1.0, "offset": 0.0, "mean": 0.0, "variance": 1.0}
    for part, delta in parts.items():
        right = delta.pair.right
        values = diff.values("right", right.name).array() if right else None
        if values is None or not np.allclose(values, wanted[part], atol=1e-2 * wanted[part]):
            return False
    return True


def _array(diff: Diff, delta: Delta) -> NDArray[Any]:
    left = delta.pair.left
    values: NDArray[Any] = diff.values("left", left.name if left else "").array().astype("f8")
    return values


class Fold(NamedTuple):
    """A weight and what one of its axes was multiplied by."""

    left: Values
    right: Values
    scale: NDArray[Any]
    axis: int

    def of_rows(self, first: int, last: int) -> NDArray[Any]:
        """Return what the numbers of some rows are multiplied by, or something of their shape."""
        import numpy as np

        shape = self.left.info.shape
        if self.axis == 0:
            return self.scale[first:last, None]
        along = [-1 if axis == self.axis else 1 for axis in range(1, len(shape))]
        return np.broadcast_to(self.scale.reshape(along), shape[1:]).reshape(1, -1)

    def rest(self) -> float | None:
        """Return ‖right - scaled left‖², verified on all of the weight; None if it is much."""
        import numpy as np

        rest = moved = 0.0
        first = 0
        for one, two in zip(self.left.rows(), self.right.rows(), strict=True):
            before, after = one.astype(np.float64), two.astype(np.float64)
            scaled = before * self.of_rows(first, first + len(before))
            first += len(before)
            rest += float(np.square(after - scaled).sum())
            moved += float(np.square(after - before).sum())
        return rest if rest <= _CLOSE * moved else None


def _possible(diff: Diff, delta: Delta, norms: list[Norm]) -> Iterator[tuple[Norm, Fold]]:
    """Yield the norms that a few rows and the bias let a weight have taken in, and along what."""
    import numpy as np

    left, right = delta.pair.left, delta.pair.right
    if left is None or right is None:
        return
    sides = diff.values("left", left.name), diff.values("right", right.name)
    number = min(_PROBED, left.shape[0])
    before, after = (side.some_rows(list(range(number))).astype(np.float64) for side in sides)
    for norm in norms:
        for axis in [at for at, size in enumerate(left.shape) if size == len(norm.gain)]:
            for scale in norm.scales():
                fold = Fold(*sides, scale, axis)
                apart = np.abs(after - before * fold.of_rows(0, number))
                close = float(apart.max()) <= _CLOSE * float(np.abs(after).max())
                if close and _is_shifted(diff, left.name, norm, scale):
                    yield norm, fold


def _is_shifted(diff: Diff, name: str, norm: Norm, scale: NDArray[Any]) -> bool:
    """Is the bias beside the matrix what the norm makes of the one before?"""
    import numpy as np

    before, after = _bias(diff, name, "left"), _bias(diff, name, "right")
    wanted = ((0.0 if before is None else before) - norm.mean) * scale + norm.offset
    held = np.zeros_like(wanted) if after is None else after
    if held.shape != wanted.shape:
        return False
    apart: float = np.abs(held - wanted).max()
    return bool(apart <= _CLOSE * max(float(np.abs(wanted).max()), 1e-12))


def _bias(diff: Diff, name: str, side: Any) -> NDArray[Any] | None:
    for delta in diff.deltas:
        info = delta.pair.left if side == "left" else delta.pair.right
        if info and _is_bias(info.name, name):
            values: NDArray[Any] = diff.values(side, info.name).array().astype("f8")
            return values
    return None


def _is_bias(name: str, weight: str) -> bool:
    return layer(name) == layer(weight) and _part(name) in _BIASES


def _biases(diff: Diff, matrix: Delta) -> list[str]:
    weight = name_of(matrix)
    return [
        name
        for each in diff.deltas
        if _is_bias(name := name_of(each), weight) and each.kind in MOVED | {"added"}
    ]
