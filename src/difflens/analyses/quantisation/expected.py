"""What rounding to nearest should cost: signal-to-noise in dB by scheme and shape of the weights.

Simulated on 1024² weights without calibration (methods 7.3, ±0.05 dB). GPTQ and AWQ minimise the
error of outputs, not of weights, so no row of this table is theirs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Kurtosis of the shapes: uniform 1.8, Gaussian 3, Laplace 6; a t with 4 degrees has no finite one.
# Borders lie half-way between neighbours on a logarithmic scale.
_BORDERS = (("uniform", 2.3238), ("gaussian", 4.2426), ("laplace", 9.0))
_HEAVIEST = "t4"


class Row(NamedTuple):
    """Decibels to expect of one scheme."""

    gaussian: float
    laplace: float
    uniform: float
    t4: float


TABLE: dict[str, Row] = {
    "BF16": Row(55.6, 55.6, 55.1, 55.6),
    "F16": Row(73.7, 73.7, 73.2, 73.7),
    "Q8_0": Row(45.4, 43.4, 48.5, 42.7),
    "Q5_0": Row(27.4, 25.4, 30.1, 24.8),
    "Q5_1": Row(28.4, 27.1, 30.6, 26.9),
    "Q4_0": Row(21.3, 19.4, 23.7, 18.7),
    "Q4_1": Row(22.1, 20.8, 24.3, 20.6),
    "MXFP4": Row(18.9, 18.0, 18.4, 17.6),
    "int8 per row": Row(42.1, 38.2, 48.1, 34.8),
    "int8 per tensor": Row(38.9, 32.2, 48.1, 20.3),
    "int4 g128": Row(18.6, 15.9, 23.0, 14.3),
    "int4 asymmetric g128": Row(20.0, 17.7, 23.7, 16.8),
    "int4 per row": Row(16.9, 13.2, 22.9, 10.0),
    "int4 per tensor": Row(13.7, 7.6, 22.9, 0.9),
    "NF4": Row(20.7, 19.7, 20.8, 19.1),
}
# What the readers call a scheme, and the row that is its own.
_ROWS = {
    "bitsandbytes int8": "int8 per row",
    "int8 scaled by row": "int8 per row",
    "int8 scaled by tensor": "int8 per tensor",
    "compressed-tensors int8": "int8 per row",
    "compressed-tensors int4 g128": "int4 g128",
    "compressed-tensors int4": "int4 per row",
    "bitsandbytes nf4": "NF4",
    "bitsandbytes nf4, double quantised": "NF4",
}
_CALIBRATED = re.compile(r"GPTQ|AWQ")


def is_calibrated(scheme: str) -> bool:
    """Does the scheme minimise the error of outputs, so that weights tell nothing of its quality?

    >>> is_calibrated("GPTQ int4 g128"), is_calibrated("Q4_0")
    (True, False)
    """
    return bool(_CALIBRATED.match(scheme))


def shape_of(kurtosis: float) -> str:
    """Name the distribution whose kurtosis is nearest, on a logarithmic scale.

    >>> shape_of(3.1), shape_of(6.2), shape_of(40.0)
    ('gaussian', 'laplace', 't4')
    """
    return next((name for name, border in _BORDERS if kurtosis < border), _HEAVIEST)


def expected_db(scheme: str, kurtosis: float | None) -> float | None:
    """Give the decibels to expect; None where the table has no row or the kurtosis is unknown.

    >>> expected_db("Q4_0", 3.0)
    21.3
    """
    row = TABLE.get(_ROWS.get(scheme, scheme))
    if row is None or kurtosis is None:
        return None
    return float(getattr(row, shape_of(kurtosis)))
