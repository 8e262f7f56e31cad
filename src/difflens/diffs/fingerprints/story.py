"""The story of a diff in which fingerprints may stand for models: are there any?

Every diff begins here, so what fingerprints need is imported once there is one.
"""

from __future__ import annotations

from typing import Any

from difflens.models.opening import Model

from .. import story
from ..diff import Diff
from .recognise import has_fingerprint


def diff(left: Model, right: Model, *, exact: bool = False, **options: Any) -> Diff:
    """Compare two models, of which each may be the path of a fingerprint.

    Distances from a fingerprint are estimates; with `exact`, models are read where hashes differ.
    `options` are those of `story.diff`, which compares two models that are at hand.
    """
    if not has_fingerprint(left, right):
        return story.diff(left, right, **options)
    from .estimated import diff_estimated

    return diff_estimated(left, right, exact=exact, **options)
