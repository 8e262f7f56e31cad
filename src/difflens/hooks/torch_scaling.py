"""The loss scale of mixed precision: who holds it, and whether gradients still carry it."""

from __future__ import annotations

import gc
from typing import Any


class Scaling:
    """What is known of a GradScaler at work on an optimizer."""

    def __init__(self, scaler: Any = None) -> None:
        """Take the scaler that was handed in; without one it is looked for when needed."""
        self.scaler, self.is_sought = scaler, scaler is not None

    def look(self, optimizer: Any) -> None:
        """Find the scaler of an optimizer, once, at the first step.

        Nothing leads from an optimizer to its scaler, and unscaling leaves no mark on gradients,
        not even on their version counter; so all objects are looked through, some milliseconds.
        """
        self.is_sought = True
        for each in gc.get_objects():
            if type(each).__name__ == "GradScaler" and id(optimizer) in getattr(
                each, "_per_optimizer_states", ()
            ):
                self.scaler = each
                return

    def of(self, optimizer: Any) -> tuple[Any, bool] | None:
        """Give the scale, as a tensor, and whether the gradients still have it in them."""
        inside = getattr(optimizer, "grad_scale", None)
        if inside is not None:  # an optimizer that unscales within its own step
            return inside, True
        scaler = self.scaler
        if scaler is None or not scaler.is_enabled():
            return None
        scale = getattr(scaler, "_scale", None)
        states = getattr(scaler, "_per_optimizer_states", {})
        stage = states[id(optimizer)].get("stage") if id(optimizer) in states else None
        unscaled = getattr(stage, "name", "") in {"UNSCALED", "STEPPED"}
        return None if scale is None else (scale, not unscaled)

    def close(self) -> None:
        """Let go of it."""
        self.scaler = None
