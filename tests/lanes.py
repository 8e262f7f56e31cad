"""How much a property test tries: least in make check, most in make search."""

import os

from hypothesis import settings

QUICK = bool(os.environ.get("DIFFLENS_QUICK"))  # set by `make check`
SEARCHES = bool(os.environ.get("DIFFLENS_SEARCH"))  # set by `make search`
USUAL = int(os.environ.get("DIFFLENS_EXAMPLES") or (600 if SEARCHES else 5 if QUICK else 30))


def examples(count: int) -> settings:
    """Ask for another number of examples than usual: ten times as many where they are searched."""
    return settings(max_examples=count * 10 if SEARCHES else min(count, 5) if QUICK else count)
