"""Batch norms folded into the layer before them, verified by what they multiply and add."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import MOVED, Delta
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import layer

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .diagonals import Diagonal, find_diagonal, turned_matrices
from .records import counted, explained, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPSILONS = (1e-5, 1e-3, 1e-4, 1e-6, 1e-12, 0.0)  # of the libraries; torch has the first
_CLOSE = 1e-2  # rounding of BF16 leaves less
_PARTS = {
    "weight": "gain",
    "gamma": "gain",
    "bias": "offset",
    "beta": "offset",
    "running_mean": "mean",
    "moving_mean": "mean",
    "running_var": "variance",
    "moving_variance": "variance",
}


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
    sizes = {len(norm.gain) for norm in norms}
    matrices = [each for each in turned_matrices(diff) if _rows(each) in sizes]
    names: list[str] = []
    layers, rest = [], 0.0
    for delta in matrices:
        diagonal = find_diagonal(diff, delta)
        norm = _undone(diff, diagonal, norms) if diagonal and diagonal.has_rows else None
        if diagonal is None or norm is None:
            continue
        norms.remove(norm)
        layers.append(diagonal.name)
        names += [diagonal.name, *_biases(diff, delta), *norm.names]
        rest += diagonal.rest
    if not layers:
        return []
    numbers = {"what": "batch norm", "folded": len(layers)}
    text = f"{counted(len(layers), 'batch norm')} folded into {where(layers)}"
    return [explained(diff, "norms_folded", names, text, numbers, rest=rest)]


def _rows(delta: Delta) -> int:
    return delta.pair.left.shape[0] if delta.pair.left else 0


def _norms(diff: Diff) -> list[Norm]:
    """Collect the batch norms without effect on the right; no value is read where none is."""
    modules: dict[str, dict[str, Delta]] = defaultdict(dict)
    for delta in diff.deltas:
        left = delta.pair.left
        part = _PARTS.get(left.name.rpartition(".")[2].lower()) if left else None
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


def _undone(diff: Diff, diagonal: Diagonal, norms: list[Norm]) -> Norm | None:
    """Find the norm whose scale the rows were multiplied by, and whose offset the bias took in."""
    import numpy as np

    for norm in norms:
        for scale in norm.scales():
            if len(scale) != len(diagonal.rows):
                continue
            if np.abs(diagonal.rows - scale).max() <= _CLOSE * np.abs(scale).max() and _is_shifted(
                diff, diagonal.name, norm, scale
            ):
                return norm
    return None


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
    wanted = f"{layer(name)}.bias"
    for delta in diff.deltas:
        info = delta.pair.left if side == "left" else delta.pair.right
        if info and info.name == wanted:
            values: NDArray[Any] = diff.values(side, wanted).array().astype("f8")
            return values
    return None


def _biases(diff: Diff, matrix: Delta) -> list[str]:
    wanted = f"{layer(name_of(matrix))}.bias"
    return [
        name
        for each in diff.deltas
        if (name := name_of(each)) == wanted and each.kind in MOVED | {"added"}
    ]
