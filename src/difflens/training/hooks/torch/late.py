"""Numbers that a device still computes: copied without waiting, read when they are there."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from difflens.measure.kernel import bytes_of

_FLOAT = Struct("=f")


def later(tensor: Any) -> Callable[[], Any]:
    """Begin a copy of a tensor to this processor; the promise gives it, on any thread."""
    import torch

    if tensor.requires_grad:  # asking is cheap, an operation of torch is not
        tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.to_local()
    if not tensor.is_cuda:
        kept = tensor.clone() if tensor.is_cpu else tensor.to("cpu")
        return lambda: kept
    copy = tensor.to("cpu", non_blocking=True)
    done = torch.cuda.Event(blocking=True)
    done.record()

    def fetched() -> Any:
        done.synchronize()
        return copy

    return fetched


def promised(value: Any, usual: tuple[Any, Any] = (None, None)) -> Callable[[], float] | float:
    """Take what a loop hands in as a number; a tensor of one element becomes a promise.

    `usual` is torch's own kind of tensor and the dtype of 32-bit floats, whose values on the
    processor are taken at once.
    """
    # The usual loss: its four bytes, where a copy would be two operations of torch.
    raw = bytes_of(value, usual[1], 1, 4) if type(value) is usual[0] else None
    if raw is not None:
        return _FLOAT.unpack(raw)[0]
    if isinstance(value, (float, int)):
        return float(value)
    if hasattr(value, "detach") and hasattr(value, "numel"):
        if value.numel() != 1:
            raise ValueError(f"a tensor of {value.numel()} elements is not one number")
        fetched = later(value)
        return lambda: float(fetched())
    return float(value)


def resolved(promise: Callable[[], float] | float) -> float:
    """Return the number that was promised."""
    return promise() if callable(promise) else promise


class Silent:
    """A hook on a module that copies and pickles of the module leave behind.

    `copy.deepcopy(model)` (an average of the weights) and `torch.save(model)` take a module's
    hooks along; ours leads to threads and files, which no copy may have.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        """Wrap what is to be called."""
        self._call = call

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it."""
        return self._call(*args, **options)

    def __deepcopy__(self, _memo: object) -> Callable[..., None]:
        """Leave a copy with a hook that does nothing."""
        return _nothing

    def __reduce__(self) -> tuple[Callable[[], Callable[..., None]], tuple[()]]:
        """Leave a file with a hook that does nothing."""
        return _quiet, ()


def _nothing(*_args: Any, **_options: Any) -> None:
    """Do nothing."""


def _quiet() -> Callable[..., None]:
    return _nothing


def promised_scalars(
    loss: Any,
    scalars: dict[str, Any],
    usual: tuple[Any, Any],
    refuse: Callable[[str, object], None],
) -> dict[str, Any]:
    """Collect the scalars of a step; what is not a number is refused and left out."""
    numbers: dict[str, Any] = {}
    for name, value in ({**scalars, "loss": loss} if loss is not None else scalars).items():
        try:
            numbers[name] = promised(value, usual)
        except Exception:  # noqa: BLE001  a stranger's `__float__` may do anything
            refuse(name, value)
    return numbers
