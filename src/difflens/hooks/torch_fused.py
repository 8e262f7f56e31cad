"""Reads all gradients of a GPU with one kernel, and all weights with one more; never waits.

Each program of the kernel looks at pieces of tensors and writes their sums to places of their
own; a second, small kernel adds them up tensor by tensor. Atomic additions were not taken: their
order, and so the last digits, would change from run to run. Weights are read against a copy that
the same pass refreshes: one copy of the parameters is what it costs in memory, and four times the
traffic of the gradients in time. A stream of its own was tried for it, beside the next forward:
that slowed the forward by as much. The processor waits for nothing.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any

from .torch_kernels import BLOCK, CHUNK, WARPS, kernels, kind_of
from .torch_layers import local
from .torch_readings import COLUMNS, IMAGE, Moved

_version, _gradient = attrgetter("_version"), attrgetter("grad")
_dtype, _device = attrgetter("dtype"), attrgetter("device")


@cache
def is_there() -> bool:
    """Can Triton's kernels be used here?"""
    try:
        kernels()
    except Exception:  # noqa: BLE001  a broken installation is as good as none
        return False
    return True


class Table:
    """The pieces of some tensors of one dtype, as they lie on the device."""

    def __init__(self, torch: Any, rows: list[int], tensors: list[Any], device: Any) -> None:
        """Cut the tensors into pieces; `rows` are where their answers go."""
        counts = [each.numel() for each in tensors]
        pieces = torch.tensor([-(-count // CHUNK) for count in counts])
        owners = torch.repeat_interleave(torch.arange(len(counts)), pieces)
        first = torch.cat([torch.zeros(1, dtype=torch.int64), pieces.cumsum(0)])
        starts = (torch.arange(int(first[-1])) - first[owners]) * CHUNK
        self.count, self.many, self.numbers = int(first[-1]), len(counts), rows
        held = (owners.int(), starts, torch.tensor(counts), first, torch.tensor(rows))
        sent = [each.pin_memory().to(device, non_blocking=True) for each in held]
        self.owners, self.starts, self.counts, self.first, self.rows = sent
        self.partials = torch.empty(
            (max(self.count, 1), COLUMNS), dtype=torch.float64, device=device
        )
        self.addresses: Any = None
        self.is_aligned = False

    def point(self, torch: Any, addresses: list[int], device: Any) -> None:
        """Say where the tensors lie, and behind them their copies."""
        self.is_aligned = not any(address % 16 for address in addresses)
        here = torch.tensor(addresses, dtype=torch.int64).pin_memory()
        self.addresses = here.to(device, non_blocking=True)


class Group:
    """Tensors that are read together: their tables by dtype, and the answer's place."""

    def __init__(self, reader: FusedReader, places: list[int], tensors: list[Any]) -> None:
        """Cut them up; this is done once, and again where they change."""
        torch, device, parameters = reader.about(places)
        rows: dict[Any, list[int]] = {}
        for row, tensor in enumerate(tensors):
            rows.setdefault(tensor.dtype, []).append(row)
        self.places, self.parameters = places, parameters
        self.devices = [device] * len(tensors)
        self.dtypes = [each.dtype for each in tensors]
        self.counts = [each.numel() for each in tensors]
        self.tables = {
            dtype: Table(torch, own, [tensors[row] for row in own], device)
            for dtype, own in rows.items()
        }
        self.out = torch.zeros((len(tensors), COLUMNS), dtype=torch.float64, device=device)
        self.addresses: list[int] = []
        self.versions: list[int] = []

    def point(self, torch: Any, addresses: list[int], copies: list[int], device: Any) -> None:
        """Say where all of them lie; sent to the device only where something moved."""
        if addresses == self.addresses:
            return
        self.addresses = addresses
        for table in self.tables.values():
            own = [addresses[row] for row in table.numbers]
            table.point(torch, own + [copies[row] for row in table.numbers if copies], device)


class FusedReader:
    """Reads parameters on one CUDA device."""

    always_counts = True

    def __init__(self, parameters: list[Any], device: Any) -> None:
        """Learn the parameters; tables and copies are made when first needed."""
        import torch

        self._torch, self._device = torch, device
        self._parameters = parameters
        self._kernels = kernels()
        self._address, self._is_contiguous = torch.Tensor.data_ptr, torch.Tensor.is_contiguous
        floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
        self._types = {dtype: kind_of(dtype) for dtype in floats}
        self._copies: dict[int, Any] = {}
        self._groups: dict[tuple[str, int], Group] = {}
        self._seconds = {"gradients": 0.0, "weights": 0.0}

    def about(self, places: list[int]) -> tuple[Any, Any, list[Any]]:
        """Give torch, the device, and the parameters of some places."""
        return self._torch, self._device, [self._parameters[i] for i in places]

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there, on the loop's own stream."""
        group = self._groups.get(("gradients", id(places)))
        usual = group is not None and group.places is places and self._usual(group)
        if not usual:
            found = [i for i in places if self._parameters[i].grad is not None]
            tensors = [self._dense(self._parameters[i].grad) for i in found]
            whole = len(found) == len(places)
            group = Group(self, places if whole else found, tensors)
            # A shard's address is not that of its parameter's gradient.
            if whole and not any(hasattr(self._parameters[i], "_local_tensor") for i in found):
                self._groups["gradients", id(places)] = group
            usual = list(map(self._address, tensors))
        assert group is not None  # noqa: S101  it was made where there was none
        group.point(self._torch, usual, [], self._device)
        return self._read("gradients", group)

    def _usual(self, group: Group) -> list[int] | None:
        """Give the addresses of gradients that are as they were the last time, but for those."""
        try:
            kept = list(map(_gradient, group.parameters))
            addresses = list(map(self._address, kept))
            usual = (
                list(map(_dtype, kept)) == group.dtypes
                and list(map(_device, kept)) == group.devices
                and all(map(self._is_contiguous, kept))
            )
        except (TypeError, RuntimeError):
            return None
        return addresses if usual else None

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Take copies of weights that something else than the last step read has touched."""
        group = self._groups.get(("weights", id(places)))
        own = [self._parameters[i] for i in places]
        if not all_stale and group is not None and list(map(_version, own)) == group.versions:
            return
        here = [self._dense(each) for each in own]
        copies = [self._copy(i, tensor) for i, tensor in zip(places, here, strict=True)]
        with self._torch.no_grad():
            self._torch._foreach_copy_(copies, here)

    def weights(self, places: list[int]) -> Any:
        """Read weights, and how far they moved from their copies."""
        group = self._groups.get(("weights", id(places)))
        own = [self._parameters[i] for i in places]
        addresses = list(map(self._address, own))
        if group is None or group.places is not places or addresses != group.addresses:
            tensors = [self._dense(each) for each in own]
            copies = [self._copy(i, each) for i, each in zip(places, tensors, strict=True)]
            group = Group(self, places, tensors)
            self._groups["weights", id(places)] = group
            group.point(
                self._torch,
                list(map(self._address, tensors)),
                list(map(self._address, copies)),
                self._device,
            )
        group.versions = list(map(_version, own))
        return self._read("weights", group)

    def _copy(self, place: int, tensor: Any) -> Any:
        copy = self._copies.get(place)
        if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
            copy = self._copies[place] = self._torch.empty_like(tensor)
        return copy

    def _read(self, what: str, group: Group) -> Any:
        torch, moving = self._torch, what == "weights"
        gradients, weights, fold = self._kernels
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for dtype, table in group.tables.items():
            if not table.count:
                continue
            own = (table.addresses, table.counts, table.owners, table.starts, table.partials)
            how = {
                "KIND": self._types[dtype], "ALIGNED": table.is_aligned,
                "CHUNK": CHUNK, "BLOCK": BLOCK, "num_warps": WARPS,
            }  # fmt: skip
            if moving:
                weights[(table.count,)](*own, table.many, **how)
            else:
                gradients[(table.count,)](*own, **how)
            fold[(table.many,)](table.partials, table.first, table.rows, group.out, num_warps=4)
        host = group.out.to("cpu", non_blocking=True)
        ended.record()
        return group.places, host, (what, begun, ended)

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
        """Give the time that the device spent on the last reading that is over."""
        return self._seconds["gradients"] + self._seconds["weights"]

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Wait for a reading, on the recorder's thread, and give its columns."""
        places, host, (what, start, end) = begun
        end.synchronize()
        self._seconds[what] = start.elapsed_time(end) / 1e3
        return places, host.numpy()

    def close(self) -> None:
        """Let go."""
        self._parameters = []
        self._copies.clear()
        self._groups.clear()
