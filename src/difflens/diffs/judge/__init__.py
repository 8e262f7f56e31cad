"""Numbers in, verdict out: rows, totals, one sentence, and the report that holds them."""

from .packed_rows import PackedRows
from .report import Tally, judge, row
from .verdict import verdict

__all__ = ["PackedRows", "Tally", "judge", "row", "verdict"]
