"""Mean of each gradient, and its cosine to that of the reading before: where asked for only.

Both need the gradient's sign, which the pass that reads all else does not look at, and the cosine
a copy of every gradient. That is torch's own arithmetic in doubles, tensor by tensor, on whatever
device; nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .torch_late import later
from .torch_layers import local

FIELDS = ("grad_mean", "grad_cosine")
Read = tuple[list[int], Callable[[], Any]]


class Directions:
    """Keeps the gradients of the last reading."""

    def __init__(self, parameters: list[Any]) -> None:
        """Learn the parameters; copies of gradients are made as they are read."""
        import torch

        self._torch, self._parameters = torch, parameters
        self._last: dict[int, tuple[Any, Any]] = {}  # gradient and its norm, where they lie
        self._read: list[Read] = []

    def read(self, places: list[int]) -> None:
        """Read the gradients that are there; a sparse one has no copy to compare with."""
        by_device: dict[Any, list[int]] = {}
        for place in places:
            gradient = self._parameters[place].grad
            if gradient is not None and not gradient.is_sparse and not gradient.is_complex():
                by_device.setdefault(local(gradient).device, []).append(place)
        for device, found in by_device.items():
            rows = [self._row(place, device) for place in found]
            self._read.append((found, later(self._torch.stack(rows))))

    def _row(self, place: int, device: Any) -> Any:
        """Give mean, product with the last gradient, and both norms."""
        torch = self._torch
        gradient = local(self._parameters[place].grad).detach()
        wide = gradient.to(torch.float64 if device.type != "mps" else torch.float32).reshape(-1)
        norm = wide.norm()
        last, before = self._last.get(place, (None, None))
        if last is None or last.shape != gradient.shape or last.device != device:
            before = product = torch.full_like(norm, float("nan"))
            self._last[place] = gradient.clone(), norm
        else:
            product = wide @ last.reshape(-1).to(wide.dtype)
            last.copy_(gradient)
            self._last[place] = last, norm
        return torch.stack([wide.mean(), product, norm, before])

    def take(self) -> list[Read]:
        """Give what was read since the last time, to be finished on any thread."""
        read, self._read = self._read, []
        return read

    def close(self) -> None:
        """Let go of every gradient."""
        self._parameters = []
        self._last.clear()


def rows_of(read: list[Read], layers: int, *, blank: Any, divisor: float) -> Any:
    """Give mean and cosine of all layers; blank where one was not read, or has no direction."""
    import numpy as np

    rows = np.full((len(FIELDS), layers), blank, np.float32)
    for places, promise in read:
        mean, product, norm, before = promise().double().numpy().T
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            cosine = (product / norm / before).astype(np.float32)
        rows[0, places] = mean / divisor
        known = (norm > 0) & (before > 0) & ~np.isnan(cosine)
        rows[1, np.array(places)[known]] = cosine[known]
    return rows
