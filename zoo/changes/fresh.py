"""The fresh part: pairs written without knowledge of the rules, after the held-back part."""

from __future__ import annotations

from . import (
    fresh_bases,
    fresh_composites,
    fresh_mixed,
    fresh_nothing,
    fresh_orders,
    fresh_ranks,
    fresh_storage,
    fresh_structures,
    fresh_training,
    fresh_tuned,
    fresh_values,
)
from .pairs import Pair

# Importing these two adds their bases, and what their networks learn.
ADDED = (fresh_bases.FRESH_NETWORKS, fresh_training.learn)

PAIRS: list[Pair] = [
    *fresh_storage.PAIRS,
    *fresh_values.PAIRS,
    *fresh_ranks.PAIRS,
    *fresh_tuned.PAIRS,
    *fresh_orders.PAIRS,
    *fresh_structures.PAIRS,
    *fresh_composites.PAIRS,
    *fresh_mixed.PAIRS,
    *fresh_nothing.PAIRS,
]
