"""What was done to gradients between backward and step, told by a few of them before and after.

Clipping by norm multiplies all gradients by one factor: found on one tensor, it undoes the
clipping of every other. Clipping by value, noise, or decay added by hand do not, and no look at
one tensor can undo them: the factor is then not known, and the run says so.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, sqrt
from typing import Any, NamedTuple

_COINCIDENCE = 0.01  # how far from whole the inverse of a factor may be for want of digits
_NOTHING = 1e-37  # next to the smallest of 32 bits, which a processor may take for zero
_FINE = 1e-5  # slack from which on two factors are alike too easily


class Between(NamedTuple):
    """What one gradient shows of what was done to all."""

    factor: float  # that it was multiplied by
    slack: float  # how far the factor may be off, relatively; 0 where nothing was done
    squares: float = 0.0  # of the gradient before


def one() -> Between | None:
    """Promise that nothing touched the gradients."""
    return Between(1.0, 0.0)


def unknown() -> Between | None:
    """Promise nothing."""
    return None


class Clipping:
    """What is known of a loop's clipping; asked in the order of steps, on the recorder's thread."""

    def __init__(self, on_uneven: Callable[[], None]) -> None:
        """Take whom to tell, once, that gradients are changed by more than a factor."""
        self._tell = on_uneven
        self._is_uneven = False
        self._last, self._was_constant = Between(1.0, 0.0), False
        self.is_blind = False  # was the gradient that is followed nothing but zeros?

    def between(self, left: Any, right: Any, kind: Any) -> Between | None:
        """Compare one gradient before and after, as doubles; None where it is not one factor.

        `kind` is torch's account of the numbers they were kept in.
        """
        squares = float(left @ left)
        self.is_blind = squares == 0.0
        factor = float(left @ right) / squares if squares > 0 else float("nan")
        if not isfinite(factor) or not isfinite(squares):
            return None
        made = factor * left
        # Of two operations each rounds once; what is next to zero has fewer digits, or none.
        allowed = 4 * kind.eps * abs(made) + max(4 * kind.eps * kind.smallest_normal, _NOTHING)
        if (abs(right - made) > allowed).any():
            if not self._is_uneven:
                self._tell()
            self._is_uneven = True
            return None
        return Between(factor, kind.eps / sqrt(len(left)) + 3e-7, squares)

    def clip_of(self, found: Between | None, largest: Any) -> float | None:
        """Tell clipping from a constant factor, such as one over the steps accumulated.

        `largest` is each layer's largest magnitude. Where gradients were touched, and the one that
        is followed is as it was, two layers that end at the same height were cut there.
        """
        if found is None:
            return None
        if found.factor == 1.0:
            return None if found.slack and (self._is_uneven or _is_cut(largest)) else 1.0
        return 1.0 if self._is_constant(found) else found.factor

    def _is_constant(self, found: Between) -> bool:
        """Tell a factor that is one over a whole number, or the same for another gradient."""
        last, self._last = self._last, found
        room = found.slack * abs(1 / found.factor) if found.factor else 1.0
        if room < _COINCIDENCE and abs(1 / found.factor - round(1 / found.factor)) <= room:
            self._was_constant = True
        elif found.slack > _FINE or not _is_near(found.factor, last.factor, found.slack):
            self._was_constant = False
        elif not _is_near(found.squares, last.squares, 4 * found.slack):
            self._was_constant = True
        # The same factor for the same gradient tells nothing new: it stays what it was.
        return self._was_constant


def _is_near(left: float, right: float, slack: float) -> bool:
    return abs(left - right) <= slack * abs(left)


def _is_cut(largest: Any) -> bool:
    peak = largest.max(initial=0.0)
    return bool(peak > 0 and (largest == peak).sum() > 1)
