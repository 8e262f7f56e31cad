"""Causes away from the specification's table, by one who knew no rule: half of a report."""

from __future__ import annotations

from .controls import ODD_CONTROLS
from .faults import ODD_FAULTS

__all__ = ["ODD_CONTROLS", "ODD_FAULTS"]
