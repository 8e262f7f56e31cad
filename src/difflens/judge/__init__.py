"""Policy in, verdict out."""

from .report import report
from .verdict import verdict

__all__ = ["report", "verdict"]
