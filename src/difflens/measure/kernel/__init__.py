"""The hot loop: compiled where a compiler was, NumPy where not; both fill the same bytes.

`scan(left, right, left_dtype, right_dtype, epsilon, state)` adds two encoded
buffers of as many elements to a state (see `layout`); `merge(state, other)`
adds the state of the elements that follow; `same_bytes(left, right)` compares
bytes; `scan_files` reads the elements itself where they lie as plain bytes in open
files; `read(table, out)` takes one look at tensors in memory, `read_gradients` and `read_weights`
at those of a framework, which they ask where they lie; `are_as_read` tells whether anything
touched these since, and `bytes_of` copies the first bytes of one. What scans releases the GIL,
what reads does where the tensors are large. `NAME` says which kernel is at work.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._scan import (
        NAME,
        are_as_read,
        bytes_of,
        merge,
        read,
        read_gradients,
        read_weights,
        same_bytes,
        scan,
        scan_files,
    )
else:
    _chosen = "reference" if os.environ.get("DIFFLENS_KERNEL") == "numpy" else "_scan"
    _names = ("NAME", "merge", "same_bytes", "scan", "scan_files")
    _names += ("are_as_read", "bytes_of", "read", "read_gradients", "read_weights")
    try:
        _kernel = import_module(f"{__name__}.{_chosen}")
        _made = [getattr(_kernel, name) for name in _names]
    except (ImportError, AttributeError):  # built without a compiler, or by an older version
        _kernel = import_module(f"{__name__}.reference")
        _made = [getattr(_kernel, name) for name in _names]
    NAME, merge, same_bytes, scan, scan_files, *_reading = _made
    are_as_read, bytes_of, read, read_gradients, read_weights = _reading

__all__ = [
    "NAME",
    "are_as_read",
    "bytes_of",
    "merge",
    "read",
    "read_gradients",
    "read_weights",
    "same_bytes",
    "scan",
    "scan_files",
]
