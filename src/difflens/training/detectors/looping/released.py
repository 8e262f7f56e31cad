"""Layers that moved at first and are in no optimizer any more: loaded as new tensors, say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, finding


def released(seen: Sight, limit: Limits, updates: Any) -> Iterator[RunFinding]:
    """Find trainable layers that no optimizer holds by now and that have stood still since."""
    layers = seen.history.info.layers
    chosen = [i for i, each in enumerate(layers) if each.trainable and each.optimised is False]
    moved = np.nan_to_num(updates[:, chosen]).any(axis=1)
    last = int(np.flatnonzero(moved)[-1]) if moved.any() else -1
    still = seen.points - 1 - last
    if not chosen or last < 0 or still < limit["stopped_points"]:
        return
    names = [layers[i].name for i in chosen]
    whole = sum(each.count for each in layers if each.trainable)
    share = sum(layers[i].count for i in chosen) / whole if whole else 1.0
    count = f"{len(names)} layers" if len(names) > 1 else "1 layer"
    yield from finding(
        "not-training",
        "critical" if share > 0.2 else "warning",
        f"{count} with {share:.0%} of the parameters moved until step {int(seen.steps[last])}, "
        "and no optimizer has held them since",
        {
            "still_layers": len(names),
            "share_of_parameters": share,
            "still_points": still,
            "stopped_points_threshold": limit["stopped_points"],
        },
        since=int(seen.steps[last + 1]),
        layers=names,
        cause="the weights are new tensors (loaded with assign=True, converted or moved), and the "
        "optimizer holds the old ones",
        advice=["build the optimizer again from model.parameters()"],
        signs=[above(still, limit["stopped_points"] / 2)],
        fix=Fix("add_to_optimizer", {"layers": names}),
    )
