"""The layout of a scan's state: 8-byte integers, then 8-byte floats, in native order.

The state is a monoid kept in plain bytes: all zeros is "nothing seen yet",
`kernel.scan` adds elements to it, `kernel.merge` adds another state that saw the
elements that follow. C and NumPy share it; `scan.h` draws the same order.

One scan, and scans that continue each other in steps of whole blocks, fill the same bytes.
"""

import struct

BLOCK = 8192  # elements (C64: parts), counted from where the state began

_SIDE_COUNTS = ("nan", "positive_infinite", "negative_infinite", "zeros", "odd")
_SIDE_VALUES = ("min", "max", "mean", "m2", "m3", "m4", "abs_sum")

COUNTS = (
    "count",  # elements seen (C64: its parts)
    *(f"left_{name}" for name in _SIDE_COUNTS),  # odd: BOOL bytes that are neither 0 nor 1
    *(f"right_{name}" for name in _SIDE_COUNTS),
    "pairs",  # elements finite on both sides; the paired figures are about these
    "bit_equal",  # same bits; across dtypes: same value and sign, or both NaN
    "value_equal",  # equal as numbers: -0 = 0, inf = inf, NaN equals nothing
    "over_epsilon",  # moved by more than epsilon, or not finite on both sides alike
    "over_rounding",  # moved by more than half a unit in the last place of the coarser format
    "sign_flips",
    "max_abs_at",  # where max_abs is first reached, counted in elements from the start
)
VALUES = (
    *(f"left_{name}" for name in _SIDE_VALUES),  # over the finite values; m2..m4: sums of powers
    *(f"right_{name}" for name in _SIDE_VALUES),  # about the mean
    "pair_left_mean",
    "pair_right_mean",
    "pair_left_m2",
    "pair_right_m2",
    "comoment",  # sum of (left - its mean) * (right - its mean)
    "max_abs",  # of right - left
    "abs_sum",
    "square_sum",
)
FIELDS = COUNTS + VALUES
STATE = struct.Struct(f"={len(COUNTS)}q{len(VALUES)}d")
