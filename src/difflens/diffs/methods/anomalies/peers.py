"""Matrices that lost what they held while their like moved little: shuffled, redrawn, exchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.natural_order import natural_key
from difflens.core.records import TensorInfo
from difflens.models.anatomy.roles import block, role
from difflens.stats.samples import robust_deviation

from ...answer import Question
from ...diff import Diff
from ..changes.energy import KEPT, Moved, is_float, moved_parameters
from .anomaly import Anomaly, Detection

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER = re.compile("[0-9]+")
_NAME = "moved_unlike_peers"
_VALUES, _SIDE = 256, 4  # smaller matrices are not judged
_PEERS = 3  # fewer tell nothing
_SAME = 0.9  # cosine above which two tensors hold the same
_LARGEST = 1 << 26  # values that are held at once to say what became of a matrix
_SAMPLE = 4096  # values by which a matrix is looked for under another name


class Change(NamedTuple):
    """A matrix that moved, how far relative to its norm, and the cosine of both sides."""

    moved: Moved
    relative: float
    cosine: float


class Peers(NamedTuple):
    """What others did: the median of their changes, their number, and how far off this one is."""

    median: float
    number: int
    z: float


def moved_unlike_peers(asked: Question) -> Detection:
    """A matrix with little of its left values in it, whose peers moved far less.

    Peers are the moved matrices of one shape and the same name but for numbers; else those of such
    a name, else all. Then the head is not judged (or the last matrix, if none is called so), for a
    new task brings a new one. What says itself that it is no training (a flipped sign, the same
    values in other places, those of another tensor) needs no peers. Where most matrices are so,
    the models are unrelated or converted.
    """
    changes = list(_changes(asked.diff))
    lost = [each for each in changes if each.cosine < asked.answer["lost_cosine"]]
    matrices = sum(each.kind in KEPT and _is_matrix(each.pair.left) for each in asked.diff.deltas)
    if not lost or len(lost) > matrices / 2:
        return Detection(_NAME, len(changes))
    return Detection(_NAME, len(changes), tuple(_anomalies(asked, changes, lost)))


def _changes(diff: Diff) -> Iterator[Change]:
    for moved in moved_parameters(diff):
        scan, left = moved.scan, moved.delta.pair.left
        norms = sqrt(scan.left_square_sum) * sqrt(scan.right_square_sum)
        far = scan.relative_l2
        is_whole = not (scan.left_nonfinite or scan.right_nonfinite)
        if _is_matrix(left) and is_whole and far and norms > 0 and is_float(moved.delta):
            yield Change(moved, far, scan.dot / norms)


def _is_matrix(info: TensorInfo | None) -> bool:
    return (
        info is not None
        and len(info.shape) > 1
        and info.count >= _VALUES
        and min(info.shape[0], info.count // info.shape[0]) >= _SIDE
    )


def _anomalies(asked: Question, changes: list[Change], lost: list[Change]) -> Iterator[Anomaly]:
    ratio, least_z = asked.answer["peer_ratio"], asked.answer["robust_z"]
    for each in lost:
        peers = _peers(each, changes)
        fate = _fate(asked.diff, each)
        is_far = peers and each.relative >= ratio * peers.median and peers.z > least_z
        if not (is_far or fate.is_proof):
            continue
        numbers = {"relative_l2": each.relative, "cosine": each.cosine}
        text = f"moved by {each.relative:.3g} times its norm"
        if peers:
            text += f", {peers.number} peers by {peers.median:.2g} (median)"
            numbers |= {"peers_median": peers.median, "peers": float(peers.number)}
        yield Anomaly(_NAME, each.moved.name, f"{text}: {fate.text}", numbers, "high")


def _peers(each: Change, changes: list[Change]) -> Peers | None:
    """Compare with the first group that is large enough; None where there is none."""
    others = [other for other in changes if other is not each]
    alike = [other for other in others if _pattern(other) == _pattern(each)]
    groups = [[other for other in alike if _shape(other) == _shape(each)]]
    heads = {other.moved.name for other in changes if role(other.moved.name) == "head"}
    if each.moved.name not in (heads or {max((o.moved.name for o in changes), key=natural_key)}):
        groups += [alike, others]
    group = next((group for group in groups if len(group) >= _PEERS), None)
    if group is None:
        return None
    logs = [log(other.relative) for other in group]
    middle = median(logs)
    spread = float(robust_deviation(logs, middle))
    away = log(each.relative) - middle
    return Peers(median(o.relative for o in group), len(group), away / spread if spread else 1e9)


def _pattern(each: Change) -> str:
    return _NUMBER.sub("*", each.moved.name)


def _shape(each: Change) -> tuple[int, ...]:
    left = each.moved.delta.pair.left
    return left.shape if left else ()


class Fate(NamedTuple):
    """What became of a matrix; a proof is what no training does."""

    text: str
    is_proof: bool


def _fate(diff: Diff, each: Change) -> Fate:
    left, right = each.moved.delta.pair.left, each.moved.delta.pair.right
    changed = Fate(f"its cosine with before is {each.cosine:.2g}", is_proof=False)
    if each.cosine < -_SAME:
        return Fate("its sign is flipped", is_proof=True)
    if left is None or right is None or left.count > _LARGEST:
        return changed
    pair = each.moved.delta.pair
    before, after = (
        diff.values("left", left.name, pair).array(),
        diff.values("right", right.name, pair).array(),
    )
    elsewhere = _turned(before, after) or _exchanged(diff, left, after) or _order(before, after)
    if elsewhere is None and abs(each.cosine) < 1 - _SAME:
        return Fate("nothing of its left values is in it, as if drawn anew", is_proof=False)
    return elsewhere or changed


def _turned(before: NDArray[Any], after: NDArray[Any]) -> Fate | None:
    is_square = before.ndim == 2 and len(before) == before.shape[1]
    if is_square and _cosine(before.T, after) > _SAME:
        return Fate("it is transposed", is_proof=True)
    return None


def _exchanged(diff: Diff, left: TensorInfo, after: NDArray[Any]) -> Fate | None:
    other = _origin(diff, left, after)
    return Fate(f"it holds what {other} held", is_proof=True) if other else None


def _order(before: NDArray[Any], after: NDArray[Any]) -> Fate | None:
    """Say in which other order it holds the same values; None if they are others."""
    import numpy as np

    if not np.array_equal(np.sort(before, axis=None), np.sort(after, axis=None)):
        return None
    flat = [side.reshape(len(side), -1) for side in (before, after)]
    for axis, word in ((1, "rows"), (0, "columns")):
        sums = [np.sort(np.abs(side).sum(axis=axis, dtype=np.float64)) for side in flat]
        if np.allclose(sums[0], sums[1], rtol=1e-9):
            return Fate(f"its {word} are in another order", is_proof=False)
    return Fate("it holds the same values, shuffled", is_proof=True)


def _origin(diff: Diff, left: TensorInfo, after: NDArray[Any]) -> str | None:
    """Name the left tensor of the same shape whose values it holds now."""
    sample = after.ravel()[:_SAMPLE]
    others = [
        info
        for pair in diff.pairs
        if (info := pair.left) and info.shape == left.shape and info.name != left.name
    ]
    others.sort(key=lambda info: block(info.name) != block(left.name))
    for info in others:
        values = diff.values("left", info.name)
        if _cosine(values.span(0, len(sample)), sample) > _SAME and (
            _cosine(values.array().ravel(), after.ravel()) > _SAME
        ):
            return info.name
    return None


def _cosine(one: NDArray[Any], other: NDArray[Any]) -> float:
    import numpy as np

    a, b = (side.astype(np.float64).ravel() for side in (one, other))
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0
