"""Numbers in, verdict out: rows, totals, one sentence, and the report that holds them."""

from .report import Tally, judge, row
from .verdict import verdict

__all__ = ["Tally", "judge", "row", "verdict"]
