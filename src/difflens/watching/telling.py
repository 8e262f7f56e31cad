"""Says something to the person at the terminal without ever breaking what runs."""

from __future__ import annotations

import sys
import warnings


def warn(text: str) -> None:
    """Warn; where warnings are errors, write it down instead of raising it into a loop."""
    try:
        warnings.warn(f"difflens: {text}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        try:
            sys.stderr.write(f"difflens: {text}\n")
        except (OSError, ValueError, AttributeError):
            pass  # nobody is there to read it
