"""What units do on sampled steps: mean and spread, how many are dead, how many saturated.

A hook on every module at every step was not taken: it costs 15 to 40 % (training.md 3.2). Hooks
are put on for the steps that are sampled and taken off again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .torch_late import Silent, later
from .torch_layers import ACTIVATIONS, class_of

FIELDS = ("act_mean", "act_std", "act_dead", "act_saturated")
_NEVER_NEGATIVE = frozenset({"ReLU", "ReLU6", "Threshold"})
# Values within 3 % of the range's end: there the slope is under a tenth of its largest.
_ENDS = {"Tanh": (-0.97, 0.97), "Sigmoid": (0.03, 0.97), "Hardtanh": (-0.97, 0.97),
         "Hardsigmoid": (0.03, 0.97)}  # fmt: skip
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
        """Take the hooks off and give what was read, as promises by layer."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        found, self._read = self._read, {}
        return found

    def close(self) -> None:
        """Leave nothing on the modules."""
        self.end()
        self._behind = []


def figures(output: Any, kind: str) -> Any:
    """Give the four fields; NaN where the non-linearity cannot die or saturate.

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
    found = []
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
        found.append((place, chosen, class_of(chosen)))
    return found
