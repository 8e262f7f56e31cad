"""Shortcuts that multiply what they carry: it grows from block to block, past all norms."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import FEW, SLIGHTLY
from ..signs.harms import broke, rose
from ..signs.layers import initial_scales
from ..signs.limits import Limits
from ..signs.rates import mean_square
from ..signs.sight import Sight
from ..signs.starts import LARGE, USUAL, gain
from ..signs.wording import above, finding


def multiplied_shortcuts(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find large first outputs of usual weights and norms, where blocks multiply their gradients.

    A branch that begins with a norm gets inputs of size one, so the gradient of its weights is as
    large as what comes back along the shortcuts. That is about the same for all blocks where they
    add what they carry as it is. Where each multiplies it, gradients grow by that factor from
    block to block towards the input, and the signal on its way to the outputs: neither weights
    of a usual size nor norms can do so.
    """
    told, factor = broke(seen.loss) or rose(seen.loss, 1.5), growth_a_block(seen)
    if told is None or factor < limit["shortcut"] or not _are_outputs_alone_large(seen):
        return []
    return finding(
        "exploding",
        "critical",
        f"from block to block gradients grow {factor:.3g}-fold towards the input, through "
        f"weights of a usual size and norms; {told.said}",
        {"growth_a_block": factor, "shortcut_threshold": limit["shortcut"], "harm": told.said},
        since=int(seen.steps[0]),
        layers=seen.layers.named(range(len(seen.layers.matrices)))[:10],
        cause="shortcuts multiply what they carry: neither weights nor norms make it grow",
        advice=[
            "add what a shortcut carries as it is: x + f(x)",
            "put a norm behind the last block, before the outputs",
        ],
        signs=[above(factor, limit["shortcut"] / 2)],
        fix=Fix("unscale_shortcuts"),
    )


def growth_a_block(seen: Sight) -> float:
    """Return the growth of first gradients from a block to the one before it; 0 if unknown."""
    gradients, families = seen.layers.field("grad_l2"), _families(seen)
    if gradients is None or not families or not seen.history.fact("norm_layers"):
        return 0.0
    ratios = [
        float(gradients[0, one]) / float(gradients[0, other])
        for family in families
        for one, other in pairwise(family)
        if gradients[0, other] > 0
    ]
    # Each block must do it: a single one may be unlike the others for reasons of its own.
    if not ratios or not np.isfinite(ratios).all() or min(ratios) < SLIGHTLY:
        return 0.0
    return float(np.exp(np.mean(np.log(ratios))))


def _families(seen: Sight) -> list[list[int]]:
    """Return the columns of matrices that are alike but for the number of their block, in order."""
    alike: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for column in np.flatnonzero(seen.layers.trained):
        layer = seen.layers.of(int(column))
        family = (re.sub(r"\d+", "#", layer.name, count=1), layer.shape)
        alike.setdefault(family, []).append(int(column))
    return [family for family in alike.values() if len(family) >= FEW]


def _are_outputs_alone_large(seen: Sight) -> bool:
    """Are first outputs large though neither the weights nor what went in are?"""
    outputs, whole, scales = mean_square(seen), gain(seen), initial_scales(seen.layers)
    if outputs is None or whole is None or not len(scales):
        return False
    return outputs >= USUAL**2 and whole >= USUAL and float(np.nanmax(scales)) < LARGE
