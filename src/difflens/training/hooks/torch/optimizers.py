"""The hooks on optimizers, or on parameters where there is no optimizer to hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .late import promised


class Moments(Protocol):
    """What is called at the moments of a step."""

    def before_step(self, optimizer: Any, places: list[int]) -> None:
        """Gradients are ready to be used."""

    def after_step(self, places: list[int]) -> None:
        """Weights have moved."""

    def pass_over(self, optimizer: Any) -> None:
        """An optimizer steps while the hooks rest."""

    def before_clearing(self, optimizer: Any) -> None:
        """Gradients are about to be cleared."""

    def one_gradient(self, place: int) -> None:
        """One parameter's gradient is complete."""

    def fail(self, error: Exception) -> None:
        """Something of ours went wrong."""


def steppers(given: Any) -> list[Any]:
    """List the optimizers that can be hooked: out of one, several, or what others put around."""
    if given is None:
        return []
    hooked = []
    for each in given if isinstance(given, (list, tuple, set)) else [given]:
        inner = each
        while not hasattr(inner, "register_step_pre_hook") and hasattr(inner, "optimizer"):
            inner = inner.optimizer
        if hasattr(inner, "register_step_pre_hook"):
            hooked.append(inner)
    return hooked


def rate_of(optimizer: Any, usual: tuple[Any, Any], *, is_read: bool = True) -> Any:
    """Read the learning rate of the first group, as it is now: a scheduler may change it in place.

    One that lies on a device is asked for at steps that are read: its copy costs the loop time.
    """
    rate = optimizer.param_groups[0].get("lr")
    if rate is None or type(rate) is float:
        return rate
    return promised(rate, usual) if is_read or getattr(rate, "is_cpu", True) else None


class Stepper:
    """Puts the hooks on and takes them off."""

    def __init__(self, moments: Moments, optimizers: list[Any], parameters: list[Any]) -> None:
        """Hook every optimizer; without one, every parameter that trains."""
        self._moments, self._optimizers = moments, optimizers
        self._places = {id(each): place for place, each in enumerate(parameters)}
        self._parameters = parameters
        self._own: dict[int, tuple[int, list[int]]] = {}
        self._now: list[int] = []  # of the optimizer that steps
        self._handles: list[Any] = []
        self._rests = False
        self.attach()

    def attach(self) -> None:
        """Put the hooks on, where they are not on already."""
        if self._handles and not self._rests:
            return
        self.detach()
        for optimizer in self._optimizers:
            self._handles += [
                optimizer.register_step_pre_hook(self._before),
                optimizer.register_step_post_hook(self._after),
            ]
            self._wrap_clearing(optimizer)
        if not self._optimizers:
            for place, each in enumerate(self._parameters):
                if each.requires_grad and each.is_leaf:
                    hook = self._gradient_of(place)
                    self._handles.append(each.register_post_accumulate_grad_hook(hook))

    def rest(self) -> None:
        """Leave one hook on each optimizer, which reads nothing."""
        self.detach()
        self._handles = [each.register_step_pre_hook(self._passed) for each in self._optimizers]
        self._rests = True

    def places(self, optimizer: Any) -> list[int]:
        """Return the places of an optimizer's parameters, once each."""
        count = 0  # by hand: this is asked at every step, and a generator is a function more
        for group in optimizer.param_groups:
            count += len(group["params"])
        known = self._own.get(id(optimizer))
        if known is None or known[0] != count:
            groups = (each for group in optimizer.param_groups for each in group["params"])
            own_places = {self._places[id(each)] for each in groups if id(each) in self._places}
            known = self._own[id(optimizer)] = (count, sorted(own_places))
        return known[1]

    def _before(self, optimizer: Any, _args: Any, _options: Any) -> None:
        try:
            self._now = self.places(optimizer)
            self._moments.before_step(optimizer, self._now)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._moments.fail(error)

    def _passed(self, optimizer: Any, _args: Any, _options: Any) -> None:
        try:
            self._moments.pass_over(optimizer)
        except Exception as error:  # noqa: BLE001
            self._moments.fail(error)

    def _after(self, _optimizer: Any, _args: Any, _options: Any) -> None:
        try:
            self._moments.after_step(self._now)
        except Exception as error:  # noqa: BLE001
            self._moments.fail(error)

    def _gradient_of(self, place: int) -> Callable[[Any], None]:
        def hook(_parameter: Any) -> None:
            try:
                self._moments.one_gradient(place)
            except Exception as error:  # noqa: BLE001
                self._moments.fail(error)

        return hook

    def _wrap_clearing(self, optimizer: Any) -> None:
        """Count calls of `zero_grad`: a scaler that skips its step leaves no other trace."""
        clear = optimizer.zero_grad

        def zero_grad(*args: Any, **options: Any) -> Any:
            try:
                self._moments.before_clearing(optimizer)
            except Exception as error:  # noqa: BLE001
                self._moments.fail(error)
            return clear(*args, **options)

        optimizer.zero_grad = zero_grad
        self._handles.append(_Wrapped(optimizer, zero_grad))

    def detach(self) -> None:
        """Take every hook off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._rests = False

    def close(self) -> None:
        """Take every hook off for good, and let go."""
        self.detach()
        self._optimizers, self._parameters = [], []


class _Wrapped:
    """A method put over an instance's own; removed unless somebody has put another over it."""

    def __init__(self, owner: Any, method: Any) -> None:
        self._owner, self._method = owner, method

    def remove(self) -> None:
        if self._owner.__dict__.get("zero_grad") is self._method:
            del self._owner.__dict__["zero_grad"]
        self._owner = self._method = None
