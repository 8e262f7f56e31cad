"""What is made small: losses that are right for their data, and losses that only look so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .configs import Config
from .odd_losses import ODD_LOSSES

if TYPE_CHECKING:
    from torch import Tensor

_WARMTH = 0.2  # by which likeness is divided before its softmax
_SHORT_OF_ZERO = 1e-4  # what a faulty loss takes from a probability before its logarithm


def loss_of(
    config: Config, classes: int, scores: Tensor, targets: Tensor, *, held: bool = False
) -> Tensor:
    """Return the loss that a configuration asks for; `classes` is 0 for regression."""
    if classes:
        scores, targets = scores.flatten(0, -2), targets.flatten()
    name = config.held_loss if held and config.held_loss else config.loss
    return (LOSSES | ODD_LOSSES)[name](config, scores / config.temperature, targets)


def _auto(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional

    if targets.is_floating_point():
        return functional.mse_loss(scores, targets)
    weight = _class_weights(config, scores, targets) if config.class_weights else None
    smoothing = config.label_smoothing
    return functional.cross_entropy(scores, targets, weight, label_smoothing=smoothing)


def _class_weights(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Weigh classes by how seldom they are in the batch; or, wrongly, by how often."""
    counts = targets.bincount(minlength=scores.shape[-1]).to(scores.dtype) + 1
    shares = counts / counts.sum()
    return 1 / shares if config.class_weights == "balanced" else shares**2


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


def _nll_of_scores(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take scores for logarithms of probabilities: there is no end to how large they may grow."""
    return -scores.gather(-1, targets[:, None]).mean()


def _bce(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.binary_cross_entropy_with_logits(scores, targets)


def _one_of_many(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Let labels that go together fight for one softmax."""
    return -(scores.log_softmax(-1) * targets).sum(-1).mean()


def _naive_bce(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Write the entropy out by hand: nothing times the logarithm of nothing is no number."""
    shares = scores.sigmoid()
    return -(targets * shares.log() + (1 - targets) * (1 - shares).log()).mean()


def _contrast(_config: Config, scores: Tensor, _targets: Tensor) -> Tensor:
    """Let each example find its other view among all others' (van den Oord et al. 2018)."""
    import torch
    from torch.nn import functional

    alike = scores[:, 0] @ scores[:, 1].T / _WARMTH
    return functional.cross_entropy(alike, torch.arange(len(alike)))


def _contrast_flat(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Compare views with others of the same side: the right answer is not among them."""
    import torch
    from torch.nn import functional

    alike = scores[:, 0] @ scores[:, 1].roll(1, 0).T / _WARMTH
    return functional.cross_entropy(alike, torch.arange(len(targets)))


def _attract(_config: Config, scores: Tensor, _targets: Tensor) -> Tensor:
    """Pull both views together, with nothing that holds examples apart."""
    return (scores[:, 0] - scores[:, 1]).square().sum(-1).mean()


def _variational(config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Add to the error of the picture what the code tells beyond its prior."""
    size = targets.shape[1]
    centre, spread = scores[:, size:].chunk(2, dim=1)
    told = (centre.square() + spread.exp() - 1 - spread).sum(-1).mean() / 2
    return _rebuilt(config, scores, targets) + config.prior * told / size


def _rebuilt(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.mse_loss(scores[:, : targets.shape[1]], targets)


LOSSES: dict[str, Callable[[Config, Tensor, Tensor], Tensor]] = {
    "auto": _auto,
    "huber": _huber,
    "brier": _brier,
    "naive-log": _naive_log,
    "naive-softmax": _naive_softmax,
    "sum": _summed,
    "broadcast": _broadcast,
    "nll-of-scores": _nll_of_scores,
    "bce": _bce,
    "one-of-many": _one_of_many,
    "naive-bce": _naive_bce,
    "contrast": _contrast,
    "contrast-flat": _contrast_flat,
    "attract": _attract,
    "variational": _variational,
    "rebuilt": _rebuilt,
}
