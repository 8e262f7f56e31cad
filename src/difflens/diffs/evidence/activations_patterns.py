"""How differently two models attend: divergence, sink mass and entropy, query by query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import TYPE_CHECKING, Any

from .records import Patterns

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pairs = Callable[[], Iterator[tuple[dict[str, "NDArray[Any]"], dict[str, "NDArray[Any]"]]]]


def gathered(examples: Pairs) -> Patterns | None:
    """Compare the attention of both sides example by example; None if a side gave none.

    The ceiling compares left with left on the next example that has as many positions.
    """
    figures: list[dict[str, Any]] = []
    seen: list[NDArray[Any]] = []  # the first and the last: more would not fit in memory
    first_rows = queries(None, 1)
    for left, right in examples():
        before, after = left.get("attentions"), right.get("attentions")
        if before is None or after is None or before.shape != after.shape or before.ndim != 4:
            return None
        rows = queries(left.get("mask"), before.shape[2])
        if not rows.any():
            return None
        found = _figures(before, after, left.get("cast"), rows)
        if seen and seen[-1].shape == before.shape:
            found["ceiling"] = jensen_shannon(seen[-1], before)[..., rows].mean(-1)
        first_rows = first_rows if seen else rows
        figures.append(found)
        seen = [*seen[:1], before]
    if len(seen) > 1 and seen[0].shape == seen[1].shape:
        figures[0]["ceiling"] = jensen_shannon(seen[1], seen[0])[..., first_rows].mean(-1)
    return _stacked(figures) if figures else None


def jensen_shannon(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the Jensen-Shannon divergence over ln 2, between 0 and 1, over the last axis.

    JS(p, q) = H((p + q)/2) - (H(p) + H(q))/2 (Lin 1991).
    """
    import numpy as np

    p, q = left.astype(np.float64), right.astype(np.float64)
    middle = entropy((p + q) / 2)
    return np.asarray(np.clip((middle - (entropy(p) + entropy(q)) / 2) / log(2), 0.0, 1.0))


def entropy(shares: NDArray[Any]) -> NDArray[Any]:
    """Return the entropy in nats over the last axis; a share of 0 adds nothing."""
    import numpy as np

    safe = np.where(shares == 0, 1, shares)
    with np.errstate(invalid="ignore"):
        return np.asarray(-(safe * np.log(safe)).sum(-1) + 0.0)


def queries(mask: NDArray[Any] | None, count: int) -> NDArray[Any]:
    """Say which positions count: no padding, and not the first, which can look at itself only."""
    import numpy as np

    kept = np.ones(count, bool)
    if mask is not None and mask.size == count:
        kept = mask.reshape(count).astype(bool)
    first = int(np.argmax(kept)) if kept.any() else 0
    kept = kept.copy()
    kept[first] = False
    return kept


def _figures(
    left: NDArray[Any], right: NDArray[Any], cast: NDArray[Any] | None, rows: NDArray[Any]
) -> dict[str, Any]:
    """Return means over the queries that count, by layer and head."""
    first = int(rows.argmax()) - 1  # the position before the first query: where the sink is
    found: dict[str, Any] = {"js": jensen_shannon(left, right)[..., rows].mean(-1)}
    for name, side in (("left", left), ("right", right)):
        found[f"{name}_sink"] = side[..., rows, first].mean(-1)
        found[f"{name}_entropy"] = entropy(side.astype(float))[..., rows].mean(-1)
    if cast is not None and cast.shape == left.shape:
        found["floor"] = jensen_shannon(left, cast)[..., rows].mean(-1)
    return found


def _stacked(figures: list[dict[str, Any]]) -> Patterns | None:
    import numpy as np

    names = set(figures[0]).intersection(*figures)
    arrays = {
        name: np.stack([each[name] for each in figures])
        for name in names
        if len({each[name].shape for each in figures}) == 1
    }
    usable = {name: array for name, array in arrays.items() if np.isfinite(array).all()}
    wanted = {"js", "left_sink", "right_sink", "left_entropy", "right_entropy"}
    return Patterns(**usable) if wanted <= set(usable) else None
