"""Where work runs: one plug-in per engine, and the one place that starts them."""

from __future__ import annotations

import os
from collections.abc import Callable

from difflens.core.protocols import Engine
from difflens.core.registry import Registry

# An engine is made with the number of threads or tasks at once; None lets it choose.
engine: Registry[Callable[[int | None], Engine]] = Registry("engine", __name__, "difflens.engines")

VARIABLE = "DIFFLENS_ENGINE"


def start_engine(name: str | None = None, count: int | None = None) -> Engine:
    """Start an engine: the one of that name, or that DIFFLENS_ENGINE names, or threads."""
    chosen = name or os.environ.get(VARIABLE) or "threads"
    made: Engine = engine[chosen].plugin(count)
    return made
