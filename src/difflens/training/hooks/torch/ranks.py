"""Several processes training one model: who writes, and how parts become one frame.

The loop's own process group is never used: a collective of ours that one rank leaves out would
meet a collective of the training. Ours is a group of its own on the processor (gloo); frames are
merged on the recorder's thread, far from the loop. Only the decision how often to sample is made
in the loop, seldom, because all ranks must make it at the same step.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol
from weakref import WeakSet

from .layers import Watched


class Inherited(Protocol):
    """What a fork may inherit."""

    is_elsewhere: bool


_at_home: WeakSet[Inherited] = WeakSet()


def at_home(hook: Inherited) -> None:
    """Remember a hook as one of this process, for as long as it lives."""
    _at_home.add(hook)


def _stay_behind() -> None:
    for each in list(_at_home):
        each.is_elsewhere = True


os.register_at_fork(after_in_child=_stay_behind)


_TIMEOUT = timedelta(seconds=60)
_SUMMED = (0, 1, 3, 4, 5)  # columns of the kernel's answer that add; the largest does not
_SHORTEST, _LONGEST = 2e-4, 1e-2  # seconds between two looks whether the other ranks have come


class Ranks:
    """This process among those that train together; alone where there is no process group."""

    def __init__(self, how: str) -> None:
        """Make the groups; every rank does so at the same place of its program."""
        self.rank, self.count = 0, 1
        self._merging: Any = None
        self._deciding: Any = None
        import torch.distributed as processes

        if processes.is_available() and processes.is_initialized():
            self.rank, self.count = processes.get_rank(), processes.get_world_size()
            if how == "merged" and self.count > 1:
                self._merging = processes.new_group(backend="gloo", timeout=_TIMEOUT)
                self._deciding = processes.new_group(backend="gloo", timeout=_TIMEOUT)

    @property
    def merges(self) -> bool:
        """Are the ranks' frames made one?"""
        return self._merging is not None

    @property
    def writes(self) -> bool:
        """Does this rank write a file?"""
        return not self.merges or self.rank == 0

    def decide(self, price: tuple[float, float] | None) -> tuple[float, float] | None:
        """Agree on what a reading and a step take: the slowest rank's; None: not known to all."""
        if self._deciding is None:
            return price
        import torch
        import torch.distributed as processes

        values = torch.tensor([float(price is None), *(price or (0.0, 0.0))], dtype=torch.float64)
        processes.all_reduce(values, processes.ReduceOp.MAX, group=self._deciding)
        unknown, reading, step = values.tolist()
        return None if unknown else (reading, step)

    def merge(self, step: int, sums: Any, shares: Any, loss: float | None) -> float | None:
        """Add the sums of all ranks into ours and give the mean loss.

        `shares` tells, layer by layer, whether this rank's part is to be added: a tensor that
        every rank holds whole counts once.
        """
        if self._merging is None:
            return loss
        import numpy as np
        import torch
        import torch.distributed as processes

        for part in (sums.gradient, sums.weights):
            part[~shares] = 0.0
        head = [float(step), float(loss is not None), loss or 0.0]
        parts = [sums.gradient[:, _SUMMED], sums.weights[:, _SUMMED]]
        masks = [sums.has_gradient, sums.has_weights, sums.has_moves]
        flat = np.concatenate([head, *(each.ravel() for each in parts), *masks])
        added = torch.from_numpy(flat)
        largest = torch.from_numpy(np.stack([sums.gradient[:, 2], sums.weights[:, 2]]))
        how = ((added, processes.ReduceOp.SUM), (largest, processes.ReduceOp.MAX))
        _finish(
            [
                processes.all_reduce(each, kind, group=self._merging, async_op=True)
                for each, kind in how
            ]
        )
        if flat[0] != step * self.count:
            raise RuntimeError(f"the ranks are not at one step: {flat[0] / self.count} and {step}")
        _spread(sums, flat[3:], largest.numpy())
        return float(flat[2] / flat[1]) if flat[1] else None

    def close(self) -> None:
        """End our groups and their threads, once nothing is being merged.

        A group that we hold outlives the loop's `destroy_process_group`. Its threads let go of the
        tensors that were merged, for which they need the interpreter's lock: one that waits for it
        when the interpreter ends aborts the process (pytorch 179291).
        """
        import torch.distributed as processes

        groups = [each for each in (self._merging, self._deciding) if each is not None]
        self._merging = self._deciding = None
        while groups:
            with suppress(Exception):  # the loop has destroyed all groups already
                processes.destroy_process_group(groups.pop())


def _finish(works: list[Any]) -> None:
    """See collectives to their end: look again and again, and never wait in torch.

    A rank may wait long for one that died, and a thread that comes back from torch's code while
    the interpreter ends aborts the process (pytorch 38228); one that sleeps does not.
    """
    pause = _SHORTEST
    for each in works:
        while not each.is_completed():
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        each.wait()


def _spread(sums: Any, flat: Any, largest: Any) -> None:
    """Put merged numbers back to their places."""
    layers = len(sums.gradient)
    size = layers * len(_SUMMED)
    for place, part in enumerate((sums.gradient, sums.weights)):
        part[:, _SUMMED] = flat[place * size : (place + 1) * size].reshape(layers, -1)
        part[:, 2] = largest[place]
    masks = flat[2 * size :].reshape(3, layers) > 0
    sums.has_gradient[:], sums.has_weights[:], sums.has_moves[:] = masks


def shares_of(watched: list[Watched], rank: int) -> Any:
    """Tell for every parameter whether this rank adds its part: all do that hold other shards."""
    import numpy as np

    shares = np.zeros(len(watched), bool)
    for place, each in enumerate(watched):
        parameter, part = each.parameter, each.part
        if part is not None:
            shares[place] = part.adds
            continue
        placements = getattr(parameter, "placements", None)
        if placements is None or not any(way.is_shard() for way in placements):
            shares[place] = rank == 0
            continue
        here = parameter.device_mesh.get_coordinate() or ()
        # Along a dimension of the mesh that only repeats, the first one counts.
        shares[place] = all(
            way.is_shard() or at == 0 for way, at in zip(placements, here, strict=True)
        )
    return shares
