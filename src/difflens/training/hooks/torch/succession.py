"""Notices that a model's tensors or its optimizer are replaced while it trains, as a resume does.

Hooks lie on the objects that were there at the start. A loop that builds its optimizer anew, or
loads weights as new tensors, would go on unseen, and a run that learns would look like one that
does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from .info import identities
from .layers import Watched, parameters_of


class Succession:
    """Calls back where an optimizer that is not known yet steps parameters of the model."""

    def __init__(
        self, model: Any, succeed: Callable[[Any], None], fail: Callable[[Exception], None]
    ) -> None:
        """Hook the steps of all optimizers; `succeed` is called once with each stranger."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._model, self._succeed, self._fail = model, succeed, fail
        self._homes: list[tuple[dict[str, Any], str, Any]] = []
        self._last: Any = None
        self._known: WeakSet[Any] = WeakSet()
        self._left: WeakSet[Any] = WeakSet()
        self._handle = register_optimizer_step_pre_hook(self._before)

    def follow(self, watched: list[Watched], optimizers: list[Any]) -> None:
        """Take these for the tensors and the optimizers in use."""
        self._known = WeakSet(optimizers)
        self._last = optimizers[0] if optimizers else None
        self._homes = []
        for each in watched:
            own, homes = each.name.rpartition(".")[-1], each.module._parameters  # noqa: SLF001
            # Shards lie elsewhere while the model computes.
            if not each.is_sharded and homes.get(own) is each.parameter:
                self._homes.append((homes, own, each.parameter))

    def are_replaced(self) -> bool:
        """Does the model use other tensors than those that are watched?"""
        return any(homes.get(own) is not parameter for homes, own, parameter in self._homes)

    def watched_now(self, watched: list[Watched]) -> list[Watched] | None:
        """Return what there is to watch now, in the same order; None if it is another model."""
        now = parameters_of(self._model)
        return now if list(map(_place, now)) == list(map(_place, watched)) else None

    def optimizers_now(self, known: list[Any], stranger: Any, watched: list[Watched]) -> list[Any]:
        """Return the optimizers in use, now that one which is not known yet steps.

        One that owns none of the tensors is left alone. Of the others those go that have no tensor
        of their own any more; if one of them steps again they take turns, and all of them stay.
        """
        ours, its_own = {id(each.parameter) for each in watched}, identities([stranger])
        if not ours & its_own:
            return known
        staying = known
        if stranger not in self._left:
            staying = [each for each in known if identities([each]) & (ours - its_own)]
        self._left.update(each for each in known if each not in staying)
        return [*staying, stranger]

    def _before(self, optimizer: Any, _args: Any, _options: Any) -> None:
        if optimizer is self._last or optimizer in self._known:
            return
        try:
            self._known.add(optimizer)
            self._succeed(optimizer)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._fail(error)

    def close(self) -> None:
        """Remove the hook, and let go."""
        self._handle.remove()
        self._model, self._homes, self._last = None, [], None


def _place(each: Watched) -> tuple[str, tuple[int, ...], str]:
    return each.name, each.shape, str(each.parameter.dtype)
