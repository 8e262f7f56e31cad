"""Makes or reads the fingerprint of what a command names, with a progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflens.diffs.fingerprints.records import Fingerprint


def fingerprint_of(
    model: str,
    form: str | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> Fingerprint:
    """Return the fingerprint of a model, or the one that the file holds."""
    from difflens.diffs.fingerprints.sides import open_side
    from difflens.engines.threads import Threads

    from ._output import warn
    from ._progress import progress_bar

    side = open_side(model, form, limits)
    engine = Threads(threads)
    try:
        with progress_bar(side.info.size_bytes) as bar:
            fingerprint = side.read(engine, bar)
    finally:
        engine.close()
        side.close()
    for warning in side.warnings:
        warn(warning)
    return fingerprint
