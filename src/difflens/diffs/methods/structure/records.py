"""Records of what changes of structure explain: their tensors, and their part of the distance."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, isfinite
from typing import TYPE_CHECKING, Any

from difflens.core.records import MOVED, Delta
from difflens.measure.scan import Scan
from difflens.models.anatomy.places import where
from difflens.models.anatomy.roles import is_parameter

from ...diff import Diff
from ..changes.energy import moved_parameters
from ..changes.explained import Explained

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BF16 = 2**-8  # of a value: what rounding or cutting off to BF16 moves it by
_F16 = 2**-24  # and what it does to the smallest numbers of F16
_LEAST = 64  # elements that speak of a correlation
_KEPT = 0.5


def name_of(delta: Delta) -> str:
    """Return the name on the left, or the name on the right where only the right has it."""
    info = delta.pair.left or delta.pair.right
    return info.name if info else ""


def energies(diff: Diff) -> dict[str, float]:
    """Return ‖right - left‖² of each parameter that moved, by its name on the left."""
    found: dict[str, float] = diff.remember(
        "structure: energies",
        lambda: {name_of(each.delta): each.scan.square_sum for each in moved_parameters(diff)},
    )
    return found


def share_of(diff: Diff, names: Iterable[str], rest: float = 0.0) -> float | None:
    """Return the part of the whole distance that these tensors hold, less what is `rest` of it."""
    energy = energies(diff)
    whole = fsum(energy.values())
    if not (whole > 0 and isfinite(whole)):
        return None
    inside = [energy[name] for name in set(names) if name in energy]
    return max(0.0, fsum(inside) - rest) / whole if inside else None


def explained(
    diff: Diff,
    kind: str,
    names: Iterable[str],
    text: str,
    numbers: dict[str, Any],
    *,
    rest: float = 0.0,
    place: str | None = None,
) -> Explained:
    """Make a record; `rest` is what of ‖right - left‖² it leaves in its tensors."""
    chosen = list(dict.fromkeys(names))
    located = where(chosen) if place is None and chosen else place or ""
    share = share_of(diff, chosen, rest)
    return Explained(kind, chosen, len(diff.deltas), located, share, numbers, text)


def counted(number: int, word: str) -> str:
    """Write a number and its noun: `1 row`, `30,522 rows`."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def is_rounded(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Did nothing move by more than storing it as BF16 or F16 moves it?"""
    import numpy as np

    return bool((np.abs(after - before) <= _BF16 * np.abs(before) + _F16).all())


def moved_text(relative: float, *, rounded: bool) -> str:
    """Say in brackets how far what is left moved."""
    if rounded:
        return " (what is left moved by rounding only)"
    return f" (what is left moved: relative L2 {relative:.2g})"


def is_related(diff: Diff) -> bool:
    """Is some matrix still what it was? Nothing that strangers lack or add is a change."""
    found: bool = diff.remember("structure: related", lambda: any(map(_is_kept, diff.deltas)))
    return found


def _is_kept(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    if not (left and right) or not is_parameter(delta.name, left.dtype, right.dtype):
        return False
    if len(left.shape) < 2 or left.count < _LEAST:
        return False
    if delta.kind == "identical":
        return True
    scan = delta.measured(Scan) if delta.kind in MOVED else None
    return scan is not None and (scan.pearson or 0.0) > _KEPT
