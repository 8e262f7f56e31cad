"""Leading directions of the right matrix that the left one has not: intruder dimensions.

Shuttleworth et al. (2024), "LoRA vs Full Fine-tuning: An Illusion of Equivalence".
"""

from __future__ import annotations

from math import acos, degrees
from typing import Any

from ...measure.alignment import DIRECTIONS
from .matrices import Changed


def intruders(matrix: Changed, directions: int, limit: float) -> dict[str, Any] | None:
    """Count directions whose largest |cosine| to any of the left's is below the limit.

    `share` is their part of the sum of all singular values; None where vectors were not taken.
    """
    sides = matrix.sides
    if sides is None or sides.alignment is None:
        return None
    cosines = sides.alignment.cosines[: min(directions, DIRECTIONS)]
    found = [at for at, cosine in enumerate(cosines) if cosine < limit]
    total = sum(sides.right_values)
    return {
        "count": len(found),
        "directions": len(cosines),
        "max_cosines": list(cosines),
        "share": sum(sides.right_values[at] for at in found) / total if total else None,
        "subspace_angle_degrees": degrees(acos(sides.alignment.subspace_cosine)),
    }
