"""`python -m zoo.changes.fresh_check`: hold the fresh labels against the numbers, with NumPy alone.

What `heldback_check` looks at is looked at here too, and the kinds that it passes over: shapes,
layers, folds, rescalings, rotations, merges, and what lies beside the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .fresh import PAIRS
from .heldback_check import CHECKS, both, check, range_of
from .model import Array, Arrays, Model, as_float, is_float, rounded
from .pairs import Built, Expected

_ROUNDED = 6e-3  # the unit in the last place of BF16, relative


def _close(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(
        np.abs(one - other).max(initial=0) <= _ROUNDED * np.abs(one).max(initial=0)
    )


def _is_zero(built: Built, each: Expected) -> Iterator[str]:
    for name, _, right in both(built, each):
        if right.any():
            yield f"{name} is not zero"


def _has_rows(built: Built, each: Expected) -> Iterator[str]:
    """Shared rows stay, up to what training and a cast make of them; the counts are right."""
    before, after = int(range_of(each, "from")[0]), int(range_of(each, "to")[0])
    for name, left, right in both(built, each):
        if (len(left), len(right)) != (before, after):
            yield f"{name} has {len(left)} and {len(right)} rows"
        shared = min(before, after)
        if not _close(left[:shared], right[:shared]):
            yield f"{name}: shared rows differ"


def _is_destroyed(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(right).all() and np.abs(right).max() < 1e3 * np.abs(left).max():
                yield f"{name} holds ordinary numbers"


def _is_rescaled(built: Built, each: Expected) -> Iterator[str]:
    """Divide one side by the other: the ratio is one number for each channel."""
    for name, left, right in both(built, each):
        ratio = np.where(left != 0, right / np.where(left != 0, left, 1), np.nan)
        spreads = [
            np.nanmax(np.nanstd(np.moveaxis(ratio, at, 0).reshape(ratio.shape[at], -1), axis=1))
            for at in range(ratio.ndim)
        ]
        if min(spreads) > 1e-3:
            yield f"{name}: the ratio varies by {min(spreads):.1e} in a channel"


def _is_turned(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        one, other = (np.linalg.svd(side, compute_uv=False) for side in (left, right))
        if not np.allclose(one, other, rtol=1e-4, atol=1e-5 * one[0]):
            yield f"{name} has other singular values"


def _is_combined(built: Built, each: Expected) -> Iterator[str]:
    """What moved lies in the span of what the other models differ by from the left one."""
    for name, left, right in both(built, each):
        others = [as_float(model.tensors[name]) - left for model in built.evidence.values()]
        if each.kind == "slerp":  # an arc leaves the chord
            others.append(left)
        if not others or not (right - left).any():
            continue
        span = np.stack([each.ravel() for each in others], 1)
        rest = np.linalg.lstsq(span, (right - left).ravel(), rcond=None)[1]
        moved = float(((right - left) ** 2).sum())
        rounding = float(((np.abs(left) * 2.0**-8) ** 2).sum())
        if rest.size and rest[0] > 1e-4 * moved + rounding:
            yield f"{name}: {rest[0] / moved:.1e} of the change is of no model"


def _is_other_config(built: Built, each: Expected) -> Iterator[str]:
    keys = str(each.numbers.get("keys", ""))
    left, right = built.left.config or {}, built.right.config or {}
    for key in keys.split(",") if keys else ():
        if key not in left or left[key] == right.get(key):
            yield f"{key} is {left.get(key)} and {right.get(key)}"


def _is_other_tokens(built: Built, each: Expected) -> Iterator[str]:  # noqa: ARG001
    if built.left.tokens == built.right.tokens:
        yield "the tokens are the same"


def _is_other_state(built: Built, each: Expected) -> Iterator[str]:
    if each.optional:
        return
    if built.left.state is None or built.left.state is built.right.state:
        yield "there is no other state"
    if [label.kind for label in built.expected] == ["state_changed"] and each.names is None:
        yield from _same_weights(built)


def _same_weights(built: Built) -> Iterator[str]:
    for name, array in built.left.tensors.items():
        if array.tobytes() != built.right.tensors[name].tobytes():
            yield f"{name} moved"


def _is_there(built: Built, each: Expected) -> Iterator[str]:
    wanted = (False, True) if each.kind == "tensors_added" else (True, False)
    for name in each.names or ():
        if (name in built.left.tensors, name in built.right.tensors) != wanted:
            yield f"{name} is on the wrong side"


def _pool(model: Model) -> dict[tuple[int, ...], list[Array]]:
    pool: dict[tuple[int, ...], list[Array]] = {}
    for array in model.tensors.values():
        pool.setdefault(array.shape, []).append(as_float(array))
    return pool


def _has_layers(built: Built, each: Expected) -> Iterator[str]:
    """Every tensor of the right is one of the left, up to its storage, unless it was trained."""
    if any(label.kind == "trained" for label in built.expected):
        return
    pool, fresh = _pool(built.left), 0
    for name, array in built.right.tensors.items():
        twins = pool.get(array.shape, [])
        if not any(_close(as_float(array), twin) for twin in twins):
            fresh += 1
            if each.kind != "layers_added" or name in built.left.tensors:
                yield f"{name} is of no layer of the left"
    more = len(built.right.tensors) - len(built.left.tensors)
    signs = {"layers_removed": -1, "layers_duplicated": 1, "layers_added": 1}
    if np.sign(more) != signs.get(each.kind, 0):
        yield f"{more} more tensors"


def _has_fewer(built: Built, each: Expected) -> Iterator[str]:
    before, after = (int(range_of(each, key)[0]) for key in ("from", "to"))
    for name, left, right in both(built, each):
        axes = [at for at in range(left.ndim) if left.shape[at] != right.shape[at]]
        if len(axes) != 1 or left.shape[axes[0]] * after != right.shape[axes[0]] * before:
            yield f"{name} went from {left.shape} to {right.shape}"
            continue
        pieces = {row.tobytes() for row in np.moveaxis(left, axes[0], 0)}
        if any(row.tobytes() not in pieces for row in np.moveaxis(right, axes[0], 0)):
            yield f"{name} holds units that the left has not"


def _is_folded(built: Built, each: Expected) -> Iterator[str]:
    """Rows or columns of a weight are multiples of what they were."""
    for name, left, right in both(built, each):
        scaled = []
        for axis in (0, left.ndim - 1):
            one = np.moveaxis(left, axis, 0).reshape(left.shape[axis], -1)
            other = np.moveaxis(right, axis, 0).reshape(left.shape[axis], -1)
            sizes = (one * other).sum(1) / np.maximum((one * one).sum(1), 1e-30)
            scaled.append(_close(other, one * sizes[:, None]))
        if not any(scaled) or _close(left, right):
            yield f"{name} is not its left side, channel by channel"


def _is_reshaped(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        if left.shape == right.shape or not np.array_equal(left.ravel(), right.ravel()):
            yield f"{name} holds other values, or has the same shape"


def _is_floats_again(built: Built, each: Expected) -> Iterator[str]:
    tensors: Arrays = built.left.tensors
    for name, left, right in both(built, each):
        scale: Any = as_float(tensors[f"{name}_scale"])
        if not np.array_equal(as_float(rounded(left * scale, "BF16")), right):
            yield f"{name} is not its levels times its scale"


def _is_plain(built: Built, each: Expected) -> Iterator[str]:
    """Weight norm: the product of length and direction is the weight."""
    for name in sorted(each.maybe):
        if not name.endswith("_v"):
            continue
        direction = as_float(built.left.tensors[name])
        length = as_float(built.left.tensors[name.removesuffix("_v") + "_g"])
        norms = np.sqrt((direction**2).reshape(len(direction), -1).sum(1))
        weight = direction * (length.ravel() / norms).reshape(-1, *[1] * (direction.ndim - 1))
        if not _close(weight, as_float(built.right.tensors[name.removesuffix("_v")])):
            yield f"{name} times its length is not the weight"


def _still_floats(built: Built, each: Expected) -> Iterator[str]:
    """A trimmed merge: elements that moved from the base moved as one of the models did."""
    base = built.evidence.get("base")
    for name, left, right in both(built, each):
        if base is None or not is_float(built.left.tensors[name]):
            continue
        start = as_float(base.tensors[name])
        moved = np.abs(right - start) > 1e-7 * np.abs(start).max()
        sides = [
            left,
            *(as_float(m.tensors[name]) for k, m in built.evidence.items() if k != "base"),
        ]
        any_moved = np.any([side != start for side in sides], axis=0)
        if (moved & ~any_moved).any():
            yield f"{name} moved where no model did"


CHECKS.update(
    {
        "zeroed": _is_zero,
        "vocabulary_resized": _has_rows,
        "corrupted": _is_destroyed,
        "rescaled_channels": _is_rescaled,
        "rotated": _is_turned,
        "averaged": _is_combined,
        "slerp": _is_combined,
        "extrapolated": _is_combined,
        "task_arithmetic": _is_combined,
        "ema": _is_combined,
        "ties": _still_floats,
        "dare": _still_floats,
        "config_changed": _is_other_config,
        "tokens_changed": _is_other_tokens,
        "state_changed": _is_other_state,
        "tensors_added": _is_there,
        "tensors_removed": _is_there,
        **dict.fromkeys(
            ("layers_removed", "layers_duplicated", "layers_swapped", "layers_reordered",
             "layers_added"), _has_layers,
        ),
        "pruned_structurally": _has_fewer,
        "norms_folded": _is_folded,
        "weight_norm_folded": _is_plain,
        "reshaped": _is_reshaped,
        "dequantised": _is_floats_again,
    }
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(check(PAIRS, sys.argv[1:]))
