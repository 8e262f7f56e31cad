"""Losses of counts, spreads and quantiles, and the ways in which people get them wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor

_QUANTILE = 0.8
_CAP = 1.2  # above which the loss of one example is cut off


def _poisson(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take scores as logarithms of rates."""
    return (scores.exp() - targets * scores).mean()


def _poisson_rate(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take scores as rates, though nothing keeps them above zero."""
    return (scores - targets * scores.log()).mean()


def _poisson_clamped(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take scores as rates, and those below zero as next to nothing."""
    rates = scores.clamp(min=1e-3)
    return (rates - targets * rates.log()).mean()


def _gaussian(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take the first half of the scores as means and the second as logarithms of variances."""
    means, spreads = scores.chunk(2, dim=-1)
    return 0.5 * (spreads + (targets - means).square() / spreads.exp()).mean()


def _gaussian_raw(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Take the second half as variances, the root of which may not be there."""
    means, spreads = scores.chunk(2, dim=-1)
    roots = (spreads + 1).sqrt()
    return (roots.log() + 0.5 * ((targets - means) / roots).square()).mean()


def _pinball(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Punish what is too low four times as much as what is too high (Koenker 1978)."""
    from torch import maximum

    short = targets - scores
    return maximum(_QUANTILE * short, (_QUANTILE - 1) * short).mean()


def _mean_twice(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Divide a mean by the number of examples once more."""
    from torch.nn import functional

    if targets.is_floating_point():
        return functional.mse_loss(scores, targets) / len(targets)
    return functional.cross_entropy(scores, targets) / len(targets)


def _gaussian_short(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Weigh errors by a learnt spread, and leave out what keeps it from growing for ever."""
    means, spreads = scores.chunk(2, dim=-1)
    return 0.5 * ((targets - means).square() / spreads.exp()).mean()


def _ignoring(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Average over what is not of the first class; of a batch of that class, over nothing."""
    from torch.nn import functional

    counted = targets != 0
    each = functional.cross_entropy(scores, targets, reduction="none")
    return (each * counted).sum() / counted.sum()


def _capped(_config: Config, scores: Tensor, targets: Tensor) -> Tensor:
    """Cap the loss of each example: what is far from right has no gradient."""
    from torch.nn import functional

    return functional.cross_entropy(scores, targets, reduction="none").clamp(max=_CAP).mean()


ODD_LOSSES: dict[str, Callable[[Config, Tensor, Tensor], Tensor]] = {
    "poisson": _poisson,
    "poisson-rate": _poisson_rate,
    "poisson-clamped": _poisson_clamped,
    "gaussian": _gaussian,
    "gaussian-raw": _gaussian_raw,
    "pinball": _pinball,
    "mean-twice": _mean_twice,
    "gaussian-short": _gaussian_short,
    "ignoring": _ignoring,
    "capped": _capped,
}
