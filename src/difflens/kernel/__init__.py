"""The hot loop: compiled where a compiler was, NumPy where not; both answer alike.

`scan(left, right, left_dtype, right_dtype, epsilon, state)` adds two encoded
buffers of as many elements to a state (see `layout`); `merge(state, other)`
adds the state of the elements that follow; `same_bytes(left, right)` compares
bytes; `scan_files` reads the elements itself where they lie as plain bytes in open
files; `read(table, out)` takes one look at tensors in memory. All release the GIL, the last
where the tensors are large. `NAME` says which kernel is at work.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._scan import NAME, merge, read, same_bytes, scan, scan_files
else:
    _chosen = "reference" if os.environ.get("DIFFLENS_KERNEL") == "numpy" else "_scan"
    _names = ("NAME", "merge", "read", "same_bytes", "scan", "scan_files")
    try:
        _kernel = import_module(f"{__name__}.{_chosen}")
        _made = [getattr(_kernel, name) for name in _names]
    except (ImportError, AttributeError):  # built without a compiler, or by an older version
        _kernel = import_module(f"{__name__}.reference")
        _made = [getattr(_kernel, name) for name in _names]
    NAME, merge, read, same_bytes, scan, scan_files = _made

__all__ = ["NAME", "merge", "read", "same_bytes", "scan", "scan_files"]
