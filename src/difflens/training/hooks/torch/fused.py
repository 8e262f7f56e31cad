"""Reads all gradients of a GPU with one kernel, and weights with one more; never waits.

Each program of the kernel looks at pieces of tensors and writes their sums to places of their
own; a second, small kernel adds them up tensor by tensor. Atomic additions were not taken: their
order, and so the last digits, would change from run to run. Weights are read against a copy that
the same pass refreshes. A stream of its own was tried for it, beside the next forward: that
slowed the forward by as much. The processor waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from .kernels import BLOCK, WARPS, kernels, kind_of
from .layers import local
from .readings import IMAGE, Moved
from .tables import Group, Part, sample_of

_version, _gradient, _dtype = attrgetter("_version"), attrgetter("grad"), attrgetter("dtype")


@cache
def is_there() -> bool:
    """Can Triton's kernels be used here?"""
    try:
        kernels()
    except Exception:  # noqa: BLE001  a broken installation is as good as none
        return False
    return True


class FusedReader:
    """Reads parameters on one CUDA device; large weights by a sample by default."""

    always_counts = True

    def __init__(self, parameters: list[Any], device: Any, *, sampled: bool = False) -> None:
        """Learn the parameters; tables and copies are made when first needed."""
        import torch

        self._torch: Any = torch
        self._device = device
        self._parameters, self._samples = parameters, sampled
        # A shard lies in a tensor of its own; that of its parameter has no address.
        self._is_sharded = any(hasattr(each, "_local_tensor") for each in parameters)
        self._kernels = kernels()
        self._address, self._stride = torch.Tensor.data_ptr, torch.Tensor.stride
        # Of the device its number, -1 for the processor: to compare devices takes four times that.
        self._is_contiguous, self._number = torch.Tensor.is_contiguous, torch.Tensor.get_device
        floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
        self._types = {dtype: kind_of(dtype) for dtype in floats}
        self._copies: dict[int, Any] = {}
        self._groups: dict[tuple[str, int], Group] = {}
        self._answers = Answers(torch)

    @property
    def is_slow_with_weights(self) -> bool:
        """Would weights at every reading be felt?"""
        return not self._samples

    @property
    def sampled(self) -> int:
        """Of how many tensors weights are read by a sample."""
        here = (local(each) for each in self._parameters if self._samples)
        return sum(
            each.device == self._device and sample_of(each.numel()).spread > 1 for each in here
        )

    def _here(self, tensors: list[Any]) -> list[Any]:
        """Return the tensors, or the shards of them that lie here."""
        return list(map(local, tensors)) if self._is_sharded else tensors

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there, on the loop's own stream."""
        group = self._groups.get(("gradients", id(places)))
        addresses = None
        if group is not None and group.places is places:
            addresses = self._usual(group)
        if group is None or addresses is None:
            group = self._gradients_group(places)
            addresses = list(map(self._address, group.gathered))
        group.point(addresses, [], self._device)
        return group.places, self._answers.ask("gradients", group, self._sum_up)

    def _gradients_group(self, places: list[int]) -> Group:
        """Return a group of gradients; kept for the next step where all are read as they lie."""
        present = [i for i in places if self._parameters[i].grad is not None]
        own = [self._parameters[i] for i in present]
        gradients = self._here([each.grad for each in own])
        whole = len(present) == len(places)
        group = Group(places if whole else present, own, [self._dense(each) for each in gradients])
        group.cut(self._device, sampled=False)
        if whole and all(map(self._lies_as_read, gradients, group.gathered)):
            group.strides = list(map(self._stride, gradients))
            self._groups["gradients", id(places)] = group
        return group

    def _lies_as_read(self, tensor: Any, gathered: Any) -> bool:
        return not tensor.is_sparse and bool(tensor.data_ptr() == gathered.data_ptr())

    def _usual(self, group: Group) -> list[int] | None:
        """Return the addresses of gradients that are as they were the last time, but for those."""
        try:
            kept = self._here(list(map(_gradient, group.parameters)))
            addresses = list(map(self._address, kept))
            usual = (
                list(map(_dtype, kept)) == group.dtypes
                # An address is one device's: where all are as they were, so are the devices.
                and (addresses == group.addresses or list(map(self._number, kept)) == group.devices)
                # The first question is the cheaper one, and most often enough.
                and (
                    all(map(self._is_contiguous, kept))
                    or list(map(self._stride, kept)) == group.strides
                )
            )
        except (TypeError, RuntimeError):
            return None
        return addresses if usual else None

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Take copies of weights that something else than the last step read has touched."""
        group, own = self._known_weights(places)
        if not all_stale and group is not None and list(map(_version, own)) == group.versions:
            return
        # The pass that reads refreshes the copies; what it sums up is not asked for.
        self._sum_up("weights", self._weights_group(places, group, own))

    def weights(self, places: list[int]) -> Any:
        """Read weights, and how far they moved from their copies."""
        known, own = self._known_weights(places)
        group = self._weights_group(places, known, own)
        group.versions = list(map(_version, own))
        return places, self._answers.ask("weights", group, self._sum_up)

    def _known_weights(self, places: list[int]) -> tuple[Group | None, list[Any]]:
        """Return the group of some weights as it was made, and these as they are now."""
        group = self._groups.get(("weights", id(places)))
        if group is not None and group.places is not places:
            group = None
        if group is not None and not self._is_sharded:
            return group, group.parameters
        return group, self._here([self._parameters[i] for i in places])

    def _weights_group(self, places: list[int], group: Group | None, own: list[Any]) -> Group:
        """Return the group of these weights, made anew if their memory has moved."""
        addresses = list(map(self._address, own))
        if group is not None and addresses == group.addresses:
            return group
        tensors = [self._dense(each) for each in own]
        group = Group(places, own, tensors)
        parts = group.cut(self._device, sampled=self._samples)
        copies = [
            self._copy(place, tensor, part)
            for place, tensor, part in zip(places, tensors, parts, strict=True)
        ]
        there, behind = (list(map(self._address, each)) for each in (tensors, copies))
        group.point(there, behind, self._device)
        self._groups["weights", id(places)] = group
        return group

    def _copy(self, place: int, tensor: Any, part: Part) -> Any:
        copy = self._copies.get(place)
        if copy is None or copy.numel() != part.numbers or copy.dtype != tensor.dtype:
            copy = self._torch.zeros(part.numbers, dtype=tensor.dtype, device=self._device)
            self._copies[place] = copy
        return copy

    def _sum_up(self, what: str, group: Group) -> None:
        gradients, weights, fold = self._kernels
        for dtype, table in group.tables.items():
            if not table.count:
                continue
            own = (table.addresses, table.counts, table.owners, table.starts, table.partials)
            how = {
                "KIND": self._types[dtype],
                "ALIGNED": table.is_aligned,
                "CHUNK": table.chunk,
                "BLOCK": BLOCK,
                "num_warps": WARPS,
            }
            if what == "weights":
                weights[(table.count,)](*own, table.spreads, table.many, **how)
            else:
                gradients[(table.count,)](*own, **how)
            fold[(table.many,)](table.partials, table.first, table.rows, group.out, num_warps=4)
        group.gathered = []

    def _dense(self, tensor: Any) -> Any:
        tensor = local(tensor)
        if tensor.device != self._device:
            raise Moved
        tensor = tensor.detach()
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        if tensor.dtype not in self._types:
            tensor = tensor.abs().float() if tensor.is_complex() else tensor.float()
        if tensor.is_contiguous() or (
            tensor.dim() == IMAGE and tensor.is_contiguous(memory_format=self._torch.channels_last)
        ):
            return tensor
        return tensor.contiguous()

    def device_seconds(self) -> float:
        """Return the time that the device spent on the last reading whose time was taken."""
        return self._answers.seconds()

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Wait for a reading, on the recorder's thread, and give its columns."""
        places, reading = begun
        return places, self._answers.wait(reading)

    def close(self) -> None:
        """Let go."""
        self._parameters = []
        self._copies.clear()
        self._groups.clear()


