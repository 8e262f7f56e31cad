"""One small parameter, watched from backward to step: what happens to gradients in between.

Nothing tells a hook that gradients were clipped, or not cleared. The version counter of one
gradient does, at the cost of one hook a backward, which keeps a copy of its first numbers: changed
between the backward and the step, they tell the factor that was applied; grown by one since the
last step, the next backward added to it. Shards do not count their versions: of these the numbers
are compared at every step. Patching `clip_grad_norm_` was not taken: whoever imported it by name
would not meet the patch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from difflens.measure.kernel import bytes_of

from .clipping import Between, Clipping, one, unknown
from .late import later
from .layers import Watched, local

_LEAST = 8  # elements; fewer are all zero too easily
_MOST = 1024  # elements that are kept
_USUAL = frozenset({"torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"})


class Probe:
    """The parameter whose gradient is followed."""

    def __init__(self, watched: list[Watched], clipping: Clipping, *, waits: bool) -> None:
        """Choose the smallest that trains; `waits` where other ranks' gradients are added to it.

        Data parallelism adds them after the hook, before backward returns; shards have them.
        """
        trained = [
            each for each in watched if each.parameter.requires_grad and each.parameter.is_leaf
        ]
        large = [each for each in trained if _size(each) >= _LEAST]
        # Where the smallest has nothing but zeros the others are tried from the last on: what is
        # in front of a dead layer is dead too, and what is behind it is not.
        line = (large or trained)[::-1]
        self._line = sorted(line, key=_size)[:1]
        self._line += [each for each in line if each is not self._line[0]]
        self._parameter: Any = None
        self._origin: Any = None
        self._is_flat = False
        self._clipping, self._is_parallel = clipping, waits
        self._stepped: tuple[ref[Any], int] | None = None
        self._handle: Any = None
        self.backwards = 0  # since the last step of the optimizer
        self.kept: float | None = None
        self.wanted = True
        self.is_changed = False  # did something touch the gradient between backward and step?
        self._next()

    def _next(self) -> None:
        """Follow the next parameter in line from now on."""
        if not self._line:
            return
        self.detach()
        chosen = self._line.pop(0)
        self._parameter = chosen.parameter
        # A part of a flat tensor gets its gradient at the end, and backward only tells the latter.
        self._is_flat = chosen.part is not None
        self._origin = self._parameter if chosen.part is None else chosen.part.flat
        here, self._version = local(self._parameter), -1
        self._is_shard = here is not self._parameter
        self._waits = self._is_flat or (self._is_parallel and not self._is_shard)
        # Of usual numbers in the memory of this process a copy is their bytes, at a tenth of the
        # price of an operation of torch.
        self._dtype = here.dtype if str(here.dtype) in _USUAL else None
        self._count = here.numel()
        self._size = min(self._count, _MOST) * here.element_size()
        self._before: Any = None
        self.attach()

    def attach(self) -> None:
        """Hang on the parameter."""
        if self._handle is None and self._origin is not None:
            register = self._origin.register_post_accumulate_grad_hook
            self._handle = register(self._after_backward)

    def detach(self) -> None:
        """Leave the parameter as it was; what was seen of it is forgotten."""
        if self._handle is not None:
            self._handle.remove()
        self._handle = self._before = self._stepped = None
        self.backwards = 0

    def _after_backward(self, parameter: Any) -> None:
        try:
            gradient = parameter.grad
            if gradient is None:
                return
            self._version = version = gradient._version  # noqa: SLF001  the one sign of a change
            if self._stepped is not None:
                then, before = self._stepped
                same = then() is gradient
                self.kept = float(same and version == before + 1)
                if self._is_flat or (same and self._is_shard):
                    self.kept = None  # added to, or cleared in place: nothing tells
                self._stepped = None
            self.backwards += 1
            if self.wanted and not self._waits:
                # The usual one at once, as `_copied` does it.
                raw = None
                if not self._is_shard:
                    raw = bytes_of(gradient, self._dtype, self._count, self._size)
                self._before = self._copied(gradient) if raw is None else raw
                return
            self._before = None
            if self.wanted:
                _at_the_end(self._complete)
        except Exception:  # noqa: BLE001  nothing of ours reaches the loop
            self._before = None

    def _complete(self) -> None:
        """Look at the gradient again, now that every rank's part is in it."""
        try:
            gradient = None if self._parameter is None else self._parameter.grad
            if gradient is not None and self._handle is not None:
                self._version = gradient._version  # noqa: SLF001
                self._before = self._copied(gradient)
        except Exception:  # noqa: BLE001
            self._before = None

    def _copied(self, gradient: Any) -> Any:
        """Copy the first numbers: as bytes, or else as a tensor where they lie."""
        numbers = self._first(gradient)
        return numbers if numbers is None or type(numbers) is bytes else numbers.clone()

    def _first(self, gradient: Any) -> Any:
        """Return the first numbers, as bytes or as part of the gradient; None of a sparse one."""
        if self._is_shard:
            gradient = local(gradient)
        raw = bytes_of(gradient, self._dtype, self._count, self._size)
        if raw is not None or gradient.is_sparse:
            return raw
        import torch

        # On a device every operation more is processor time of the loop.
        numbers = gradient.detach() if gradient.requires_grad else gradient
        numbers = torch.view_as_real(numbers) if numbers.is_complex() else numbers
        return numbers if self._count <= _MOST else numbers.reshape(-1)[:_MOST]

    def factor(self) -> Callable[[], Between | None]:
        """Promise the factor that the gradient was multiplied by since backward; None: unknown."""
        gradient = None if self._parameter is None else self._parameter.grad
        if gradient is None:
            self.is_changed = False
            return unknown
        self.is_changed = gradient._version != self._version  # noqa: SLF001
        if not self.is_changed and not self._is_shard:
            return one
        before = self._before
        if before is None:
            return unknown
        if self._clipping.is_blind and self._line:
            self._clipping.is_blind = False
            self._next()
            return unknown
        now = self._first(gradient)  # copied below, with the numbers of before
        if self._is_shard and type(now) is bytes:
            self.is_changed = now != before
            if not self.is_changed and any(now):  # zeros stay zeros, clipped or not
                return one
        return self._compared(before, now)

    def _compared(self, before: Any, now: Any) -> Callable[[], Between | None]:
        """Promise what two copies of one gradient tell."""
        import torch

        between = self._clipping.between
        if type(before) is bytes and type(now) is bytes:
            dtype: Any = self._dtype
            kind = torch.finfo(dtype)
            return lambda: between(_decoded(before, dtype), _decoded(now, dtype), kind)
        if type(before) is not type(now) or before.device != now.device:
            return unknown  # the gradient went elsewhere, or became another kind
        both, kind = later(torch.stack([before, now])), torch.finfo(before.dtype)

        def compared() -> Between | None:
            left, right = both().double().reshape(2, -1).numpy()
            return between(left, right, kind)

        return compared

    def stepped(self) -> None:
        """Remember the gradient that the optimizer has just used."""
        gradient = None if self._parameter is None else self._parameter.grad
        self._stepped = None if gradient is None else (ref(gradient), gradient._version)  # noqa: SLF001
        if gradient is None and not self._is_flat:
            self.kept = 0.0
        self.backwards = 0

    def close(self) -> None:
        """Let go of the parameter."""
        self.detach()
        self._parameter = self._origin = None
        self._line = []


def _size(each: Watched) -> int:
    return int(local(each.parameter).numel())


def _at_the_end(call: Callable[[], None]) -> None:
    """Call when this backward is over and all that others put at its end is done.

    Data parallelism waits for the other ranks in a call of its own at the end, which may have been
    put there before ours or after: ours goes to the end of the line once more.
    """
    from torch.autograd import Variable

    put = Variable._execution_engine.queue_callback  # noqa: SLF001
    put(lambda: put(call))


def _decoded(raw: bytes, dtype: Any) -> Any:
    """Return the numbers as doubles."""
    import numpy as np

    if str(dtype) == "torch.bfloat16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype(np.float64)
    return np.frombuffer(raw, str(dtype).removeprefix("torch.")).astype(np.float64)
