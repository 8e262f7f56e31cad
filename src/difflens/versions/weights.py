"""All weights of a model in a few numbers, read piece by piece, and each tensor's fingerprint.

Percentiles are exact up to `SAMPLE` weights; of more, one is drawn from each of as many equal
stretches, with a fixed seed, and the share of weights below a percentile is then off by at most
`percentile_error` (Dvoretzky-Kiefer-Wolfowitz, 95 %).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import hypot, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.addresses import Address, locate
from difflens.core.dtypes import OPAQUE
from difflens.core.findings import Missing
from difflens.core.protocols import TensorSource
from difflens.core.records import Inspected, Stats, TensorInfo
from difflens.diffs.inspection import inspect, inspect_source
from difflens.measure.chunks import Side
from difflens.measure.values import Values
from difflens.models.anatomy.roles import is_parameter
from difflens.models.describe import WITHOUT_PATH
from difflens.models.opening import Model, open_input, place_of
from difflens.stats.moments import Moments

from .records.snapshots import TensorSummary, WeightsSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE, SEED = 10_000_000, 0
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_NUMBERLESS = OPAQUE | {"C64", "BOOL"}


class SummarisedModel(NamedTuple):
    """A model as it was read: its tensors, and its weights in brief."""

    model: Inspected
    summary: WeightsSummary


def summarise_weights(
    model: Model, *, threads: int | None = None, limits: Mapping[str, int] | None = None
) -> SummarisedModel:
    """Read every byte of a model once for its moments, once for its fingerprints, and sample it."""
    name, source = open_input(model, None, limits)
    found = inspect_source(
        name, source, place_of(model), statistics=True, digests=True, threads=threads
    )
    counted = [
        each for each in found.tensors if not each.is_state and _counts(each.info) and each.stats
    ]
    infos = [each.info for each in counted]
    drawn, error = _sample(source, infos)
    source.close()
    facts: dict[str, Any] = _figures([(each.info, each.stats) for each in counted if each.stats])
    if len(drawn):
        facts |= {"percentiles": _percentiles(drawn), "percentile_error": error}
    if not infos:
        why = "the model holds no tensor of plain numbers"
        fields = ("mean", "std_dev", "min", "max", "zero_count", "sparsity", "percentile_error")
        facts["missing"] = tuple(Missing(field, "floating-point weights", why) for field in fields)
    tensors = tuple(_tensor(each.info, each.stats, each.sha256) for each in found.tensors)
    return SummarisedModel(
        found,
        WeightsSummary(
            **facts,
            source=_place(found.model.path),
            format=found.model.format,
            size_bytes=found.model.size_bytes,
            content_hash=content_hash(tensors),
            tensors=tensors,
        ),
    )


def _place(path: str) -> str:
    """Return a path that still leads there from another folder."""
    place = locate(path)
    if path in WITHOUT_PATH or isinstance(place, Address):
        return path
    return str(place.absolute())


def fingerprint(model: Model, *, threads: int | None = None) -> str | None:
    """Hash a model's tensors and nothing more: is it the one that was recorded?"""
    found = inspect(model, digests=True, threads=threads)
    return content_hash(_tensor(each.info, None, each.sha256) for each in found.tensors)


def content_hash(tensors: Iterable[TensorSummary]) -> str | None:
    """Fingerprint a model: SHA-256 over its tensors in order of their names."""
    import hashlib

    whole = hashlib.sha256()
    for each in sorted(tensors, key=lambda tensor: tensor.name):
        if each.sha256 is None:
            return None
        line = f"{each.name}\0{each.dtype}\0{list(each.shape)}\0{each.sha256}\n"
        whole.update(line.encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _counts(info: TensorInfo) -> bool:
    """Is it among the weights: numbers that training moves?"""
    return info.dtype not in _NUMBERLESS and is_parameter(info.name, info.dtype)


def _tensor(info: TensorInfo, stats: Stats | None, sha256: str | None) -> TensorSummary:
    l2 = None
    if stats and stats.mean is not None and stats.std is not None and not stats.nonfinite:
        l2 = sqrt(info.count) * hypot(stats.mean, stats.std)
    return TensorSummary(
        name=info.name,
        dtype=info.dtype,
        shape=info.shape,
        count=info.count,
        sha256=sha256,
        l2=l2 if l2 is not None and isfinite(l2) else None,
    )


def _figures(counted: list[tuple[TensorInfo, Stats]]) -> dict[str, Any]:
    """Merge the statistics of all tensors."""
    if not counted:
        return {}
    whole, lows, highs = Moments(), [], []
    for info, stats in counted:
        finite = info.count - stats.nonfinite
        if finite and stats.mean is not None and stats.std is not None:
            whole = whole.plus(Moments(finite, stats.mean, stats.std * stats.std * finite))
        lows += [stats.min] if stats.min is not None else []
        highs += [stats.max] if stats.max is not None else []
    total = sum(info.count for info, _ in counted)
    zeros = sum(stats.zeros for _, stats in counted)
    found: dict[str, Any] = {
        "count": total,
        "nonfinite": sum(stats.nonfinite for _, stats in counted),
        "zero_count": zeros,
        "sparsity": zeros / total if total else None,
    }
    if whole.n and lows and highs:
        deviation = sqrt(whole.m2 / whole.n)
        found |= {"mean": whole.mean, "std_dev": deviation if isfinite(deviation) else None}
        found |= {"min": min(lows), "max": max(highs)}
    return found


def _sample(source: TensorSource, infos: list[TensorInfo]) -> tuple[NDArray[Any], float]:
    """Draw finite weights, the same for the same model; also return how far ranks may be off."""
    import numpy as np

    stretch = max(1, -(-sum(info.count for info in infos) // SAMPLE))
    random = np.random.default_rng(SEED)
    parts = [np.empty(0, np.float32)]
    for info in infos:
        for piece in Values(Side.of(source, info)).pieces():
            if stretch > 1:
                starts = np.arange(0, len(piece), stretch)
                drawn = starts + random.integers(0, stretch, len(starts))
                parts.append(piece[np.minimum(drawn, len(piece) - 1)])
            else:
                parts.append(piece)
    source.confirm()
    every = np.concatenate(parts)
    every = every[np.isfinite(every)]
    return every, sqrt(log(2 / 0.05) / (2 * max(1, len(every)))) if stretch > 1 else 0.0


def _percentiles(values: NDArray[Any]) -> dict[str, float]:
    """Return the percentiles of type 7; sorted in place, since they may be many."""
    import numpy as np

    values.sort()
    places = (len(values) - 1) * np.array(PERCENTILES) / 100
    low = places.astype(np.int64)
    below = values[low].astype(np.float64)
    above = values[np.minimum(low + 1, len(values) - 1)].astype(np.float64)
    half = (above / 2 - below / 2) * (places - low)  # a whole gap may overflow
    found = np.clip(below + half + half, below, above)
    return {f"p{rank}": float(each) for rank, each in zip(PERCENTILES, found, strict=True)}
