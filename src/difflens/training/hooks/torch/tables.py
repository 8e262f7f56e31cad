"""Which pieces of which tensors the kernels of a GPU look at, as tables that lie on the device.

Weights may be looked at by a sample: of a large tensor one block in up to sixteen, never fewer
than 65,536 numbers. Weights need their copy of before the step, and both cost four times the
gradients' traffic when read whole; a sample costs a fifth of it, and a sixteenth of the memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .kernels import BLOCK, CHUNK, SMALL_CHUNK
from .readings import COLUMNS

SPREAD = 16  # blocks of which one is read, at the most
_ENOUGH = 1 << 16  # numbers of a tensor that are read at the least, where it has them


class Part(NamedTuple):
    """How much of one tensor is read: so many numbers, of every so many blocks one."""

    numbers: int
    spread: int = 1


def sample_of(count: int) -> Part:
    """Return what is read of a tensor of so many numbers.

    >>> sample_of(100_000), sample_of(40_000_000)
    (Part(numbers=100000, spread=1), Part(numbers=2499584, spread=16))
    """
    spread = 1
    while spread < SPREAD and count >= 2 * spread * _ENOUGH:
        spread *= 2
    return Part(count // (BLOCK * spread) * BLOCK if spread > 1 else count, spread)


class Table:
    """The pieces of some tensors of one dtype."""

    def __init__(
        self, torch: Any, rows: list[int], parts: list[Part], device: Any, chunk: int
    ) -> None:
        """Cut the tensors into pieces of a chunk; `rows` are where their answers go."""
        # Where a loop has set a default device, what is to be pinned would be made there.
        here = {"device": "cpu", "dtype": torch.int64}
        counts = torch.tensor([each.numbers for each in parts], **here)
        pieces = -(-counts // chunk)
        owners = torch.repeat_interleave(torch.arange(len(counts), **here), pieces)
        first = torch.cat([torch.zeros(1, **here), pieces.cumsum(0)])
        starts = (torch.arange(int(first[-1]), **here) - first[owners]) * chunk
        spreads = torch.tensor([each.spread for each in parts], **here)
        self.count, self.many, self.numbers, self.chunk = int(first[-1]), len(parts), rows, chunk
        held = (owners.int(), starts, counts, first, torch.tensor(rows, **here), spreads)
        sent = [each.pin_memory().to(device, non_blocking=True) for each in held]
        self.owners, self.starts, self.counts, self.first, self.rows, self.spreads = sent
        self.partials = torch.empty(
            (max(self.count, 1), COLUMNS), dtype=torch.float64, device=device
        )
        self.addresses: Any = None
        self.is_aligned = False

    def point(self, torch: Any, addresses: list[int], device: Any) -> None:
        """Say where the tensors lie, and behind them their copies."""
        self.is_aligned = not any(address % 16 for address in addresses)
        here = torch.tensor(addresses, dtype=torch.int64, device="cpu").pin_memory()
        self.addresses = here.to(device, non_blocking=True)


class Group:
    """Tensors that are read together: their tables by dtype, and the answer's place."""

    def __init__(self, places: list[int], parameters: list[Any], tensors: list[Any]) -> None:
        """Learn which; this is done once, and again where they change."""
        import torch

        self._torch, self.places, self.parameters = torch, places, parameters
        self.gathered = tensors  # lives until it is read: some may be no more than copies
        self.dtypes = [each.dtype for each in tensors]
        self.devices = [each.get_device() for each in tensors]
        self.counts = [each.numel() for each in tensors]
        self.tables: dict[Any, Table] = {}
        self.addresses: list[int] = []
        self.versions: list[int] = []
        self.strides: list[Any] = []  # of gradients that are read where they lie
        self.shares: Any = None  # numbers of each tensor for one that is read, where it is sampled
        self.spare: list[Any] = []  # places of answers on the processor, to be used again

    def cut(self, device: Any, *, sampled: bool) -> list[Part]:
        """Cut the tensors up, or samples of them; give what is read of each."""
        import numpy as np

        parts = [sample_of(each) if sampled else Part(each) for each in self.counts]
        if any(each.spread > 1 for each in parts):
            pairs = zip(self.counts, parts, strict=True)
            self.shares = np.array([count / max(each.numbers, 1) for count, each in pairs])
        rows: dict[Any, list[int]] = {}
        for row, dtype in enumerate(self.dtypes):
            rows.setdefault(dtype, []).append(row)
        chunk = SMALL_CHUNK if sampled else CHUNK
        self.tables = {
            dtype: Table(self._torch, own, [parts[row] for row in own], device, chunk)
            for dtype, own in rows.items()
        }
        self.out = self._torch.zeros(
            (len(parts), COLUMNS), dtype=self._torch.float64, device=device
        )
        return parts

    def place(self) -> Any:
        """Return a place on the processor that the answer can be copied to without waiting."""
        out = self.out
        return self._torch.empty(out.shape, dtype=out.dtype, device="cpu").pin_memory()

    def point(self, addresses: list[int], copies: list[int], device: Any) -> None:
        """Say where all of them lie; sent to the device only where something moved."""
        if addresses == self.addresses:
            return
        self.addresses = addresses
        for table in self.tables.values():
            own = [addresses[row] for row in table.numbers]
            own += [copies[row] for row in table.numbers if copies]
            table.point(self._torch, own, device)
