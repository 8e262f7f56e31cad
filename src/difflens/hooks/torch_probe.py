"""One small parameter, watched from backward to step: what happens to gradients in between.

Nothing tells a hook that gradients were clipped, or not cleared. The version counter of one
gradient does, at the cost of one hook a backward: changed between the backward and the step, the
ratio of its norms is the factor that was applied; grown by one since the last step, the next
backward added to it. Patching `clip_grad_norm_` was not taken: whoever imported it by name would
not meet the patch.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import isfinite, sqrt
from struct import unpack_from
from typing import Any
from weakref import ref

from ..kernel import read
from .torch_frames import one, unknown
from .torch_late import later
from .torch_layers import local
from .torch_readings import ROW_BYTES

_LEAST = 8  # elements; fewer are all zero too easily


class Probe:
    """The parameter whose gradient is followed."""

    def __init__(self, parameters: list[Any], *, compares: bool) -> None:
        """Choose the smallest that trains; `compares` where no other rank adds to it later."""
        trained = [each for each in parameters if each.requires_grad and each.is_leaf]
        large = [each for each in trained if local(each).numel() >= _LEAST]
        self._parameter = min(large or trained, key=lambda each: local(each).numel(), default=None)
        self._compares, self._is_touched = compares, False
        self._stepped: tuple[ref[Any], int] | None = None
        self._version = -1
        self._before: Callable[[], Any] | None = None
        self._constant = 0.0
        self.backwards = 0  # since the last step of the optimizer
        self.kept: float | None = None
        self.wanted = True
        self._table = array("q", bytes(32))
        self._codes = {"torch.float64": 0, "torch.float32": 1, "torch.float16": 2,
                       "torch.bfloat16": 3}  # fmt: skip
        self._handle: Any = None
        self.attach()

    def attach(self) -> None:
        """Hang on the parameter."""
        if self._handle is None and self._parameter is not None:
            register = self._parameter.register_post_accumulate_grad_hook
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
            version = gradient._version  # noqa: SLF001  the one sign of a change in place
            if self._stepped is not None:
                then, before = self._stepped
                self.kept = float(then() is gradient and version == before + 1)
                self._stepped = None
            self.backwards += 1
            self._version = version
            self._before = None
            if self._is_touched and self.wanted and not gradient.is_sparse:
                self._before = self._norm_of(gradient)
        except Exception:  # noqa: BLE001  nothing of ours reaches the loop
            self._before = None

    def _norm_of(self, gradient: Any) -> Callable[[], float]:
        """Promise the norm: on the processor it is read at once, which costs less than a copy."""
        gradient = local(gradient)
        code = self._codes.get(str(gradient.dtype)) if gradient.is_cpu else None
        if code is None or not gradient.is_contiguous():
            copy = later(gradient)
            return lambda: float(copy().double().norm())
        out = bytearray(ROW_BYTES)
        self._table[:] = array("q", (gradient.data_ptr(), 0, gradient.numel(), code))
        read(self._table, out)
        return lambda: sqrt(unpack_from("d", out)[0])

    @property
    def is_changed(self) -> bool:
        """Did something touch the gradient between backward and now?"""
        gradient = None if self._parameter is None else self._parameter.grad
        return gradient is not None and gradient._version != self._version  # noqa: SLF001

    def factor(self) -> Callable[[], float | None]:
        """Promise the factor that the gradient was multiplied by since backward; None: unknown.

        Loops that leave gradients alone pay for no comparison: it is made from the first step on
        after which one was touched.
        """
        if self._parameter is None or self._parameter.grad is None or not self._compares:
            return unknown
        if not self.is_changed:
            return one
        self._is_touched = True
        if self._before is None:
            return unknown
        before, now = self._before, self._norm_of(self._parameter.grad)

        def ratio() -> float | None:
            below, above = before(), now()
            return above / below if below > 0 and isfinite(above) and isfinite(below) else None

        return ratio

    def clip_of(self, factor: float | None) -> float | None:
        """Tell clipping from a constant factor, such as one over the steps accumulated."""
        if factor is None or factor == 1.0:
            return factor
        whole = abs(1 / factor - round(1 / factor)) < 1e-5 * abs(1 / factor) if factor else False
        same = abs(factor - self._constant) <= 1e-5 * abs(factor)
        self._constant = factor
        return 1.0 if whole or same else factor

    def stepped(self) -> None:
        """Remember the gradient that the optimizer has just used."""
        gradient = None if self._parameter is None else self._parameter.grad
        self._stepped = None if gradient is None else (ref(gradient), gradient._version)  # noqa: SLF001
        if gradient is None:
            self.kept = 0.0
        self.backwards = 0

    def close(self) -> None:
        """Let go of the parameter."""
        self.detach()
        self._parameter = None
