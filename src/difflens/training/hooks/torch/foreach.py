"""Reads gradients and weights with torch's own multi-tensor reductions, where Triton is missing.

Three norms over all gradients and two over all weights, without waiting for the device. What is
zero or not finite can only be counted tensor by tensor, a launch for each: that is done on one
reading in sixteen, and is not recorded on the others.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from .late import later
from .layers import local
from .readings import COLUMNS, Moved

_version = attrgetter("_version")

_COUNTED = 16  # readings of which one counts
_LEAST = 1e-12  # magnitude from which on squares are floats with room to spare


class ForeachReader:
    """Reads parameters on any device that torch has kernels for."""

    always_counts = False
    is_slow_with_weights, sampled = True, 0

    def __init__(self, parameters: list[Any], device: Any) -> None:
        """Learn the parameters; copies of them are made when first needed."""
        import torch

        self._torch, self._device = torch, device
        self._parameters = parameters
        self._copies: dict[int, Any] = {}
        self._versions: dict[int, int] = {}
        self._readings = 0
        self._easy: set[int] = set()  # gradients whose squares were floats the last time
        self._wide = torch.float64 if device.type != "mps" else torch.float32

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there."""
        torch = self._torch
        present = [i for i in places if self._parameters[i].grad is not None]
        if not present:
            return present, None
        tensors = [self._local(self._parameters[i].grad) for i in present]
        columns = [
            self._norms(tensors, 2, present).square(),
            self._norms(tensors, 1, present),
            self._norms(tensors, float("inf"), present),
            *self._counts(tensors),
        ]
        columns.append(torch.zeros_like(columns[0]))
        return present, later(torch.stack(columns, 1))

    def _counts(self, tensors: list[Any]) -> list[Any]:
        """Count what is not finite and what is zero, on one reading in so many: NaN elsewhere."""
        torch = self._torch
        self._readings += 1
        if self._readings % _COUNTED != 1:
            unknown = torch.full((len(tensors),), float("nan"), device=self._device)
            return [unknown.to(self._wide)] * 2
        odd = torch.stack([torch.isfinite(each).logical_not().sum() for each in tensors])
        zeros = torch.stack([(each == 0).sum() for each in tensors])
        return [odd.to(self._wide), zeros.to(self._wide)]

    def _norms(self, tensors: list[Any], order: float, places: list[int]) -> Any:
        """Return norms in the tensors' own precision, in doubles where squares would be lost."""
        torch = self._torch
        careful = [i not in self._easy for i in places]
        if any(careful):
            wide = torch._foreach_norm(tensors, order, dtype=self._wide)  # noqa: SLF001
            return torch.stack(wide)
        return torch.stack(torch._foreach_norm(tensors, order)).to(self._wide)  # noqa: SLF001

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Copy weights that something else than the last step read has touched."""
        with self._torch.no_grad():
            for i in places:
                parameter = self._parameters[i]
                if all_stale or self._versions.get(i) != _version(parameter):
                    self._copies[i] = self._local(parameter).clone()

    def weights(self, places: list[int]) -> Any:
        """Read weights, and how far they moved from their copies."""
        torch = self._torch
        tensors = [self._local(self._parameters[i]) for i in places]
        if not tensors:
            return places, None
        for i, tensor in zip(places, tensors, strict=True):
            if i not in self._copies or self._copies[i].shape != tensor.shape:
                self._copies[i] = tensor.clone()
        copies = [self._copies[i] for i in places]
        moves = torch._foreach_sub(tensors, copies)  # noqa: SLF001
        torch._foreach_copy_(copies, tensors)
        squares = torch.stack(torch._foreach_norm(tensors, 2, dtype=self._wide)).square()  # noqa: SLF001
        moved = torch.stack(torch._foreach_norm(moves, 2, dtype=self._wide)).square()  # noqa: SLF001
        nothing = torch.zeros_like(squares)
        columns = [squares, nothing, nothing, nothing, nothing, moved]
        for i in places:
            self._versions[i] = _version(self._parameters[i])
        return places, later(torch.stack(columns, 1))

    def _local(self, tensor: Any) -> Any:
        tensor = local(tensor).detach()
        if tensor.device != self._device:
            raise Moved
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        if tensor.is_complex():
            return tensor.abs()
        # Differences of 16-bit numbers are not of 16 bits.
        return tensor.float() if tensor.element_size() < 4 else tensor

    def device_seconds(self) -> float:
        """Return 0: the device's time is not measured here."""
        return 0.0

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Wait for a reading and return its columns."""
        import numpy as np

        places, promise = begun[0], begun[1]
        if promise is None:
            return places, np.zeros((0, COLUMNS))
        columns = promise().double().numpy()
        largest = columns[:, 2]
        if largest.any():
            easy = (largest > _LEAST) & (largest < 1 / _LEAST)
            self._easy = {place for place, sure in zip(places, easy, strict=True) if sure}
        return places, columns

    def close(self) -> None:
        """Release parameters and copies."""
        self._parameters = []
        self._copies.clear()
