"""The sketch of a tensor: 1024 sums, from which its distance to another tensor is estimated.

Compiled where a compiler was, NumPy where not; both give the same bits. The sketch is linear: that
of right - left is the difference of both sketches, and its norm is that of right - left up to an
error of 1 / sqrt(2 * 1024), 2.2 % (docs/fingerprints.md). `add(data, form, row, table, sums)` adds
encoded elements; row r is elements 1024 r to 1024 r + 1023 of the tensor. `NAME` says which one is
at work.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._sketch import NAME, add
else:
    _chosen = "reference" if os.environ.get("DIFFLENS_KERNEL") == "numpy" else "_sketch"
    try:
        _sketch = import_module(f"{__name__}.{_chosen}")
    except ImportError:  # built without a compiler
        _sketch = import_module(f"{__name__}.reference")
    NAME, add = _sketch.NAME, _sketch.add

__all__ = ["BUCKETS", "NAME", "add"]

BUCKETS = 1024
