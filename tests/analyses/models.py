"""A small decoder, and one way to change it for each tag."""

from collections.abc import Callable

import ml_dtypes
import numpy as np

Model = dict[str, np.ndarray]


def decoder(layers: int = 3, dtype: object = np.float32, seed: int = 0) -> Model:
    """Make a decoder with the usual names."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (48, 16)}
    for i in range(layers):
        block = f"model.layers.{i}"
        shapes |= {f"{block}.self_attn.{part}_proj.weight": (16, 16) for part in "qkvo"}
        shapes |= {f"{block}.self_attn.{part}_proj.bias": (16,) for part in "qkv"}
        shapes |= {f"{block}.mlp.{part}_proj.weight": (32, 16) for part in ("gate", "up", "down")}
        shapes[f"{block}.input_layernorm.weight"] = (16,)
    shapes |= {"model.norm.weight": (16,), "lm_head.weight": (48, 16)}
    return {name: random.normal(0, 0.02, shape).astype(dtype) for name, shape in shapes.items()}


def changed(model: Model, change: Callable[[np.ndarray], np.ndarray], *parts: str) -> Model:
    """Change the tensors whose name contains one of the parts."""
    return {
        name: change(value).astype(value.dtype) if any(part in name for part in parts) else value
        for name, value in model.items()
    }


def nudged(value: np.ndarray) -> np.ndarray:
    """Move every element a little."""
    random = np.random.default_rng(value.size)
    return value + random.normal(0, 1e-3, value.shape).astype(np.float32)


def poked(value: np.ndarray) -> np.ndarray:
    """Move one element."""
    value = value.copy()
    value.flat[5] += 0.5
    return value


# One generator a tag: the change that the tag is the name of.
GENERATORS: dict[str, Callable[[Model], Model]] = {
    "bitwise_identical": dict,
    "dtype_cast": lambda model: {k: v.astype(ml_dtypes.bfloat16) for k, v in model.items()},
    "uniform_scale": lambda model: changed(model, lambda value: value * np.float32(1.1), ""),
    "head_only": lambda model: changed(model, nudged, "lm_head"),
    "bias_only": lambda model: changed(model, nudged, "bias"),
    "norm_only": lambda model: changed(model, nudged, "norm"),
    "sparse_delta": lambda model: changed(model, poked, "proj.weight"),
    "full_finetune": lambda model: changed(model, nudged, ""),
    "mixed": lambda model: changed(model, nudged, "up_proj"),
}
