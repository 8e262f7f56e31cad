"""Writes the patch that turns the bad model into one that passes."""

from __future__ import annotations

from pathlib import Path

from ..create import make
from ..gathered import Side
from ..layout import layout_of
from ..records import PatchSummary
from .hybrids import HybridSource, Models
from .pieces import Selection


def write_repair(
    models: Models, pieces: Selection, bad: Path | None, path: Path, threads: int | None
) -> PatchSummary:
    """Write a patch from the bad model to the one that has these pieces of the good model."""
    base, is_native = layout_of(models.bad, bad)
    target = HybridSource(models, pieces)
    plain = all(models.changes[piece.name].is_plain for piece in pieces)
    layout = base if plain else layout_of(target, None)[0]
    left = Side(models.bad, base, is_native, "BAD")
    right = Side(target, layout, is_native and plain, "repaired")
    return make(left, right, path, way_back="auto", threads=threads, digests=True)
