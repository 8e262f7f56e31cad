"""Reads gradients and weights with torch's own multi-tensor reductions, where Triton is missing.

Three norms over all gradients and two over all weights, without waiting for the device. Zeros are
counted tensor by tensor, the one thing here that takes a launch for each of them.
"""

from __future__ import annotations

from typing import Any

from .torch_late import later
from .torch_layers import local
from .torch_readings import COLUMNS, Moved


class ForeachReader:
    """Reads parameters on any device that torch has kernels for."""

    def __init__(self, parameters: list[Any], device: Any) -> None:
        """Learn the parameters; copies of them are made when first needed."""
        import torch

        self._torch, self._device = torch, device
        self._parameters = parameters
        self._copies: dict[int, Any] = {}
        self._versions: dict[int, int] = {}

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there."""
        torch = self._torch
        found = [i for i in places if self._parameters[i].grad is not None]
        tensors = [self._plain(self._parameters[i].grad) for i in found]
        if not tensors:
            return found, None
        finite = [torch.isfinite(each) for each in tensors]
        odd = [each.logical_not().sum() for each in finite]
        squares = self._norms(tensors, 2).square()
        kept = [torch.where(sure, each, 0) for sure, each in zip(finite, tensors, strict=True)]
        zeros = [(each == 0).sum() for each in tensors]
        columns = [
            squares, self._norms(kept, 1), self._norms(kept, float("inf")),
            torch.stack(odd), torch.stack(zeros), torch.zeros_like(squares),
        ]  # fmt: skip
        return found, later(torch.stack([each.double() for each in columns], 1))

    def _norms(self, tensors: list[Any], order: float) -> Any:
        # Norms in doubles: the squares of a vanished gradient are no floats.
        wide = self._torch.float64 if self._device.type != "mps" else self._torch.float32
        found = self._torch._foreach_norm(tensors, order, dtype=wide)  # noqa: SLF001
        return self._torch.stack(found)

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Take copies of weights that something else than the last step read has touched."""
        with self._torch.no_grad():
            for i in places:
                parameter = self._parameters[i]
                if all_stale or self._versions.get(i) != parameter._version:  # noqa: SLF001
                    self._copies[i] = self._plain(parameter).clone()

    def weights(self, places: list[int]) -> Any:
        """Read weights, and how far they moved from their copies."""
        torch = self._torch
        tensors = [self._plain(self._parameters[i]) for i in places]
        if not tensors:
            return places, None
        for i, tensor in zip(places, tensors, strict=True):
            if i not in self._copies or self._copies[i].shape != tensor.shape:
                self._copies[i] = tensor.clone()
        copies = [self._copies[i] for i in places]
        moves = torch._foreach_sub(tensors, copies)  # noqa: SLF001
        torch._foreach_copy_(copies, tensors)  # noqa: SLF001
        squares, nothing = self._norms(tensors, 2).square(), torch.zeros(len(places))
        moved = self._norms(moves, 2).square()
        nothing = nothing.to(squares.device)
        columns = [squares, nothing, nothing, nothing, nothing, moved]
        for i in places:
            self._versions[i] = self._parameters[i]._version  # noqa: SLF001
        return places, later(torch.stack([each.double() for each in columns], 1))

    def _plain(self, tensor: Any) -> Any:
        tensor = local(tensor).detach()
        if tensor.device != self._device:
            raise Moved
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        if tensor.is_complex():
            return tensor.abs()
        # Differences of 16-bit numbers are not of 16 bits.
        return tensor.float() if tensor.element_size() < 4 else tensor  # noqa: PLR2004

    def settle(self) -> None:
        """Do nothing: all is read on the loop's own stream."""

    def device_seconds(self) -> float:
        """Give 0: the device's time is not measured here."""
        return 0.0

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Wait for a reading and give its columns."""
        import numpy as np

        places, promise = begun[0], begun[1]
        return places, np.zeros((0, COLUMNS)) if promise is None else promise().numpy()

    def close(self) -> None:
        """Let go."""
        self._parameters = []
        self._copies.clear()
