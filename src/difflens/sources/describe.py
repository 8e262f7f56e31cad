"""Which model a source is: its size, its element types, what lies beside it."""

from __future__ import annotations

from collections import Counter

from ..protocols import TensorSource
from ..records import ModelInfo
from .beside import beside

IN_MEMORY = "(in memory)"


def describe(path: str, source: TensorSource) -> ModelInfo:
    """Sum up what the header says."""
    infos = source.tensors.values()
    return ModelInfo(
        path=path,
        format=source.format,
        tensor_count=len(source.tensors),
        parameter_count=sum(info.count for info in infos),
        size_bytes=sum(info.size_bytes for info in infos),
        dtypes=dict(sorted(Counter(info.dtype for info in infos).items())),
    )


def metadata(path: str, source: TensorSource) -> dict[str, str]:
    """Gather what the file says beside its tensors, and what its folder holds beside the file."""
    return {**source.metadata, **({} if path == IN_MEMORY else beside(path))}
