"""What is made small: losses that are right for their data, and losses that only look so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor

_SHORT_OF_ZERO = 1e-4  # what a faulty loss takes from a probability before its logarithm


def loss_of(config: Config, classes: int, scores: Tensor, targets: Tensor) -> Tensor:
    """Give the loss that a configuration asks for; `classes` is 0 for regression."""
    if classes:
        scores, targets = scores.flatten(0, -2), targets.flatten()
    return LOSSES[config.loss](config, scores, targets)


def _auto(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional

    if targets.is_floating_point():
        return functional.mse_loss(scores, targets)
    return functional.cross_entropy(scores, targets, label_smoothing=config.label_smoothing)


def _huber(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.huber_loss(scores, targets)


def _brier(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Compare probabilities with the labels as vectors of one and zeros (Brier 1950)."""
    from torch.nn import functional

    wanted = functional.one_hot(targets, scores.shape[-1]).to(scores.dtype)
    return (scores.softmax(-1) - wanted).square().sum(-1).mean()


def _naive_log(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    shares = scores.softmax(-1)
    entropy = (shares * (shares - _SHORT_OF_ZERO).log()).sum(-1).mean()
    return _auto(config, scores, targets) + 0.01 * entropy


def _naive_softmax(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take the logarithm of a probability that may be zero, and of exponentials that overflow."""
    exponentials = scores.exp()
    shares = exponentials / exponentials.sum(-1, keepdim=True)
    return -shares.gather(-1, targets[:, None]).log().mean()


def _summed(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    return _auto(config, scores, targets) * len(targets)


def _broadcast(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Compare a column with a row: each answer is held against the targets of all examples."""
    return (scores - targets.flatten()).square().mean()


LOSSES: dict[str, Callable[[Config, Tensor, Tensor], Tensor]] = {
    "auto": _auto,
    "huber": _huber,
    "brier": _brier,
    "naive-log": _naive_log,
    "naive-softmax": _naive_softmax,
    "sum": _summed,
    "broadcast": _broadcast,
}
