"""Reads gradients and weights on the processor: one pass of the project's own kernel.

torch's own reductions were not taken: five of them over a tensor cost ten times this pass
(training.md 3.2), and none counts zeros. The update is the weights against a copy of them: the
copy is refreshed by the same pass that reads it, and taken anew in front of a step where anything
but the last step read has touched the weights, as their version counter tells.
"""

from __future__ import annotations

from array import array
from operator import attrgetter
from typing import Any

from .layers import local

COLUMNS = 6  # of the kernel's answer: squares, magnitudes, largest, nonfinite, zeros, moves
ROW_BYTES = 8 * COLUMNS
_TABLE = 4  # numbers of a row of its table: address, copy, count, type
IMAGE = 4  # dimensions of weights that may lie with their channels last

_version = attrgetter("_version")


class Moved(Exception):
    """A parameter left the device it was on: whoever reads it there must not."""


class Group:
    """Parameters that are read together, and the kernel's table of them as it was last filled."""

    def __init__(self, places: list[int], parameters: list[Any], codes: dict[Any, int]) -> None:
        """Fill in what does not change from step to step."""
        self.places, self.parameters = places, parameters
        self.size = ROW_BYTES * len(places)  # of an answer
        self.weights, self.is_steady = array("q"), False  # does the table serve again?
        self.versions = array("q", [-1]) * len(places)
        self.dtypes = [each.dtype for each in parameters]
        self.is_plain = all(
            each.dtype in codes and not hasattr(each, "_local_tensor") for each in parameters
        )
        self.gradients = array("q")
        for each in parameters if self.is_plain else ():
            self.gradients.extend((0, 0, each.numel(), codes[each.dtype]))


class ProcessorReader:
    """Reads parameters that lie in the memory of this process."""

    always_counts = True
    is_slow_with_weights, sampled = False, 0

    def __init__(self, parameters: list[Any]) -> None:
        """Learn the parameters; copies of them are made when first needed."""
        import torch

        from difflens.measure.kernel import are_as_read, read, read_gradients, read_weights

        self._torch, self._read, self._are_as_read = torch, read, are_as_read
        self._read_gradients, self._read_weights = read_gradients, read_weights
        self._codes = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}
        self._parameters = parameters
        self._copies: list[Any] = [None] * len(parameters)
        self._groups: dict[int, Group] = {}
        self._last = Group([], [], self._codes)  # that was asked for

    def _group(self, places: list[int]) -> Group:
        """Return the group of some places: the same list is asked for at every step."""
        group = self._groups.get(id(places))
        if group is None or group.places is not places:
            if len(self._groups) > len(self._parameters):
                self._groups.clear()
            group = Group(places, [self._parameters[i] for i in places], self._codes)
            self._groups[id(places)] = group
        self._last = group
        return group

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there; what is given back is finished by `answer`."""
        group = self._last if self._last.places is places else self._group(places)
        # The usual gradients in one call; anything else, such as one that is missing, sparse or a
        # shard, goes the long way.
        out = bytearray(group.size)
        if group.is_plain and self._read_gradients(
            group.parameters, group.dtypes, group.gradients, out
        ):
            return places, out, None
        return self._odd_gradients(places)

    def _odd_gradients(self, places: list[int]) -> Any:
        """Read gradients of which some are missing, sparse, scattered or shards."""
        rows, kept = array("q"), []
        odd: list[int] = []
        lacking: dict[int, int] = {}  # elements that a sparse gradient does not have: zeros
        for place in places:
            gradient = self._parameters[place].grad
            if gradient is None:
                continue
            values = self._dense(gradient)
            rows.extend((values.data_ptr(), 0, values.numel(), self._codes[values.dtype]))
            if gradient.is_sparse:
                lacking[len(odd)] = gradient.numel() - values.numel()
            odd.append(place)
            kept.append(values)
        out = bytearray(ROW_BYTES * len(odd))
        self._read(rows, out)
        return odd, out, lacking

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Take copies of weights that something else than the last step read has touched."""
        group = self._last if self._last.places is places else self._group(places)
        # A fused optimizer moves weights without counting up: `all_stale` tells that one did.
        if all_stale or not self._are_as_read(group.parameters, group.versions):
            self.weights(places)

    def weights(self, places: list[int]) -> Any:
        """Read weights, and how far they moved from their copies."""
        group = self._last if self._last.places is places else self._group(places)
        out = bytearray(group.size)
        if not group.is_steady or not self._read_weights(
            group.parameters, group.versions, group.weights, out
        ):
            kept = self._fill(group)  # what had to be gathered lives until it is read
            self._read(group.weights, out)
            group.versions = array("q", map(_version, group.parameters))
            del kept
        return places, out, None

    def _fill(self, group: Group) -> list[Any]:
        """Fill the table of weights anew, and give what lies at its addresses."""
        rows, kept = array("q"), []
        for place, parameter in zip(group.places, group.parameters, strict=True):
            values = self._dense(parameter)
            copy = self._copies[place]
            if copy is None or copy.numel() != values.numel() or copy.dtype != values.dtype:
                copy = self._copies[place] = self._torch.zeros(values.numel(), dtype=values.dtype)
            code = self._codes[values.dtype]
            rows.extend((values.data_ptr(), copy.data_ptr(), values.numel(), code))
            kept.append(values)
        group.weights = rows
        # A shard has no address of its own, and what was gathered lies elsewhere next time.
        addresses = [each.data_ptr() for each in group.parameters]
        group.is_steady = rows[::_TABLE].tolist() == addresses
        return kept

    def _dense(self, tensor: Any) -> Any:
        """Return its numbers without gaps, in any order; copied only where they lie scattered."""
        tensor = local(tensor)
        if not tensor.is_cpu:
            raise Moved
        if tensor.is_sparse:
            tensor = tensor.coalesce().values()
        if tensor.is_complex():
            tensor = self._torch.view_as_real(tensor.detach())
        if tensor.dtype not in self._codes:
            tensor = tensor.detach().float()
        if tensor.is_contiguous() or (
            tensor.dim() == IMAGE and tensor.is_contiguous(memory_format=self._torch.channels_last)
        ):
            return tensor
        return tensor.detach().contiguous()

    def close(self) -> None:
        """Let go."""
        self._parameters, self._copies = [], []
        self._groups.clear()

    def device_seconds(self) -> float:
        """Return 0: what is read here is read on the loop's own time."""
        return 0.0

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Return places and the kernel's columns for each of them."""
        import numpy as np

        found, out, lacking = begun
        columns = np.frombuffer(out, np.float64).reshape(-1, COLUMNS)
        for row, zeros in (lacking or {}).items():
            columns[row, 4] += zeros
        return found, columns
