"""Policy in, verdict out."""

from .report import report, row
from .verdict import verdict

__all__ = ["report", "row", "verdict"]