# An answer is copied to a place in pinned memory, with an event behind it. Places and events serve
# again once the recorder has read them: to make them is a call of CUDA each, at every reading of a
# loop that may be short of processor time.

# Readings whose time on the device is taken: the first ones, and then one in so many. The events
# of a time are two calls more.
_TIMED = 8


class Begun:
    """A reading that a device is at, or is done with."""

    __slots__ = ("begun", "columns", "ended", "group", "host", "what")

    def __init__(self, what: str, group: Group, begun: Any, ended: Any) -> None:
        """Take the events before and behind it; the first is None if no time is taken."""
        self.what, self.group, self.begun, self.ended = what, group, begun, ended
        self.host: Any = None  # where the answer goes
        self.columns: Any = None  # kept, because it may be asked for twice


class Answers:
    """Fetches answers; begun on the loop's thread, taken on the recorder's."""

    def __init__(self, torch: Any) -> None:
        """Begin with nothing to use again."""
        self._cuda = torch.cuda
        self._events: list[Any] = []
        self._counts = {"gradients": 0, "weights": 0}
        self._seconds = {"gradients": 0.0, "weights": 0.0}

    def ask(self, what: str, group: Group, sum_up: Callable[[str, Group], None]) -> Begun:
        """Have a group summed up, and begin to fetch what comes out."""
        reading = Begun(what, group, *self._around(what))
        if reading.begun is not None:
            reading.begun.record()
        sum_up(what, group)
        reading.host = group.spare.pop() if group.spare else group.place()
        reading.host.copy_(group.out, non_blocking=True)
        reading.ended.record()
        return reading

    def _around(self, what: str) -> tuple[Any, Any]:
        """Return the events around a reading: the first one only where its time is taken."""
        count = self._counts[what]
        self._counts[what] = count + 1
        event = self._cuda.Event
        if count < _TIMED or count % _TIMED == 0:
            return event(enable_timing=True), event(enable_timing=True, blocking=True)
        return None, self._events.pop() if self._events else event(blocking=True)

    def wait(self, reading: Begun) -> Any:
        """Wait for an answer, and give its columns; where it came to serves again."""
        if reading.columns is not None:
            return reading.columns
        reading.ended.synchronize()
        if reading.begun is None:
            self._events.append(reading.ended)
        else:
            self._seconds[reading.what] = reading.begun.elapsed_time(reading.ended) / 1e3
        shares, columns = reading.group.shares, reading.host.numpy()
        # Nothing but squares and moves is summed up of weights; of a sample, these stand for all.
        reading.columns = columns.copy() if shares is None else columns * shares[:, None]
        reading.group.spare.append(reading.host)
        reading.host = None
        return reading.columns

    def seconds(self) -> float:
        """Return the time that the device spent on the last reading whose time was taken."""
        return self._seconds["gradients"] + self._seconds["weights"]
