"""Numbers in, verdict out: rows, totals, one sentence, and the report that holds them."""

from .conversion import judge_conversion
from .report import Tally, judge, row
from .verdict import verdict

__all__ = ["Tally", "judge", "judge_conversion", "row", "verdict"]
