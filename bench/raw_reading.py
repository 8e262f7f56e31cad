"""Reads addresses through difflens's own client and looks at nothing: the same bytes, no diff.

Usage: DIFFLENS_ALLOW_HTTP=1 raw_reading.py URL...
"""

from __future__ import annotations

import sys
from itertools import chain

from difflens.core.addresses import locate
from difflens.core.protocols import Extent
from difflens.storage import places
from difflens.storage.read_ahead import read_ahead

_PART = 8 << 20


def main() -> None:
    """Fetch every byte of every address, and copy it once."""
    files = [places.open_file(locate(each)) for each in sys.argv[1:]]
    parts = chain.from_iterable(
        (Extent(file, start, min(start + _PART, file.size)) for start in range(0, file.size, _PART))
        for file in files
    )
    buffer = memoryview(bytearray(_PART))
    for part in read_ahead(parts, lambda part: [part]):
        part.file.read_into(part.start, buffer[: part.stop - part.start])


if __name__ == "__main__":
    main()
