"""Says something to the person at the terminal without ever breaking what runs."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress


def warn(text: str) -> None:
    """Warn; where warnings are errors, write it down instead of raising it into a loop."""
    try:
        warnings.warn(f"difflens: {text}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        with suppress(OSError, ValueError, AttributeError):  # nobody may be there to read it
            sys.stderr.write(f"difflens: {text}\n")
