"""The hot loop: compiled where a compiler was, NumPy where not; both answer alike.

`scan(left, right, left_dtype, right_dtype, epsilon, state)` adds two encoded
buffers of as many elements to a state (see `layout`); `merge(state, other)`
adds the state of the elements that follow; `same_bytes(left, right)` compares
bytes; `scan_files` reads the elements itself where they lie as plain bytes in open
files. All release the GIL. `NAME` says which kernel is at work.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._scan import NAME, merge, same_bytes, scan, scan_files
else:
    _chosen = "reference" if os.environ.get("DIFFLENS_KERNEL") == "numpy" else "_scan"
    try:
        _kernel = import_module(f"{__name__}.{_chosen}")
    except ImportError:  # built without a compiler
        _kernel = import_module(f"{__name__}.reference")
    NAME, merge, same_bytes, scan, scan_files = (
        getattr(_kernel, name) for name in ("NAME", "merge", "same_bytes", "scan", "scan_files")
    )

__all__ = ["NAME", "merge", "same_bytes", "scan", "scan_files"]
