"""The codec of patches: compiled where a compiler was, NumPy where not; both write the same bytes.

`encode(base, target, kind, back)` codes a chunk of a tensor against the chunk of another one, or
alone where the base is None; no bytes are the answer where both are the same. `kind` is how a word
is read: its width in bytes, the bits of its mantissa and of its exponent (0 for integers). `back`
says whether the chunk shall also lead from the target to the base: NEVER, CHEAP (where that adds a
tenth at most) or ALWAYS. `decode(data, base, out, kind, backwards)` fills `out`, and raises
ValueError for data that `encode` did not write. `scale` and `add_product` predict what a chunk has
become, the same bits on every machine: a product with a factor, a sum with the product of two
matrices of F64. `crc32c(data, before)` is the checksum. `NAME` says
which codec is at work.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._codec import NAME, add_product, crc32c, decode, encode, scale
else:
    _chosen = "reference" if os.environ.get("DIFFLENS_KERNEL") == "numpy" else "_codec"
    try:
        _codec = import_module(f"{__name__}.{_chosen}")
    except ImportError:  # built without a compiler
        _codec = import_module(f"{__name__}.reference")
    NAME, crc32c, decode, encode = (
        getattr(_codec, name) for name in ("NAME", "crc32c", "decode", "encode")
    )
    add_product, scale = _codec.add_product, _codec.scale

__all__ = ["ALWAYS", "CHEAP", "NAME", "NEVER", "add_product", "crc32c", "decode", "encode", "scale"]

NEVER, CHEAP, ALWAYS = range(3)
