"""A small decoder, and one way to change it for each tag."""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

Model = dict[str, np.ndarray]


def decoder(layers: int = 3, dtype: type = np.float32, seed: int = 0, width: int = 16) -> Model:
    """Make a decoder with the usual names."""
    random = np.random.default_rng(seed)
    wide, hidden, words = width, 2 * width, 3 * width
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (words, wide)}
    for i in range(layers):
        block = f"model.layers.{i}"
        shapes |= {f"{block}.self_attn.{part}_proj.weight": (wide, wide) for part in "qkvo"}
        shapes |= {f"{block}.self_attn.{part}_proj.bias": (wide,) for part in "qkv"}
        shapes |= {f"{block}.mlp.{part}_proj.weight": (hidden, wide) for part in ("gate", "up")}
        shapes[f"{block}.mlp.down_proj.weight"] = (wide, hidden)
        shapes[f"{block}.input_layernorm.weight"] = (wide,)
    shapes |= {"model.norm.weight": (wide,), "lm_head.weight": (words, wide)}
    return {name: random.normal(0, 0.02, shape).astype(dtype) for name, shape in shapes.items()}


def changed(model: Model, change: Callable[[np.ndarray], np.ndarray], *parts: str) -> Model:
    """Change the tensors whose name contains one of the parts."""
    return {
        name: change(value).astype(value.dtype) if any(part in name for part in parts) else value
        for name, value in model.items()
    }


def nudged(value: np.ndarray) -> np.ndarray:
    """Move every element a little, as training does: more in some rows and directions."""
    random = np.random.default_rng(value.size)
    moved = random.normal(0, 1e-3, value.shape)
    if value.ndim > 1:
        rows, columns = (np.exp(random.normal(0, 0.5, size)) for size in value.shape)
        moved *= np.outer(rows, columns)
        moved += np.outer(random.normal(0, 1e-3, len(rows)), random.normal(0, 1, len(columns)))
    return value + moved.astype(np.float32)


def poked(value: np.ndarray) -> np.ndarray:
    """Move one element."""
    value = value.copy()
    value.flat[5] += 0.5
    return value


def halved(value: np.ndarray) -> np.ndarray:
    """Zero the two smallest of every four neighbours."""
    groups = value.reshape(-1, 4)
    order = np.abs(groups.astype(np.float32)).argsort(axis=1)
    kept = np.ones(groups.shape, bool)
    np.put_along_axis(kept, order[:, :2], values=False, axis=1)
    return np.where(kept, groups, 0).reshape(value.shape)


def gridded(value: np.ndarray) -> np.ndarray:
    """Round every row to 15 steps, and keep it as floats."""
    wide = value.astype(np.float32)
    step = np.abs(wide).max(axis=1, keepdims=True) / 7
    return np.rint(wide / step) * step


def adapted(rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """Merge a LoRA of that rank, of a tenth of the weights' size."""

    def merge(value: np.ndarray) -> np.ndarray:
        random = np.random.default_rng([rank, value.size])
        product = random.normal(size=(value.shape[0], rank)) @ random.normal(
            size=(rank, value.shape[1])
        )
        return value.astype(np.float32) + product * (0.002 / rank**0.5)

    return merge


def rewritten(value: np.ndarray) -> np.ndarray:
    """Write three rows anew."""
    value = value.astype(np.float32)
    value[3:6] += np.random.default_rng(1).normal(0, 0.05, value[3:6].shape)
    return value


def reordered(model: Model, seed: int = 5) -> Model:
    """Put the hidden units of every feed-forward layer in another order."""
    random = np.random.default_rng(seed)
    other = dict(model)
    for name in model:
        if name.endswith("mlp.up_proj.weight"):
            order = random.permutation(len(model[name]))
            other[name] = model[name][order]
            for part, axis in (("gate", 0), ("down", 1)):
                beside = name.replace("up_proj", f"{part}_proj")
                other[beside] = model[beside].take(order, axis=axis)
    return other


def ancestor(model: Model) -> Model:
    """Make a base that the model may have come from."""
    return {
        name: (value + 4 * (nudged(value) - value.astype(np.float32))).astype(value.dtype)
        for name, value in model.items()
    }


def between(model: Model, part: float = 0.5) -> Model:
    """Go so far from its base to the model."""
    base = ancestor(model)
    return {
        name: ((1 - part) * base[name].astype(np.float64) + part * value.astype(np.float64)).astype(
            value.dtype
        )
        for name, value in model.items()
    }


# One generator a tag: the change that the tag is the name of.
GENERATORS: dict[str, Callable[[Model], Model]] = {
    "bitwise_identical": dict,
    "dtype_cast": lambda model: {k: v.astype(ml_dtypes.bfloat16) for k, v in model.items()},
    "uniform_scale": lambda model: changed(model, lambda value: value * np.float32(1.1), ""),
    "permuted": reordered,
    "quantised": lambda model: changed(model, gridded, "proj.weight"),
    "pruned": lambda model: changed(model, halved, "up_proj", "q_proj.weight"),
    "averaged": between,
    "head_only": lambda model: changed(model, nudged, "lm_head"),
    "bias_only": lambda model: changed(model, nudged, "bias"),
    "norm_only": lambda model: changed(model, nudged, "norm"),
    "row_edit": lambda model: changed(model, rewritten, "1.mlp.down_proj"),
    "low_rank": lambda model: changed(model, adapted(2), "q_proj.weight", "v_proj.weight"),
    "sparse_delta": lambda model: changed(model, poked, "proj.weight"),
    "full_finetune": lambda model: changed(model, nudged, ""),
    "mixed": lambda model: changed(model, nudged, "up_proj"),
}


def evidence(tag: str, left: Model, right: Model) -> Evidence:
    """Hand in what the tag cannot be told without."""
    if tag != "averaged":
        return Evidence()
    base = ancestor(left)
    return Evidence(base=(diff(base, left), diff(base, right)))
