"""Runs whose course is known: layers about a common course, and a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import lfilter

from difflens.training.gradients import convergence
from difflens.training.gradients.network import network_level
from difflens.training.gradients.phases import plateau_of
from difflens.training.gradients.series import totals
from difflens.training.gradients.signals import LayerSignal, Signals

Curve = Callable[[Any], Any]


def noise(random: np.random.Generator, phi: float, n: int, series: int = 1) -> np.ndarray:
    return lfilter([1], [1, -phi], random.standard_normal((n + 300, series)), axis=0)[300:]


def decaying(time: Any) -> Any:
    return np.exp(-time / 300)


def falling(time: Any) -> Any:
    return 0.5 + 2 * np.exp(-time / 300)


def flat(time: Any) -> Any:
    return np.ones(len(time))


def run(  # noqa: PLR0917  a table of what may differ
    norms: Curve = decaying,
    loss: Curve | None = falling,
    n: int = 400,
    layers: int = 3,
    phi: float = 0.3,
    seed: int = 0,
    scatter: float = 0.15,
    loss_scatter: float = 0.03,
    **fields: Any,
) -> Signals:
    """Make a run; `fields` are series that every layer has beside its norms."""
    random, steps = np.random.default_rng(seed), np.arange(n)
    jitter = np.exp(scatter * noise(random, phi, n, layers))
    made = tuple(
        LayerSignal(f"layer.{i}", steps, norms(steps) * jitter[:, i], 100, i, "Linear", **fields)
        for i in range(layers)
    )
    losses = None
    if loss is not None:
        losses = loss(steps) + loss_scatter * noise(random, phi, n)[:, 0]
    return Signals(made, steps, losses)


def analysed(signals: Signals, depth: str = "standard", **how: Any) -> Any:
    return network_level(signals, {}, depth=depth, **how)


def headed(signals: Signals, window: int = 100) -> tuple[str, str, str]:
    """Return word, reason and plateau, without what takes longest."""
    found = totals(signals)
    level = plateau_of(found.loss)
    word, reason = convergence.word(convergence.heading_evidence(found, signals, level, window))
    return str(word), reason, level.outcome
