"""Trains one network as its knobs say, faults included, and says how well it did."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from .configs import Config
from .data import Data, batches, load
from .losses import loss_of
from .mishaps import Mishaps, augmented, in_mode
from .networks import build
from .odd_steps import OddSteps
from .optimisers import optimiser_of
from .schedules import rate_at

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["VALIDATE_EVERY", "Loop", "Watch", "one_thread", "rate_at"]

VALIDATE_EVERY = 20
_OUTLIER = 1e3  # by which a batch of outliers is too large


class Watch(Protocol):
    """What the loop tells of each step."""

    def step(self, loss: Any = None, **scalars: Any) -> Any:
        """Close a frame."""


class Loop:
    """A network in training; `run` goes through its steps."""

    def __init__(self, config: Config, seed: int) -> None:
        """Build everything from the seed."""
        import torch

        torch.manual_seed(seed)
        self.config, self.seed = config, seed
        self.data: Data = load(config, seed)
        self.model: nn.Module = build(config, self.data)
        if config.pretrained:
            _pretrain(self.model, config, seed)
        self.optimiser: Optimizer = optimiser_of(self.model, config)
        self.mishaps = Mishaps(self.model)
        self.odd = OddSteps(self.model)
        self.accuracies: list[float] = []  # of each training batch: peers ask for it

    def run(self, watch: Watch) -> dict[str, Any]:
        """Train to the end and measure on what was held back."""
        in_mode(self.model, self.config)
        stream = self._stream()
        last = self.config.stop_step or self.config.steps
        started = time.perf_counter()
        for step in range(min(last, self.config.steps)):
            if step == self.config.switch_step:
                self._switch()
                stream = self._stream()
            loss = self._step(step, stream)
            told = {"lr": self.optimiser.param_groups[0]["lr"]}
            if step % VALIDATE_EVERY == VALIDATE_EVERY - 1:
                told["val_loss"] = self.validate()["val_loss"]
                self.odd.validated(self.config, told["val_loss"])
            watch.step(loss=loss, **told)
        return {**self.validate(), "seconds": time.perf_counter() - started}

    def _stream(self) -> Iterator[Any]:
        return batches(self.config, len(self.data.inputs), self.seed)

    def _switch(self) -> None:
        """Let the fault begin; what is held back for validation stays as it was."""
        self.config = replace(self.config, **dict(self.config.switched))
        fresh = load(self.config, self.seed)
        self.data = self.data._replace(inputs=fresh.inputs, targets=fresh.targets)
        in_mode(self.model, self.config)

    def _step(self, step: int, stream: Iterator[Any]) -> Tensor:
        config = self.config
        optimiser = self.optimiser = self.odd.begin(config, step, self.optimiser)
        _set_rate(optimiser, rate_at(config, step) * self.odd.factor)
        if config.zero_grad == "start":
            optimiser.zero_grad()
        total: Any = 0.0
        for part in range(config.accumulate):
            inputs, targets = self._batch(next(stream), step)
            scores = self.model(inputs)
            share = config.loss_sign / (config.accumulate if config.averages else 1)
            loss = self.loss_of(scores, targets) * share
            if config.zero_grad == "before-backward" and part == 0:
                optimiser.zero_grad()
            self.mishaps.told(config, loss, step).backward()
            total = total + loss.detach()
        self._note_accuracy(scores, targets)
        self.mishaps.before_step(config, step)
        self.odd.before_step(config, total, optimiser)
        if config.clip is not None:
            import torch

            torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        if config.zero_grad == "before-step":
            optimiser.zero_grad()
        if config.calls_step and not (config.skip_nonfinite and self._is_broken(total)):
            optimiser.step()
            self.mishaps.after_step(config, step)
            self.odd.after_step(config, optimiser)
        if config.zero_grad == "after-step":
            optimiser.zero_grad()
        result: Tensor = total
        return result

    def _is_broken(self, loss: Tensor) -> bool:
        grads = [each.grad for each in self.model.parameters() if each.grad is not None]
        return not math.isfinite(float(loss)) or any(not each.isfinite().all() for each in grads)

    def _batch(self, places: Any, step: int) -> tuple[Tensor, Tensor]:
        import torch

        inputs = torch.from_numpy(self.data.inputs[places])
        targets = torch.from_numpy(self.data.targets[places])
        if self.config.in_place != (1.0, 0.0):  # whoever reads an example changes it
            factor, shift = self.config.in_place
            self.data.inputs[places] = self.data.inputs[places] * factor + shift
        if self.config.jitter:
            inputs = inputs + self.config.jitter * torch.randn_like(inputs)
        if self.config.augment != "none":
            inputs = augmented(self.config.augment, inputs)
        if step == self.config.bad_step:
            _spoil(self.config.bad_kind, inputs, targets)
        return inputs, targets

    def loss_of(self, scores: Tensor, targets: Tensor, *, held: bool = False) -> Tensor:
        """Return the loss that the configuration asks for."""
        return loss_of(self.config, self.data.classes, scores, targets, held=held)

    def _note_accuracy(self, scores: Tensor, targets: Tensor) -> None:
        if self.data.classes:
            right = scores.detach().argmax(-1) == targets
            self.accuracies.append(float(right.float().mean()))

    def validate(self) -> dict[str, float]:
        """Measure on what was held back, in evaluation mode, and go back to the mode before."""
        import torch

        before = self.model.training
        self.model.eval()
        with torch.no_grad():
            scores = self.model(torch.from_numpy(self.data.held_inputs))
            targets = torch.from_numpy(self.data.held_targets)
            scale = 1.0 if self.data.classes else self.config.target_scale**2
            measured = {"val_loss": float(self.loss_of(scores, targets, held=True)) / scale}
            if self.data.classes:
                right = (scores.argmax(-1) == targets) & scores.isfinite().all(-1)
                measured["val_accuracy"] = float(right.float().mean())
        self.model.train(before)
        if before:
            in_mode(self.model, self.config)
        return measured


def _spoil(kind: str, inputs: Tensor, targets: Tensor) -> None:
    if kind == "outlier":
        inputs *= _OUTLIER
    elif kind == "wild-target":
        targets *= _OUTLIER
    elif kind == "empty":
        inputs[0] = 0
    elif kind == "target":
        targets[0] = math.nan
    elif kind == "blank":
        inputs[0] = 1.0
    else:
        inputs[0] = math.inf if kind == "infinite" else math.nan


def _pretrain(model: nn.Module, config: Config, seed: int) -> None:
    """Pretrain a network on another task: all layers, plain Adam."""
    from .recording import unrecorded

    plain = Config(
        data=config.data, model=config.model, depth=config.depth, width=config.width,
        length=config.length, activation=config.activation, norm=config.norm,
        norm_place=config.norm_place, residual=config.residual, init=config.init,
        steps=config.pretrained, lr=2e-3, cell=config.cell, reads=config.reads,
        causal=config.causal, tied=config.tied, entry=config.entry, gated=config.gated,
        code=config.code, loss=config.loss, ending=config.ending,
    )  # fmt: skip
    before = Loop(plain, seed + 500)
    with unrecorded() as watch:
        before.run(watch)
    learnt = before.model.state_dict()
    if config.new_head:
        learnt = {name: each for name, each in learnt.items() if not name.startswith("output.")}
    model.load_state_dict(learnt, strict=False)


def _set_rate(optimiser: Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("factor", 1.0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one core, so that two runs side by side do not fight."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
