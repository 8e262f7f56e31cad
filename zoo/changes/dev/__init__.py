"""The dev part: pairs on which the rules of `change_summary` may be chosen."""

from ..pairs import Pair
from . import composites, low_rank, merges, order, replaced, storage, structure, tuned, values

PAIRS: list[Pair] = [
    *storage.PAIRS,
    *values.PAIRS,
    *low_rank.PAIRS,
    *tuned.PAIRS,
    *order.PAIRS,
    *replaced.PAIRS,
    *structure.PAIRS,
    *merges.PAIRS,
    *composites.PAIRS,
]
