"""Tables of embeddings that start far too large: what is looked up there drowns all else."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import LASTING, SHORT
from ..signs.harms import crawls, harm
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, finding


def large_tables(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find embeddings whose numbers start far beyond one, where the loss stays high.

    Frameworks draw them with a spread of one at most. A norm behind them hides the size from
    what follows but not from the steps: those of an optimiser are too small to turn such rows, and
    where the table makes the outputs as well, scores spread as far.
    """
    told = harm(seen.loss, least=20) or crawls(seen.loss, LASTING)
    weights, layers = seen.history.course.field("weight_l2"), seen.history.info.layers
    if told is None or told.kind == "broken" or weights is None or not len(weights):
        return []
    updates = seen.layers.typical_update
    if updates is not None and np.nan_to_num(updates[:SHORT], nan=1.0).max() >= limit["felt"]:
        return []  # steps that large do harm by themselves
    sizes = {
        layer.name: float(weights[0, i]) / layer.count**0.5
        for i, layer in enumerate(layers)
        if "embedding" in layer.kind.lower()
        and layer.shape
        and layer.trainable
        and isfinite(weights[0, i])
    }
    size = max(sizes.values(), default=0.0)
    if size < limit["table"]:
        return []
    # Tables that are tied to the outputs start smaller than others, and are too large sooner.
    found = [name for name, each in sizes.items() if each >= limit["table"] / 2]
    width = max(layer.shape[-1] for layer in layers if layer.name in found and layer.shape)
    return finding(
        "exploding",
        "warning",
        f"embeddings start with numbers of {size:.3g} ({found[0]} among them), where one or "
        f"less is usual; {told.said}",
        {"size": size, "table_threshold": limit["table"], "harm": told.said},
        since=int(seen.steps[0]),
        layers=found,
        cause="embeddings start far too large: steps hardly turn them, and what is made of "
        "them is as large",
        advice=[
            f"start embeddings with a spread of {width**-0.5:.2g}: rows of length one",
            "scale them where they are looked up, not where they are stored",
        ],
        signs=[above(size, limit["table"] / 2)],
        fix=Fix("scale_embeddings", {"factor": float(f"{width**-0.5 / size:.2g}")}),
    )
