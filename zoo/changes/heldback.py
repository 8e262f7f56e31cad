"""The second part: written without knowledge of the rules, asked once, and learned from since."""

from __future__ import annotations

from . import (
    heldback_composites,
    heldback_mixed,
    heldback_nothing,
    heldback_ranks,
    heldback_shapes,
    heldback_storage,
    heldback_structures,
    heldback_tuned,
    heldback_values,
)
from .pairs import Pair

PAIRS: list[Pair] = [
    *heldback_storage.PAIRS,
    *heldback_values.PAIRS,
    *heldback_ranks.PAIRS,
    *heldback_tuned.PAIRS,
    *heldback_shapes.PAIRS,
    *heldback_structures.PAIRS,
    *heldback_composites.PAIRS,
    *heldback_mixed.PAIRS,
    *heldback_nothing.PAIRS,
]
