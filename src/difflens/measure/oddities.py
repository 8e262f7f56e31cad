"""Values that are legal, strange, and worth a warning."""

from __future__ import annotations

from ..records import Delta
from .scan import Scan


def oddity(delta: Delta) -> str | None:
    """Say what is odd about a tensor's values, if anything is."""
    scan = delta.measured(Scan)
    odd = (
        scan.left_odd + (scan.right_odd if delta.pair.left and delta.pair.right else 0)
        if scan
        else 0
    )
    if not odd:
        return None
    return f"{delta.name}: {odd} BOOL bytes are neither 0 nor 1, and count as true"
