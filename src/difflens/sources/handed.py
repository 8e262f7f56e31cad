"""Whatever a user hands over as a model: a path, or a mapping of names to arrays."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from ..protocols import TensorSource
from . import open_model
from .describe import IN_MEMORY

Model = str | PathLike[str] | Mapping[str, Any]


def handed(
    model: Model, form: str | None = None, limits: Mapping[str, int] | None = None
) -> tuple[str, TensorSource]:
    """Open it, and say what to call it."""
    if isinstance(model, Mapping):
        from .memory import Memory

        return IN_MEMORY, Memory(model)
    return fspath(model), open_model(fspath(model), format=form, limits=limits)
