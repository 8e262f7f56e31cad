"""Attention heads: query heads change places within their kv group, kv groups among themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...records import TensorInfo
from ..anatomy.network import Network
from ..anatomy.roles import layer, role
from .slots import Group, Slot

_FUSED = re.compile(r"(?:^|\.)(?:qkv|c_attn|in_proj|Wqkv)\.(weight|bias)$|in_proj_(weight|bias)$")
_INTERLEAVED = re.compile(r"query_key_value\.(weight|bias)$")  # q, k, v of a head side by side
_PARTS = {"attention_q": "q", "attention_k": "k", "attention_v": "v", "attention_o": "o"}


def heads(tensors: Mapping[str, TensorInfo], network: Network) -> Iterator[Group]:
    """Yield a group for every attention whose heads are known and whose shapes agree."""
    count, size = network.heads, network.head_dim
    if not (count and size and network.kv_heads and count % network.kv_heads == 0):
        return
    modules: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for name, info in tensors.items():
        part = _part(name)
        if part:
            modules[_module(name)][part] = info
    for module, parts in modules.items():
        slots = _slots(parts, count, network.kv_heads, size)
        if slots:
            yield Group(module, "heads", count, tuple(slots))


def _module(name: str) -> str:
    above = layer(layer(name))
    return above if role(name) != "attention" or "in_proj_" not in name else layer(name)


def _part(name: str) -> str | None:
    if _FUSED.search(name):
        return "qkv bias" if name.endswith("bias") else "qkv"
    if _INTERLEAVED.search(name):
        return "interleaved bias" if name.endswith("bias") else "interleaved"
    part = _PARTS.get(role(f"{layer(name)}.weight"))
    if part is None:
        return None
    if name.endswith(".weight"):
        return part
    return f"{part} bias" if name.endswith(".bias") and part != "o" else None


def _slots(parts: Mapping[str, TensorInfo], count: int, kv: int, size: int) -> list[Slot]:
    """Lay the heads out; empty where a tensor is missing or has another shape."""
    out = parts.get("o")
    fused, mixed = parts.get("qkv"), parts.get("interleaved")
    if out is None or len(out.shape) != 2:
        return []
    if {"q", "k", "v"} <= set(parts):
        units = {"q": count, "k": kv, "v": kv}
        slots = [
            Slot(info.name, part, units[part[0]], 0, 1, size)
            for part, info in parts.items()
            if part[0] in units and part in {"q", "k", "v", "q bias", "k bias", "v bias"}
        ]
    elif fused and kv == count and len(fused.shape) == 2:
        # GPT-2 stores [in, out]: there the heads lie along the columns.
        axis = int(fused.shape[1] == 3 * count * size and fused.shape[0] != 3 * count * size)
        slots = [Slot(fused.name, "qkv", count, axis, 3, size)]
        bias = parts.get("qkv bias")
        slots += [Slot(bias.name, "qkv bias", count, 0, 3, size)] if bias else []
        return _fits([*slots, Slot(out.name, "o", count, 1 - axis, 1, size)], parts)
    elif mixed and kv == count:
        slots = [Slot(mixed.name, "interleaved", count, 0, 1, 3 * size)]
        bias = parts.get("interleaved bias")
        slots += [Slot(bias.name, "interleaved bias", count, 0, 1, 3 * size)] if bias else []
    else:
        return []
    return _fits([*slots, Slot(out.name, "o", count, 1, 1, size)], parts)


def _fits(slots: list[Slot], parts: Mapping[str, TensorInfo]) -> list[Slot]:
    shapes = {info.name: info.shape for info in parts.values()}
    return slots if all(shapes[each.name][each.axis] == each.length for each in slots) else []
