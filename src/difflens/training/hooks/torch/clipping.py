"""What was done to gradients between backward and step: clipping, and the scale of the loss.

Clipping by norm multiplies all gradients by one factor: measured on one tensor, it undoes the
clipping of every other. Clipping by value, noise, or decay added by hand do not, and no look at
one tensor can undo them: the factor is then not known, and the run says so.
"""

from __future__ import annotations

import gc
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
    """Return the factor 1: nothing touched the gradients."""
    return Between(1.0, 0.0)


def unknown() -> Between | None:
    """Return None: the factor is not known."""
    return None


class Clipping:
    """What is known of the clipping of a loop; asked in the order of steps."""

    def __init__(self, on_uneven: Callable[[], None]) -> None:
        """Call `on_uneven` once if gradients are changed by more than one factor."""
        self._tell = on_uneven
        self._is_uneven = False
        self._last, self._was_constant = Between(1.0, 0.0), False
        self.is_blind = False  # was the gradient that is followed nothing but zeros?

    def between(self, left: Any, right: Any, kind: Any) -> Between | None:
        """Compare one gradient before and after, as doubles; None if it is not one factor.

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

    def clip_of(self, between: Between | None, largest: Any) -> float | None:
        """Return the clip factor; a constant one, as of accumulated steps, is no clipping.

        `largest` is each layer's largest magnitude. Where gradients were touched, and the one that
        is followed is as it was, two layers that end at the same height were cut there.
        """
        if between is None:
            return None
        if between.factor == 1.0:
            return None if between.slack and (self._is_uneven or _is_cut(largest)) else 1.0
        return 1.0 if self._is_constant(between) else between.factor

    def _is_constant(self, between: Between) -> bool:
        """Tell a factor that is one over a whole number, or the same for another gradient."""
        last, self._last = self._last, between
        room = between.slack * abs(1 / between.factor) if between.factor else 1.0
        if room < _COINCIDENCE and abs(1 / between.factor - round(1 / between.factor)) <= room:
            self._was_constant = True
        elif between.slack > _FINE or not _is_near(between.factor, last.factor, between.slack):
            self._was_constant = False
        elif not _is_near(between.squares, last.squares, 4 * between.slack):
            self._was_constant = True
        # The same factor for the same gradient tells nothing new: it stays what it was.
        return self._was_constant


def _is_near(left: float, right: float, slack: float) -> bool:
    return abs(left - right) <= slack * abs(left)


def _is_cut(largest: Any) -> bool:
    peak = largest.max(initial=0.0)
    return bool(peak > 0 and (largest == peak).sum() > 1)


class Scaling:
    """What is known of a GradScaler at work on an optimizer."""

    def __init__(self, scaler: Any = None) -> None:
        """Take the scaler that was handed in; without one it is looked for when needed."""
        self.scaler, self.is_sought = scaler, scaler is not None

    def look(self, optimizer: Any) -> None:
        """Find the scaler of an optimizer, once, at the first step.

        Nothing leads from an optimizer to its scaler, and unscaling leaves no mark on gradients,
        not even on their version counter; so all objects are looked through, some milliseconds.
        """
        self.is_sought = True
        for each in gc.get_objects():
            if type(each).__name__ == "GradScaler" and id(optimizer) in getattr(
                each, "_per_optimizer_states", ()
            ):
                self.scaler = each
                return

    def of(self, optimizer: Any) -> tuple[Any, bool] | None:
        """Return the scale, as a tensor, and whether the gradients still have it in them."""
        inside = getattr(optimizer, "grad_scale", None)
        if inside is not None:  # an optimizer that unscales within its own step
            return inside, True
        scaler = self.scaler
        if scaler is None or not scaler.is_enabled():
            return None
        scale = getattr(scaler, "_scale", None)
        states = getattr(scaler, "_per_optimizer_states", {})
        stage = states[id(optimizer)].get("stage") if id(optimizer) in states else None
        unscaled = getattr(stage, "name", "") in {"UNSCALED", "STEPPED"}
        return None if scale is None else (scale, not unscaled)

    def close(self) -> None:
        """Release the scaler."""
        self.scaler = None
