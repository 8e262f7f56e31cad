"""Makes or reads the fingerprint of what a command names, with a progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflens.diffs.fingerprints.records import Fingerprint


def read_or_make(
    model: str,
    form: str | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> Fingerprint:
    """Return the fingerprint of a model, or the one that the file holds."""
    from difflens.diffs.fingerprints.sides import fingerprint_of, open_side

    from ._output import warn
    from ._progress import progress_bar

    side = open_side(model, form, limits)
    with progress_bar(side.info.size_bytes) as bar:
        fingerprint = fingerprint_of(side, threads, bar)
    for warning in side.warnings:
        warn(warning)
    return fingerprint
