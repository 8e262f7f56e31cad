"""A whole model in some kilobytes: what finds its relatives among thousands of others."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b, sha256
from math import isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

from difflens.core.errors import CorruptFile
from difflens.measure.sketch import BUCKETS
from difflens.measure.sketch.estimate import Sketch, finish, norm
from difflens.models.anatomy.roles import is_parameter

from ..pairing.names import core_of
from .records import Fingerprint, TensorFingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEAD = struct.Struct("<16sdiI")  # architecture, norm, exponent, number of tensors


class Summary(NamedTuple):
    """One model; tensors that training does not move are left out."""

    architecture: bytes  # equal for models whose tensors have the same names and shapes
    norm: float
    sketch: Sketch  # of all tensors together, each in places that its name and shape choose
    roots: bytes | memoryview  # U32: the beginnings of the roots
    counts: bytes | memoryview  # U32: how many numbers each of these tensors has

    def to_bytes(self) -> bytes:
        """Write it."""
        head = _HEAD.pack(self.architecture, self.norm, self.sketch.exponent, len(self.roots) // 4)
        return b"".join((head, self.sketch.numbers, self.roots, self.counts))


def parse_summary(data: bytes, where: str) -> Summary:
    """Read a summary."""
    architecture, size, exponent, count = _HEAD.unpack_from(data.ljust(_HEAD.size))
    numbers = _HEAD.size + 4 * BUCKETS
    roots = numbers + 4 * count
    is_good = len(data) == roots + 4 * count and isfinite(size) and abs(exponent) < 1100
    if not is_good:
        raise CorruptFile(where, "the summary of a fingerprint is damaged")
    view = memoryview(data)  # thousands of summaries are not copied
    sketch = Sketch(exponent, view[_HEAD.size : numbers])
    return Summary(architecture, size, sketch, view[numbers:roots], view[roots:])


def summarise(fingerprint: Fingerprint) -> Summary:
    """Sum up a fingerprint.

    The sketches of all tensors are added up, each turned by its name and shape: so the distance of
    two sums is that of the models, and a tensor that only one of them has counts in full.
    """
    import numpy as np

    moved = list(_parameters(fingerprint))
    total = np.zeros(BUCKETS)
    for each in moved:
        if each.sketch:
            _add(total, each, each.sketch)
    sketch = finish(total, BUCKETS)
    size = _size(moved) if sketch else 0.0  # without a sketch only hashes find it
    telling = [each for each in moved if not each.is_constant]
    return Summary(
        _architecture(moved),
        size,
        sketch or Sketch(0, bytes(4 * BUCKETS)),
        b"".join(bytes.fromhex(each.root[:8]) for each in telling),
        struct.pack(f"<{len(telling)}I", *(min(each.size, 2**32 - 1) for each in telling)),
    )


def _size(tensors: Sequence[TensorFingerprint]) -> float:
    """Return the norm of all tensors together; 0 if it overflows."""
    sizes = [norm(each.stats, each.size) for each in tensors if each.stats]
    whole = sqrt(sum(each * each for each in sizes))
    return whole if isfinite(whole) else 0.0


def _parameters(fingerprint: Fingerprint) -> Iterator[TensorFingerprint]:
    for name, each in fingerprint.tensors.items():
        if each.stats and is_parameter(name, each.info.dtype):
            yield each


def _architecture(tensors: Sequence[TensorFingerprint]) -> bytes:
    lines = sorted(map(_place, tensors))
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).digest()[:16]


@cache
def _bits(place: str) -> int:
    data = place.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=4).digest(), "little")


def _place(each: TensorFingerprint) -> str:
    """Name a tensor as all wrappers do, with its shape."""
    return f"{core_of(each.info.name)} {'x'.join(map(str, each.info.shape))}"


def _add(total: NDArray, each: TensorFingerprint, sketch: Sketch) -> None:  # type: ignore[type-arg]
    import numpy as np

    bits = _bits(_place(each))
    sums = np.zeros(BUCKETS)
    numbers = np.frombuffer(sketch.numbers, "<i4")
    sums[: len(numbers)] = np.ldexp(numbers.astype(np.float64), sketch.exponent)
    total += np.roll(-sums if bits & BUCKETS else sums, bits % BUCKETS)


class Nearness(NamedTuple):
    """How near a recorded model is: 0 is the same one, 1 no relative.

    `distance` is ‖right - left‖ divided by what it is between models that have nothing to do with
    each other; `shared` is the part of the model's numbers that lie in tensors of equal hashes.
    """

    distance: float
    shared: float
    is_same_architecture: bool

    @property
    def score(self) -> float:
        """The nearer of both."""
        return min(self.distance, 1 - self.shared)


def nearness(model: Summary, others: Sequence[Summary]) -> list[Nearness]:
    """Measure how near others are; thousands take some milliseconds."""
    import numpy as np

    if not others:
        return []
    distances = _distances(model, others)
    sizes = np.hypot(model.norm, [each.norm for each in others])
    are_known = (model.norm > 0) & (np.array([each.norm for each in others]) > 0)
    relative = np.divide(distances, sizes, out=np.ones(len(others)), where=are_known)
    return [
        Nearness(float(far), float(part), each.architecture == model.architecture)
        for far, part, each in zip(relative, _shared(model, others), others, strict=True)
    ]


def _distances(model: Summary, others: Sequence[Summary]) -> NDArray:  # type: ignore[type-arg]
    import numpy as np

    joined = b"".join(each.sketch.numbers for each in others)
    sums = np.frombuffer(joined, "<i4").reshape(len(others), BUCKETS).astype(np.float64)
    exponents = np.array([each.sketch.exponent for each in others])
    sums = np.ldexp(sums, exponents[:, None])
    own = np.ldexp(np.frombuffer(model.sketch.numbers, "<i4").astype(np.float64),
                   model.sketch.exponent)  # fmt: skip
    sums -= own
    return np.sqrt(np.einsum("ij,ij->i", sums, sums))


def _shared(model: Summary, others: Sequence[Summary]) -> NDArray:  # type: ignore[type-arg]
    """Return the parts of the model's numbers that each other one has, by the roots."""
    import numpy as np

    own = np.unique(np.frombuffer(model.roots, "<u4"))
    total = np.frombuffer(model.counts, "<u4").astype(np.float64).sum()
    lengths = np.array([len(each.roots) // 4 for each in others])
    roots = np.frombuffer(b"".join(each.roots for each in others), "<u4")
    counts = np.frombuffer(b"".join(each.counts for each in others), "<u4")
    if not len(own) or not len(roots):
        return np.zeros(len(others))
    # Of thousands of models nearly no root is ours: a table of their lower bits tells most of them.
    table = np.zeros(1 << 16, np.bool_)
    table[own & 0xFFFF] = True
    places = np.flatnonzero(table[roots & 0xFFFF])
    places = places[np.isin(roots[places], own)]
    ends = np.cumsum(lengths)
    found = np.bincount(np.searchsorted(ends, places, side="right"), counts[places], len(others))
    return np.minimum(found / total, 1.0)
