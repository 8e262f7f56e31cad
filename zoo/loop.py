"""Trains one network as its knobs say, faults included, and says how well it did."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from .configs import Config
from .data import Data, batches, load
from .networks import build

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

VALIDATE_EVERY = 20
_SHORT_OF_ZERO = 1e-4  # what the faulty loss takes from a probability before its logarithm


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
        self.optimiser: Optimizer = _optimiser(self.model, config)
        self.accuracies: list[float] = []  # of each training batch: peers ask for it

    def run(self, watch: Watch) -> dict[str, Any]:
        """Train to the end and measure on what was held back."""
        self.model.train(self.config.train_mode)
        stream = batches(self.config, len(self.data.inputs), self.seed)
        last = self.config.stop_step or self.config.steps
        started = time.perf_counter()
        for step in range(min(last, self.config.steps)):
            loss = self._step(step, stream)
            told = {"lr": self.optimiser.param_groups[0]["lr"]}
            if step % VALIDATE_EVERY == VALIDATE_EVERY - 1:
                told["val_loss"] = self.validate()["val_loss"]
            watch.step(loss=loss, **told)
        return {**self.validate(), "seconds": time.perf_counter() - started}

    def _step(self, step: int, stream: Iterator[Any]) -> Tensor:
        config, optimiser = self.config, self.optimiser
        _set_rate(optimiser, config, step)
        if config.zero_grad == "start":
            optimiser.zero_grad()
        total: Any = 0.0
        for part in range(config.accumulate):
            inputs, targets = self._batch(next(stream), step)
            scores = self.model(inputs)
            loss = self.loss_of(scores, targets) * config.loss_sign / config.accumulate
            if config.zero_grad == "before-backward" and part == 0:
                optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            total = total + loss.detach()
        self._note_accuracy(scores, targets)
        if config.clip is not None:
            import torch

            torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        if config.calls_step and not (config.skip_nonfinite and self._is_broken(total)):
            optimiser.step()
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
        if step == self.config.bad_step:
            inputs[0] = math.nan
        return inputs, torch.from_numpy(self.data.targets[places])

    def loss_of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Give the loss that the configuration asks for."""
        from torch.nn import functional

        if self.data.classes == 0:
            return functional.mse_loss(scores, targets)
        scores, targets = scores.flatten(0, -2), targets.flatten()
        loss = functional.cross_entropy(scores, targets)
        if self.config.loss == "naive-log":
            shares = scores.softmax(-1)
            loss = loss + 0.01 * (shares * (shares - _SHORT_OF_ZERO).log()).sum(-1).mean()
        return loss

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
            measured = {"val_loss": float(self.loss_of(scores, targets)) / scale}
            if self.data.classes:
                right = (scores.argmax(-1) == targets) & scores.isfinite().all(-1)
                measured["val_accuracy"] = float(right.float().mean())
        self.model.train(before)
        return measured


def _optimiser(model: nn.Module, config: Config) -> Optimizer:
    import torch

    chosen = list(model.named_parameters())
    if config.optimised == "last":
        chosen = [(name, each) for name, each in chosen if name.startswith("output.")]
    elif config.optimised.startswith("all-but-"):
        left_out = f"hidden.{config.optimised.removeprefix('all-but-')}."
        chosen = [(name, each) for name, each in chosen if not name.startswith(left_out)]
    parameters = [each for _, each in chosen if each.requires_grad]
    kinds: dict[str, Callable[[], Optimizer]] = {
        "sgd": lambda: torch.optim.SGD(
            parameters, config.lr, config.momentum, weight_decay=config.weight_decay
        ),
        "adam": lambda: torch.optim.Adam(parameters, config.lr, weight_decay=config.weight_decay),
        "adamw": lambda: torch.optim.AdamW(parameters, config.lr, weight_decay=config.weight_decay),
    }
    return kinds[config.optimiser]()


def rate_at(config: Config, step: int) -> float:
    """Give the learning rate of a step.

    >>> rate_at(Config(lr=1.0, warmup=4), 0), rate_at(Config(lr=1.0, schedule="early-zero"), 30)
    (0.25, 0.0)
    """
    rate = config.lr
    if step < config.warmup:
        rate *= (step + 1) / config.warmup
    elif config.schedule == "cosine":
        share = (step - config.warmup) / max(config.steps - config.warmup, 1)
        rate *= (1 + math.cos(math.pi * share)) / 2
    elif config.schedule == "cyclic":
        rate *= 0.1 + 0.9 * abs((step % 80) / 40 - 1)
    elif config.schedule == "early-zero" and step >= config.steps // 10:
        rate = 0.0
    elif config.schedule == "ramp":
        rate *= 1.02**step
    return rate * config.kick_factor if step == config.kick_step else rate


def _set_rate(optimiser: Optimizer, config: Config, step: int) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate_at(config, step)


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
