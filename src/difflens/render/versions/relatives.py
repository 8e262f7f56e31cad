"""The layout of `difflens find`."""

from __future__ import annotations

from difflens.versions.records.relatives import Relative, Relatives

from ..document.document import Document, Name, part, table
from ..document.numbers import percent, plural, scientific

_HEADS = ("model", "relative_l2", "same", "moved", "lacking", "further", "parameters shared",
          "architecture")  # fmt: skip


def relatives(found: Relatives) -> Document:
    """Lay out the relatives, the nearest first."""
    rows = table(_HEADS, map(_row, found.relatives))
    searched = f"{found.searched:,} recorded {'model' if found.searched == 1 else 'models'}"
    beside = f"; {found.unsearched:,} have no fingerprint" if found.unsearched else ""
    number = plural(len(found.relatives), "relative")
    said = f"{number} among {searched}" if found.relatives else f"no relative among {searched}"
    return Document(
        "find",
        f"the nearest relatives of {found.model}",
        f"{said}{beside}",
        "Found",
        "plain",
        tuple(part("Relatives", rows=rows)),
    )


def _row(each: Relative) -> tuple[str, ...]:
    error = f" ±{percent(each.estimated_error)}" if each.estimated_error else ""
    distance = "unknown" if each.relative_l2 is None else scientific(each.relative_l2)
    return (
        Name(each.key),
        f"~{distance}{error}" if error else distance,
        str(each.same),
        str(each.moved),
        str(each.lacking),
        str(each.further),
        percent(each.shared),
        "same" if each.same_architecture else "another",
    )
