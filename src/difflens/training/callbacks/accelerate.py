"""Accelerate: the monitor for a loop whose parts went through `prepare`.

with difflens.accelerate_monitor(accelerator, model, optimizer, "runs/one") as watch:
    for batch in data:
        …
        if accelerator.sync_gradients:
            watch.step(loss=loss)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def accelerate_monitor(
    accelerator: Any, model: Any, optimizer: Any, run: str | Path = "runs/run", **how: Any
) -> Any:
    """Watch a prepared model with its prepared optimizer; `how` is that of `difflens.monitor`.

    Hooks go on what Accelerate wrapped: its own optimizer skips steps while it accumulates, the
    one inside is called once an update. The loss scale is the accelerator's.
    """
    from ..story import monitor
    from .transformers import unwrapped

    settings = {"scaler": getattr(accelerator, "scaler", None), **how}
    return monitor(accelerator.unwrap_model(model), unwrapped(optimizer), run, **settings)
