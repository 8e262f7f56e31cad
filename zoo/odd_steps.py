"""What befalls a step that few think of: late gradients, masks, resumes, rates of their own."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

_REDUCED, _PATIENCE = 0.1, 2  # the factor of a rate, after so many validations without progress


class OddSteps:
    """Does to one network and its optimiser what the knobs say; with their defaults, nothing."""

    def __init__(self, model: nn.Module) -> None:
        """Begin with nothing waiting."""
        self._model = model
        self._late: deque[list[Tensor]] = deque()
        self._masks: dict[str, Tensor] = {}
        self._best, self._bad = math.inf, 0
        self.factor = 1.0  # of the rate

    def begin(self, config: Config, step: int, optimiser: Optimizer) -> Optimizer:
        """Let happen what happens before a step; return the optimiser that goes on."""
        from .optimisers import optimiser_of

        if step == 0:
            self._prune(config)
        for when, what, pattern in config.events:
            if when != step:
                continue
            if what == "rebuild":
                optimiser = optimiser_of(self._model, config)
            else:
                self._befall(what, pattern)
        return optimiser

    def _befall(self, what: str, pattern: str) -> None:
        names = [name for name, _ in self._model.named_parameters() if fnmatch(name, pattern)]
        chosen = [self._model.get_parameter(name) for name in names]
        if what in ("freeze", "thaw"):
            for each in chosen:
                each.requires_grad_(requires_grad=what == "thaw")
        elif what == "assign":
            self._assign(names)
        elif what == "rotate":
            _rotate(chosen)
        else:
            raise ValueError(f"no event {what!r}")

    def _assign(self, names: list[str]) -> None:
        """Put new parameters of the same values in: the optimiser keeps the old ones."""
        from torch import nn

        for name in names:
            owner, _, own = name.rpartition(".")
            old = self._model.get_parameter(name)
            fresh = nn.Parameter(old.detach().clone(), requires_grad=old.requires_grad)
            setattr(self._model.get_submodule(owner), own, fresh)

    def _prune(self, config: Config) -> None:
        import torch

        for pattern, share in config.pruned:
            for name, each in self._model.named_parameters():
                if fnmatch(name, pattern):
                    self._masks[name] = torch.rand_like(each) >= share
                    with torch.no_grad():
                        each.mul_(self._masks[name])

    def before_step(self, config: Config, loss: Tensor, optimiser: Optimizer) -> None:
        """Do to the gradients, and to the rate that comes of them, what the knobs say."""
        import torch

        with torch.no_grad():
            for name, each in self._graded():
                if config.reversed_for and fnmatch(name, config.reversed_for):
                    each.neg_()
                if config.top_share < 1:
                    _keep_greatest(each, config.top_share)
                if config.signs:
                    each.sign_()
            if config.delay:
                self._delay(config.delay)
            if config.polyak is not None:
                squared = sum(float(each.square().sum()) for _, each in self._graded())
                for group in optimiser.param_groups:
                    group["lr"] = min(float(loss) / (squared + 1e-12), config.polyak)

    def _graded(self) -> Iterator[tuple[str, Tensor]]:
        for name, each in self._model.named_parameters():
            if each.grad is not None:
                yield name, each.grad

    def _delay(self, steps: int) -> None:
        now = [each for _, each in self._graded()]
        self._late.append([each.clone() for each in now])
        old = self._late.popleft() if len(self._late) > steps else None
        for number, each in enumerate(now):
            if old is None:
                each.zero_()
            else:
                each.copy_(old[number])

    def after_step(self, config: Config, optimiser: Optimizer) -> None:
        """Do to the weights, and to what the optimiser keeps, what the knobs say."""
        import torch

        with torch.no_grad():
            for name, each in self._model.named_parameters():
                if name in self._masks:
                    each.mul_(self._masks[name])
            if config.state_in == "float16":
                for state in optimiser.state.values():
                    _halve(state)

    def validated(self, config: Config, loss: float) -> None:
        """Lower the rate for good where validation made no progress, or what is taken for it."""
        if not config.reduces:
            return
        measured = loss if config.reduces == "min" else -loss
        self._bad = 0 if measured < self._best else self._bad + 1
        self._best = min(self._best, measured)
        if self._bad == _PATIENCE:
            self.factor, self._bad = self.factor * _REDUCED, 0


def _keep_greatest(grad: Tensor, share: float) -> None:
    """Leave the greatest elements of a gradient, and forget the others."""
    flat = grad.view(-1)
    kept = max(1, round(share * len(flat)))
    least = flat.abs().topk(kept).values[-1]
    flat.mul_(flat.abs() >= least)


def _halve(state: dict[str, Any]) -> None:
    for name in ("exp_avg", "exp_avg_sq"):
        if name in state:
            state[name].copy_(state[name].half())


def _rotate(chosen: list[nn.Parameter]) -> None:
    """Load each tensor into the place of the next one of its shape."""
    from torch import no_grad

    with no_grad():
        for shape in {each.shape for each in chosen}:
            alike = [each for each in chosen if each.shape == shape]
            kept = [each.detach().clone() for each in alike]
            for each, other in zip(alike, [*kept[1:], kept[0]], strict=True):
                each.copy_(other)
