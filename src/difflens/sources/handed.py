"""Whatever a user hands over as a model: a path, or a mapping of names to arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from ..protocols import TensorSource
from . import open_model
from .describe import IN_MEMORY

_FEW = 2000  # tensors whose names are looked through before anything more is imported
MARKS = re.compile(r"\.lora_|q_?weight|W_q|packed|absmax|SCB|scale|blocks|quant")

Model = str | PathLike[str] | Mapping[str, Any]


def handed(
    model: Model, form: str | None = None, limits: Mapping[str, int] | None = None
) -> tuple[str, TensorSource]:
    """Open it, and say what to call it."""
    if isinstance(model, Mapping):
        from .memory import Memory

        return IN_MEMORY, Memory(model)
    return fspath(model), open_model(fspath(model), format=form, limits=limits)


def meant(
    left: TensorSource, right: TensorSource, about: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[TensorSource, TensorSource]:
    """Give two models as what they mean: weights decoded, an adapter beside its base merged.

    Most models mean what they hold: their names show it before the decoders are imported.
    """
    if all(len(side.tensors) < _FEW and _is_plain(side) for side in (left, right)):
        return left, right
    from . import adapters

    return adapters.meant(left, right, about)


def _is_plain(source: TensorSource) -> bool:
    return not any(map(MARKS.search, source.tensors))
