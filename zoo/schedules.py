"""Learning rates over the steps of a run: shapes that work, and shapes people get wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

from .configs import Config

# Each gives the factor of a step; the steps are counted from the end of the warm-up.
SHAPES: dict[str, Callable[[Config, int], float]] = {
    "constant": lambda _config, _step: 1.0,
    "cosine": lambda config, step: (1 + math.cos(math.pi * step / _after(config))) / 2,
    "linear": lambda config, step: 1 - step / _after(config),
    "inverse-root": lambda config, step: (1 + step / config.period) ** -0.5,
    "exponential": lambda config, step: config.gamma**step,
    "steps": lambda config, step: config.gamma ** (step // config.period),
    "restarts": lambda config, step: _wave(step % config.period / config.period),
    "short-cosine": lambda config, step: _short(step / config.period),
    "rising": lambda config, step: 1 + step / config.period,
    "one-cycle": lambda config, step: _one_cycle(step / _after(config)),
    "polynomial": lambda config, step: max(1 - step / _after(config), 0.0) ** 2,
    # A decay that was made for fewer steps and knows no end: below zero it climbs the loss.
    "overrun": lambda config, step: 1 - step / config.period,
    # Restarts, each of them `gamma` times as high as the one before.
    "swelling": lambda config, step: (
        config.gamma ** (step // config.period) * _wave(step % config.period / config.period)
    ),
    # These count from the first step, whatever the warm-up.
    "cyclic": lambda config, step: 0.1 + 0.9 * abs(((step + config.warmup) % 80) / 40 - 1),
    "early-zero": lambda config, step: float(step + config.warmup < config.steps // 10),
    "ramp": lambda config, step: 1.02 ** (step + config.warmup),
}


def rate_at(config: Config, step: int) -> float:
    """Return the learning rate of a step.

    >>> rate_at(Config(lr=1.0, warmup=4), 0), rate_at(Config(lr=1.0, schedule="early-zero"), 30)
    (0.25, 0.0)
    """
    if step < config.warmup:
        rate = config.lr * (step + 1) / config.warmup
    else:
        rate = config.lr * SHAPES[config.schedule](config, step - config.warmup)
    return rate * config.kick_factor if step == config.kick_step else rate


def _after(config: Config) -> int:
    return max(config.steps - config.warmup, 1)


def _wave(share: float) -> float:
    return 0.02 + 0.98 * (1 + math.cos(math.pi * share)) / 2


def _short(share: float) -> float:
    """Fall to nothing within a period and stay there."""
    return (1 + math.cos(math.pi * min(share, 1.0))) / 2


def _one_cycle(share: float) -> float:
    """Rise for a third of the run, then fall to almost nothing (Smith and Topin 2018)."""
    if share < 1 / 3:
        return 0.1 + 0.9 * 3 * share
    return max(1.5 * (1 - share), 1e-3)
