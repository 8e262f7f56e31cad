"""Reads all gradients of a GPU with one kernel, and all weights with one more; never waits.

Each program of the kernel looks at a piece of one tensor and writes its sums to a place of its
own; a second, small kernel adds them up tensor by tensor. Atomic additions were not taken: their
order, and so the last digits, would change from run to run. Weights are read on a stream of their
own while the next forward computes, against a copy that the same pass refreshes: one copy of the
parameters is what it costs in memory. The loop's stream waits for that pass before the next step
of the optimizer; the processor waits for nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .torch_kernels import BLOCK, CHUNK, kernels
from .torch_layers import local
from .torch_readings import COLUMNS, IMAGE, Moved


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

    def __init__(self, torch: Any, rows: list[int], counts: list[int], device: Any) -> None:
        """Cut the tensors into pieces; `rows` are where their answers go."""
        pieces = [-(-count // CHUNK) for count in counts]
        tensors = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(pieces))
        first = torch.tensor([0, *pieces]).cumsum(0)
        starts = (torch.arange(int(first[-1])) - first[tensors]) * CHUNK
        self.count = int(first[-1])
        self.tensors = tensors.int().to(device)
        self.starts, self.counts = starts.to(device), torch.tensor(counts).to(device)
        self.first, self.rows = first.to(device), torch.tensor(rows).to(device)
        self.partials = torch.empty((max(self.count, 1), COLUMNS), dtype=torch.float64, device=device)
        self.addresses: list[int] = []
        self.on_device: Any = None
        self.is_aligned = False

    def point(self, torch: Any, addresses: list[int], device: Any) -> None:
        """Say where the tensors lie; sent to the device only where they have moved."""
        if addresses != self.addresses:
            self.addresses = addresses
            self.is_aligned = not any(address % 16 for address in addresses)
            here = torch.tensor(addresses, dtype=torch.int64).pin_memory()
            self.on_device = here.to(device, non_blocking=True)


class FusedReader:
    """Reads parameters on one CUDA device."""

    def __init__(self, parameters: list[Any], device: Any) -> None:
        """Learn the parameters; tables and copies are made when first needed."""
        import torch

        self._torch, self._device = torch, device
        self._parameters = parameters
        self._look, self._fold = kernels()
        self._types = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16",
                       torch.bfloat16: "bf16"}  # fmt: skip
        self._copies: dict[int, Any] = {}
        self._versions: dict[int, int] = {}
        self._tables: dict[Any, Table] = {}
        self._side = torch.cuda.Stream(device)
        self._weights_read: Any = None
        self._seconds = {"gradients": 0.0, "weights": 0.0}

    def gradients(self, places: list[int]) -> Any:
        """Read the gradients that are there, on the loop's own stream."""
        found = [i for i in places if self._parameters[i].grad is not None]
        tensors = [self._dense(self._parameters[i].grad) for i in found]
        return self._read("gradients", found, tensors, [])

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """Take copies of weights that something else than the last step read has touched."""
        parameters = self._parameters
        with self._torch.no_grad():
            stale = [
                i
                for i in places
                if all_stale or self._versions.get(i) != parameters[i]._version  # noqa: SLF001
            ]
            if not stale:
                return
            here = [self._dense(parameters[i]) for i in stale]
            self._torch._foreach_copy_(  # noqa: SLF001
                [self._copy(i, tensor) for i, tensor in zip(stale, here, strict=True)], here
            )

    def settle(self) -> None:
        """Let the loop's stream wait until the weights are read, before they move again."""
        if self._weights_read is not None:
            self._torch.cuda.current_stream(self._device).wait_event(self._weights_read)
            self._weights_read = None

    def weights(self, places: list[int]) -> Any:
        """Read weights and how far they moved, beside whatever the loop computes next."""
        tensors = [self._dense(self._parameters[i]) for i in places]
        copies = [self._copy(i, tensor) for i, tensor in zip(places, tensors, strict=True)]
        self._side.wait_stream(self._torch.cuda.current_stream(self._device))
        with self._torch.cuda.stream(self._side):
            begun = self._read("weights", places, tensors, copies)
            self._weights_read = self._side.record_event()
        for i in places:
            self._versions[i] = self._parameters[i]._version  # noqa: SLF001
        return begun

    def _copy(self, place: int, tensor: Any) -> Any:
        copy = self._copies.get(place)
        if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
            copy = self._copies[place] = self._torch.empty_like(tensor)
        return copy

    def _read(self, what: str, places: list[int], tensors: list[Any], copies: list[Any]) -> Any:
        torch, moving = self._torch, bool(copies)
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        out = torch.zeros((len(places), COLUMNS), dtype=torch.float64, device=self._device)
        for dtype, rows in _by_dtype(tensors).items():
            own = [tensors[row] for row in rows]
            key = (what, dtype, tuple(places[row] for row in rows))
            table = self._tables.get(key)
            counts = [each.numel() for each in own]
            if table is None:
                table = self._tables[key] = Table(torch, rows, counts, self._device)
            addresses = [each.data_ptr() for each in own]
            addresses += [copies[row].data_ptr() for row in rows] if moving else []
            table.point(torch, addresses, self._device)
            if table.count:
                self._launch(table, self._types[dtype], len(own), moving, out)
        host = out.to("cpu", non_blocking=True)
        ended.record()
        return places, host, (what, begun, ended)

    def _launch(self, table: Table, kind: str, tensors: int, moving: bool, out: Any) -> None:
        self._look[(table.count,)](
            table.on_device, table.counts, table.tensors, table.starts, table.partials, tensors,
            KIND=kind, MOVING=moving, ALIGNED=table.is_aligned, CHUNK=CHUNK, BLOCK=BLOCK,
            num_warps=8,
        )  # fmt: skip
        self._fold[(tensors,)](table.partials, table.first, table.rows, out, num_warps=1)

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
        return sum(self._seconds.values())

    def answer(self, begun: Any) -> tuple[Any, Any]:
        """Wait for a reading, on the recorder's thread, and give its columns."""
        places, host, (what, start, end) = begun
        end.synchronize()
        self._seconds[what] = start.elapsed_time(end) / 1e3
        return places, host.numpy()

    def close(self) -> None:
        """Leave the loop's stream behind ours, and let go."""
        self.settle()
        self._parameters = []
        self._copies.clear()


def _by_dtype(tensors: list[Any]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row, tensor in enumerate(tensors):
        found.setdefault(tensor.dtype, []).append(row)
    return found
