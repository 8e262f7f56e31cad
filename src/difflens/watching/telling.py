"""Says something to the person at the terminal without ever breaking what runs."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress

from ..escape import for_terminal
from ..runs import RunFinding


def warn(text: str) -> None:
    """Warn; where warnings are errors, write it down instead of raising it into a loop."""
    try:
        warnings.warn(f"difflens: {text}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        with suppress(OSError, ValueError, AttributeError):  # nobody may be there to read it
            sys.stderr.write(f"difflens: {text}\n")


def log(finding: RunFinding, run: str) -> None:
    """Write a finding to the log called `difflens`; unless told otherwise, Python shows it."""
    import logging

    since = "" if finding.since_step is None else f" since step {finding.since_step}"
    text = f"{finding.severity}: {finding.name}{since}: {finding.text} (difflens diagnose {run})"
    level = logging.ERROR if finding.severity == "critical" else logging.WARNING
    with suppress(Exception):  # a handler of the user's may fail in any way
        logging.getLogger("difflens").log(level, "%s", for_terminal(text, 1000))
