"""How the outputs of two models differ on the same example."""

from __future__ import annotations

from math import fsum, isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IGNORED = -100  # the label of what is not to be predicted, by habit of the field


class Compared:
    """Figures of outputs, gathered example by example."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._figures: list[dict[str, float]] = []

    def take(self, figures: dict[str, float]) -> None:
        """Add one example's."""
        self._figures.append(figures)

    @property
    def output_error(self) -> float | None:
        """‖R - L‖ / ‖L‖ over all examples; None where nothing finite can be compared."""
        if not all("moved" in each for each in self._figures):
            return None
        size = fsum(each["size"] for each in self._figures)
        error = fsum(each["moved"] for each in self._figures)
        return float((error / size) ** 0.5) if size > 0 and isfinite(error / size) else None

    def whole(self, name: str) -> tuple[float, ...] | None:
        """Give a figure of every example; None where one has none."""
        known = tuple(each[name] for each in self._figures if name in each)
        return known if known and len(known) == len(self._figures) else None

    def correct(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Give the share of right predictions by example, left and right."""
        left, right = self.whole("left_correct"), self.whole("right_correct")
        return (left, right) if left is not None and right is not None else None


def compared(left: dict[str, NDArray[Any]], right: dict[str, NDArray[Any]]) -> dict[str, float]:
    """Compare one example's outputs, as numbers and as predictions over their last axis."""
    import numpy as np

    before, after = left.get("outputs"), right.get("outputs")
    if before is None or after is None or before.shape != after.shape or not before.size:
        return {}
    one, other = before.astype(np.float64), after.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return {}
    found = {"size": float((one**2).sum()), "moved": float(((other - one) ** 2).sum())}
    if one.ndim < 2 or one.shape[-1] < 2:
        return found
    kept = _kept(left.get("mask"), one.shape[:-1])
    if not kept.any():
        return found
    guesses = one.argmax(-1), other.argmax(-1)
    found["kl"] = float(kl(one, other)[kept].mean())
    found["agreement"] = float((guesses[0] == guesses[1])[kept].mean())
    labels = left.get("labels")
    if labels is not None and labels.shape == guesses[0].shape and labels.dtype.kind in "iu":
        asked = labels != _IGNORED
        if asked.any():
            for name, guess in zip(("left_correct", "right_correct"), guesses, strict=True):
                found[name] = float((guess == labels)[asked].mean())
    return found


def kl(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Give KL(p ‖ q) = Σ p ln(p/q) in nats of the distributions two rows of logits stand for."""
    import numpy as np

    p, q = _log_softmax(left), _log_softmax(right)
    return np.asarray(np.maximum((np.exp(p) * (p - q)).sum(-1), 0))


def _log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _kept(mask: NDArray[Any] | None, shape: tuple[int, ...]) -> NDArray[Any]:
    import numpy as np

    if mask is None or mask.shape != shape:
        return np.ones(shape, bool)
    return np.asarray(mask.astype(bool))
