"""What is read only where it is asked for: what units do, and the direction of gradients.

A hook on every module at every step was not taken: it costs 15 to 40 % of a step. Hooks on units
are put on for the steps that are sampled and taken off again. Mean and cosine of a gradient need
its sign, which the pass that reads all else does not look at, and the cosine a copy of every
gradient. That is arithmetic of torch in doubles, tensor by tensor, on any device; nothing waits
for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...records.runs import DIRECTION_FIELDS
from .late import Silent, later
from .layers import ACTIVATIONS, class_of, local

_NEVER_NEGATIVE = frozenset({"ReLU", "ReLU6", "Threshold"})
# Values within 3 % of the range's end: there the slope is under a tenth of its largest.
_ENDS = {
    "Tanh": (-0.97, 0.97),
    "Sigmoid": (0.03, 0.97),
    "Hardtanh": (-0.97, 0.97),
    "Hardsigmoid": (0.03, 0.97),
}
_ROWS = 1 << 16  # rows of units that are looked at in one step


class Activations:
    """Reads the outputs behind layers, every so many steps."""

    def __init__(self, every: int, behind: list[tuple[int, Any, str]]) -> None:
        """Take layers as (place, module whose output counts, its class)."""
        self._every, self._behind = every, behind
        self._handles: list[Any] = []
        self._read: dict[int, Callable[[], Any]] = {}

    def begin(self, step: int) -> None:
        """Put the hooks on where the step that begins now is sampled."""
        if step % self._every or self._handles:
            return
        for place, module, kind in self._behind:
            call = Silent(self._reads(place, kind))
            self._handles.append(module.register_forward_hook(call))

    def _reads(self, place: int, kind: str) -> Callable[..., None]:
        def read(module: Any, _args: Any, output: Any) -> None:
            with suppress(Exception):  # nothing of ours reaches the loop
                if module.training and place not in self._read:
                    self._read[place] = later(figures(output.detach(), kind))

        return read

    def end(self) -> dict[int, Callable[[], Any]]:
        """Remove the hooks; return what was read, as promises by layer."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        promises, self._read = self._read, {}
        return promises

    def close(self) -> None:
        """Leave nothing on the modules."""
        self.end()
        self._behind = []


def figures(output: Any, kind: str) -> Any:
    """Return the four fields; NaN if the non-linearity cannot die or saturate.

    A unit is a channel of images, or else a feature: dead where no example of the batch moves it
    off zero.
    """
    import torch

    units = output.movedim(1, -1) if output.dim() == 4 else output  # images
    units = units.reshape(-1, units.shape[-1])[:_ROWS].float()
    unknown = torch.full((), float("nan"), device=units.device)
    spread, mean = torch.std_mean(units, correction=min(1, units.numel() - 1))
    dead = (units <= 0).all(0).float().mean() if kind in _NEVER_NEGATIVE else unknown
    saturated = unknown
    if kind in _ENDS:
        low, high = _ENDS[kind]
        saturated = ((units < low) | (units > high)).float().mean()
    return torch.stack([mean, spread, dead, saturated])


def behind_layers(watched: list[Any], root: Any, order: list[int]) -> list[tuple[int, Any, str]]:
    """Find for every weight of two or more dimensions the module whose output is its activation.

    `order` is the identities of modules as they ran; where a module follows that is a
    non-linearity its output counts, or else the layer's own.
    """
    modules = {id(module): module for module in root.modules()}
    places = {module: place for place, module in enumerate(order)}
    behind = []
    for place, each in enumerate(watched):
        if each.parameter.dim() < 2 or id(each.module) not in places:
            continue
        following = order[places[id(each.module)] + 1 :][:2]
        chosen = each.module
        for module in (modules[i] for i in following if i in modules):
            if class_of(module) in ACTIVATIONS:
                chosen = module
                break
            if "Norm" not in class_of(module):
                break
        behind.append((place, chosen, class_of(chosen)))
    return behind


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
        for device, own_places in by_device.items():
            rows = [self._row(place, device) for place in own_places]
            self._read.append((own_places, later(self._torch.stack(rows))))

    def _row(self, place: int, device: Any) -> Any:
        """Return mean, product with the last gradient, and both norms."""
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

    def collect(self) -> list[Read]:
        """Return what was read since the last time, to be finished on any thread."""
        read, self._read = self._read, []
        return read

    def close(self) -> None:
        """Release every gradient."""
        self._parameters = []
        self._last.clear()


def rows_of(read: list[Read], layers: int, *, blank: Any, divisor: float) -> Any:
    """Return mean and cosine of all layers; blank where one was not read, or has no direction."""
    import numpy as np

    rows = np.full((len(DIRECTION_FIELDS), layers), blank, np.float32)
    for places, promise in read:
        mean, product, norm, before = promise().double().numpy().T
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            cosine = (product / norm / before).astype(np.float32)
        rows[0, places] = mean / divisor
        known = (norm > 0) & (before > 0) & ~np.isnan(cosine)
        rows[1, np.array(places)[known]] = cosine[known]
    return rows
