"""The fingerprint of a model: per tensor a hash, statistics and a sketch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from difflens.core.records import ModelInfo, Stats, TensorInfo
from difflens.measure.sketch.estimate import Sketch, parts


class TensorFingerprint(NamedTuple):
    """One tensor: equal roots prove equal bytes, sketches tell how far apart others are."""

    info: TensorInfo
    root: str  # hexadecimal; see `make.root_of`
    stats: Stats | None  # None where it has no numbers
    sketch: Sketch | None  # None where it has no numbers, or a sum has overflowed

    @property
    def size(self) -> int:
        """How many numbers it has: complex elements have two each."""
        return parts(self.info) * self.info.count

    @property
    def is_constant(self) -> bool:
        """Is every number the same, so that an equal hash says nothing of kinship?"""
        return self.stats is None or self.stats.min == self.stats.max


class Fingerprint:
    """A model as it was when its fingerprint was made."""

    def __init__(
        self,
        model: ModelInfo,
        tensors: Mapping[str, TensorFingerprint],
        *,
        metadata: Mapping[str, str],
        identity: str = "",
    ) -> None:
        """Hold what was made or read; `identity` is that of the model's files."""
        self.model = model
        self.tensors = tensors
        self.metadata = metadata
        self.identity = identity

    @cached_property
    def infos(self) -> dict[str, TensorInfo]:
        """The headers of the tensors, by name."""
        return {name: each.info for name, each in self.tensors.items()}


def model_info(
    path: str, form: str, infos: Mapping[str, TensorInfo], state: tuple[int, int]
) -> ModelInfo:
    """Sum up the headers; `state` counts the tensors and bytes beside the weights."""
    every = infos.values()
    return ModelInfo(
        path=path,
        format=form,
        tensor_count=len(infos),
        parameter_count=sum(info.count for info in every),
        size_bytes=sum(info.size_bytes for info in every),
        dtypes=dict(sorted(Counter(info.dtype for info in every).items())),
        state_tensors=state[0],
        state_bytes=state[1],
    )
