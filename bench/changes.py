"""Makes pairs of GPT-2 small of which the right was changed in one simple way; F32 by default."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from .decoders import Tensors, gpt2

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float32]]
    Edit = Callable[[str, Array, np.random.Generator], Array]

_SPREAD = 0.1
_RANK = 8


class Change(NamedTuple):
    """The dtypes of both sides, and what was done to a tensor."""

    edit: Edit
    before: str = "F32"
    after: str = "F32"


def _same(_name: str, weights: Array, _random: np.random.Generator) -> Array:
    return weights


def _rounded(_name: str, weights: Array, _random: np.random.Generator) -> Array:
    import ml_dtypes
    import numpy as np

    return weights.astype(ml_dtypes.bfloat16).astype(np.float32)


def _pruned(_name: str, weights: Array, _random: np.random.Generator) -> Array:
    """Set the smaller half of each matrix to zero."""
    import numpy as np

    if weights.ndim < 2:
        return weights
    size = np.abs(weights)
    return np.where(size < np.median(size[::16]), np.float32(0), weights)


def _scaled(_name: str, weights: Array, _random: np.random.Generator) -> Array:
    return weights * weights.dtype.type(0.97)


def _noisy(_name: str, weights: Array, random: np.random.Generator) -> Array:
    return weights + weights.dtype.type(0.01 * _SPREAD) * random.standard_normal(
        weights.shape, weights.dtype
    )


def _one(name: str, weights: Array, random: np.random.Generator) -> Array:
    return _noisy(name, weights, random) if name.endswith("h.0.mlp.c_fc.weight") else weights


def _biases(name: str, weights: Array, random: np.random.Generator) -> Array:
    return _noisy(name, weights, random) if name.endswith(".bias") else weights


def _tuned(name: str, weights: Array, random: np.random.Generator) -> Array:
    """Move every weight, half of it along directions that fade, as training does."""
    import numpy as np

    if weights.ndim < 2:
        return _noisy(name, weights, random)
    rows, columns = weights.shape
    fading = np.linspace(1, 0.05, 64, dtype=np.float32)
    along = random.standard_normal((rows, 64), np.float32) * fading
    moved = along @ random.standard_normal((64, columns), np.float32)
    moved = moved / moved.std() + random.standard_normal((rows, columns), np.float32)
    return weights + np.float32(0.003 * _SPREAD) * moved


def _merged(name: str, weights: Array, random: np.random.Generator) -> Array:
    """Merge a LoRA into the attention of every layer."""
    import numpy as np

    if not name.endswith("c_attn.weight"):
        return weights
    down = random.standard_normal((_RANK, weights.shape[1]), np.float32)
    up = random.standard_normal((weights.shape[0], _RANK), np.float32)
    return weights + np.float32(0.03 * _SPREAD) * (up @ down)


CHANGES: dict[str, Change] = {
    "cast": Change(_same, after="BF16"),
    "rounded": Change(_rounded),
    "scaled": Change(_scaled),
    "pruned": Change(_pruned),
    "one": Change(_one),
    "biases": Change(_biases),
    "tuned": Change(_tuned),
    "noise": Change(_noisy),
    "lora": Change(_merged),
    "pruned_bf16": Change(_pruned, "BF16", "BF16"),
    "tuned_bf16": Change(_tuned, "BF16", "BF16"),
}


def tensors(kind: str, narrow: int) -> tuple[Tensors, Tensors]:
    """Name the tensors of both sides, with their dtypes."""
    shapes = {name: shape for name, (_, shape) in gpt2(narrow).items()}
    change = CHANGES[kind]
    left, right = ({n: (d, s) for n, s in shapes.items()} for d in (change.before, change.after))
    return left, right


def write(kind: str, narrow: int, left: BinaryIO, right: BinaryIO) -> None:
    """Write the bytes of both sides, tensor after tensor."""
    import numpy as np

    random = np.random.default_rng(0)
    change = CHANGES[kind]
    for name, (_, shape) in gpt2(narrow).items():
        before = _stored(_weights(shape, random), change.before)
        after = change.edit(name, before.astype(np.float32), random)
        left.write(_bytes(before))
        right.write(_bytes(_stored(after, change.after)))


def _weights(shape: list[int], random: np.random.Generator) -> Array:
    """Draw weights whose rows and columns differ in size, as those of trained models do."""
    import numpy as np

    if len(shape) < 2:
        return 1 + np.float32(_SPREAD) * random.standard_normal(shape[0], np.float32)
    values = random.standard_normal(prod(shape), np.float32).reshape(shape)
    sizes = (np.exp(0.4 * random.standard_normal(n, np.float32)) for n in shape)
    for size, axis in zip(sizes, ((slice(None), None), (None, slice(None))), strict=True):
        values *= size[axis]
    return values * np.float32(_SPREAD)


def _stored(values: Array, dtype: str) -> Any:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16) if dtype == "BF16" else values


def _bytes(values: Any) -> Any:
    return values.view(f"u{values.dtype.itemsize}").reshape(-1).data
