"""The same weights as other frameworks keep them: GGUF, Keras, Flax, TensorFlow; right and wrong.

No converter is run for Flax and TensorFlow: the names and layouts are those of transformers'
own (`modeling_flax_pytorch_utils`, `convert_bert_original_tf_checkpoint_to_pytorch`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from . import networks

Array = np.ndarray[Any, Any]
State = dict[str, Array]

_POOLED = "cnn with global pooling"
_HEADS = {"q_proj": 4, "k_proj": 2}
_GGUF = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def state_of(model: str) -> State:
    """Read the weights of a briefly trained network."""
    made = _pooled() if model == _POOLED else networks.make(model, "trained").model
    state = made.state_dict()
    return {name: each.numpy() for name, each in state.items() if each.is_floating_point()}


def _pooled() -> nn.Module:
    """Make a CNN whose classifier sees no places: Keras walks through them in another order."""
    torch.manual_seed(18)
    parts: list[nn.Module] = []
    for inside in (3, 8, 8):
        parts += [nn.Conv2d(inside, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 8))
    model.append(nn.Linear(8, 4))
    with torch.no_grad():
        for each in (*model.parameters(), *model.buffers()):
            if each.is_floating_point():
                each.add_(torch.rand_like(each))
    return model


def wrong(state: State) -> Iterator[tuple[str, State]]:
    """Yield the weights with one thing wrong in them."""
    names = list(state)
    matrices = [name for name in names if state[name].ndim > 1 and "emb" not in name]
    square = next(name for name in matrices if len(set(state[name].shape)) == 1)
    yield "transposed", state | {square: state[square].T.copy()}
    one, other = next(
        (a, b) for a in matrices for b in matrices if a < b and state[a].shape == state[b].shape
    )
    yield "swapped", state | {one: state[other], other: state[one]}
    yield "other layer", state | {one: state[other]}
    bias = next((name for name in names if name.endswith("bias")), None)
    if bias:
        yield "bias zeroed", state | {bias: np.zeros_like(state[bias])}
    off = state[one].copy()
    off.flat[np.argmax(np.abs(off))] *= 1.01
    yield "1 % off", state | {one: off}
    yield "rows permuted", state | {one: np.roll(state[one], 1, axis=0)}
    kernel = next((name for name in names if state[name].ndim == 4), None)
    if kernel:
        yield "kernel flipped", state | {kernel: state[kernel][..., ::-1].copy()}
        yield "kernel turned", state | {kernel: state[kernel].swapaxes(2, 3).copy()}
    gains = [name for name in names if re.search(r"(norm|LayerNorm|bn)\w*\.weight", name)]
    if gains[1:]:
        yield "gain of another", state | {gains[0]: state[gains[1]]}
    table = next((name for name in names if "emb" in name and state[name].ndim == 2), None)
    if table:
        yield "embedding shifted", state | {table: np.roll(state[table], 1, axis=0)}


def gguf(state: State, path: Path, *, unpermuted: str = "") -> Path:
    """Write a Llama as llama.cpp's converter does; one tensor may stay in the order it was."""
    import gguf as package

    writer = package.GGUFWriter(path, "llama")
    writer.add_head_count(_HEADS["q_proj"])
    writer.add_head_count_kv(_HEADS["k_proj"])
    for name, array in state.items():
        heads = next((n for part, n in _HEADS.items() if part in name), 0)
        data = array
        if heads and name != unpermuted:
            parts = array.reshape(heads, 2, array.shape[0] // heads // 2, -1)
            data = parts.swapaxes(1, 2).reshape(array.shape)
        writer.add_tensor(_gguf_name(name), np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name: str) -> str:
    stem, _, last = name.rpartition(".")
    if stem in _GGUF:
        return f"{_GGUF[stem]}.{last}"
    _, _, number, part = stem.split(".", 3)
    return f"blk.{number}.{_GGUF[part]}.{last}"


def as_kernel(array: Array) -> Array:
    """Put the outputs last: [out, in, ...] becomes [..., in, out]."""
    return np.ascontiguousarray(np.moveaxis(array, (0, 1), (-1, -2)))


def keras(state: State, path: Path) -> Path:
    """Write the CNN with a Keras model of the same layers."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras as package

    layers = package.layers
    parts: list[Any] = [package.Input((8, 8, 3))]
    for _ in range(3):
        parts += [layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU()]
    parts += [layers.GlobalAveragePooling2D(), layers.Dense(8), layers.Dense(4)]
    model = package.Sequential(parts)
    modules: dict[str, list[Array]] = {}
    for name, array in state.items():
        kept = as_kernel(array) if array.ndim > 1 else array
        modules.setdefault(name.rpartition(".")[0], []).append(kept)
    weighted = [layer for layer in model.layers if layer.weights]
    for layer, arrays in zip(weighted, modules.values(), strict=True):
        layer.set_weights(arrays)
    model.save(path) if path.suffix == ".keras" else model.save_weights(path)
    return path


_FLAX = {"running_mean": "mean", "running_var": "var"}


def flax(state: State, path: Path) -> Path:
    """Write the weights as `flax.serialization.to_bytes` does, under names of Flax."""
    import msgpack

    tree: dict[str, Any] = {}
    for name, array in state.items():
        *parts, last = name.split(".")
        word, kept = _FLAX.get(last, last), array
        if last == "weight" and array.ndim > 1:
            is_table = "embeddings." in name
            word, kept = ("embedding", array) if is_table else ("kernel", as_kernel(array))
        elif last == "weight":
            word = "scale"
        branch = tree.setdefault("batch_stats" if last in _FLAX else "params", {})
        for part in parts:
            branch = branch.setdefault(part, {})
        packed = msgpack.packb((kept.shape, kept.dtype.name, kept.tobytes()), use_bin_type=True)
        branch[word] = msgpack.ExtType(1, packed)
    path.write_bytes(msgpack.packb(tree, strict_types=True))
    return path


def tensorflow_names(state: State) -> State:
    """Name a BERT as its first checkpoints of TensorFlow do."""
    renamed = {}
    for name, array in state.items():
        new, kept = name.replace("layer.", "layer_").replace(".", "/"), array
        if "LayerNorm" in name:
            new = new.replace("weight", "gamma").replace("bias", "beta")
        elif "embeddings" in name:
            new = new.removesuffix("/weight")
        elif array.ndim > 1:
            new, kept = new.replace("weight", "kernel"), as_kernel(array)
        renamed[new] = kept
    return renamed


WRITERS: dict[str, tuple[str, str, Callable[[State, Path], Path]]] = {
    "gguf": ("llama", "m.gguf", gguf),
    "keras": (_POOLED, "m.keras", keras),
    "keras weights": (_POOLED, "m.weights.h5", keras),
    "flax": ("bert", "m.msgpack", flax),
    "flax convolutions": (_POOLED, "m.msgpack", flax),
}


def conversions(kind: str) -> Iterator[tuple[str, State, State, Callable[[State, Path], Path]]]:
    """Yield what is done to it, both sides' weights, and who writes the right side."""
    model, _, write = WRITERS[kind]
    state = state_of(model)
    yield "right", state, state, write
    for fault, changed in wrong(state):
        yield fault, state, changed, write
    if kind == "gguf":
        name = "model.layers.0.self_attn.q_proj.weight"
        yield "q unpermuted", state, state, lambda s, p: gguf(s, p, unpermuted=name)


def save_left(state: State, path: Path) -> Path:
    """Write the PyTorch side."""
    torch.save({name: torch.from_numpy(array.copy()) for name, array in state.items()}, path)
    return path
