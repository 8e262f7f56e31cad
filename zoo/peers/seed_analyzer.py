"""The gradient analyser of the reference design: fixed limits on whole-run means of raw norms."""

from __future__ import annotations

import numpy as np

from ..verdicts import Alarm
from .seen import Seen


def alarms(run: Seen) -> list[Alarm]:
    """Judge every layer over the whole run, as it does; NaN passes every comparison."""
    last = len(run.loss) - 1
    flagged: dict[str, list[str]] = {}
    for place, layer in enumerate(run.layers):
        norms = run.grad_l2[:, place]
        mean = float(norms.mean())
        if mean < 1e-5:
            flagged.setdefault("vanishing", []).append(layer.name)
        if mean > 100:
            flagged.setdefault("exploding", []).append(layer.name)
        if _turns(norms) > 0.5:
            flagged.setdefault("oscillating", []).append(layer.name)
    return [Alarm(frozenset({name}), last, layers=tuple(found)) for name, found in flagged.items()]


def _turns(norms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return its oscillation frequency: changes of direction by the length of the series."""
    if len(norms) < 4:
        return 0.0
    steps = np.diff(norms)
    return float((steps[:-1] * steps[1:] < 0).sum() / len(norms))
