"""The hot loop: compiled where a compiler was, NumPy where not; both answer alike.

`scan(left, right, left_dtype, right_dtype, epsilon, state)` adds two encoded
buffers of as many elements to a state (see `layout`); `merge(state, other)`
adds the state of the elements that follow; `same_bytes(left, right)` compares
bytes. All release the GIL. `NAME` says which kernel is at work.
"""

import os

if os.environ.get("DIFFLENS_KERNEL") == "numpy":  # for tests and for mistrust
    from .reference import NAME, merge, same_bytes, scan
else:
    try:
        from ._scan import NAME, merge, same_bytes, scan
    except ImportError:  # built without a compiler
        from .reference import NAME, merge, same_bytes, scan

__all__ = ["NAME", "merge", "same_bytes", "scan"]
